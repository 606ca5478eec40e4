"""What decoding returns (R42)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rappor import charts
from rappor.charts import Chart
from rappor.checks import show
from rappor.decoding import frames
from rappor.decoding.rows import Mass, Row, Rows
from rappor.errors import DecodeError

__all__ = ["Decoded", "Mass", "Row", "Rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The result of `rappor.decode`.

    Attributes:
        rows: every candidate, a lazy sequence sorted by estimate.
        reports: N.
        candidates: M, the candidates tested and corrected for.
        unlisted: reports whose string is none of those detected: not in the list, or too rare.
        chi2_dof: residual χ² per degree of freedom under the noise of the mechanism alone; near 1
            where the candidates explain the counts.
        scale: the factor on variances that was used (at least 1).
        design_effect: the bound on over-dispersion from several reports per client. Closed forms
            widen by it; for strings the scale is measured, and the bound says how much of it
            repeated reports may explain before strings are taken to be missing.
        robust: whether more than noise, detected strings and repeated reports is in the counts, so
            that the robust path ran.
        groups: candidates with the same bits in every cohort, which cannot be told apart.
        untestable: candidates that the detected strings together explain away.
        warnings: what a reader should know before believing the table, in plain English.
    """

    rows: Rows
    reports: int
    candidates: int
    cohorts: int
    unlisted: Mass
    chi2_dof: float
    scale: float
    design_effect: float
    robust: bool
    groups: tuple[tuple[str, ...], ...]
    untestable: tuple[str, ...]
    warnings: tuple[str, ...]
    params_digest: str
    kind: str
    dialect: str | None
    correction: str
    alpha: float
    method: str
    threshold: float
    detail: Any = field(default=None, repr=False)

    @property
    def detected(self) -> list[Row]:
        """The rows that pass the test, largest estimate first."""
        return [self.rows.row(int(index)) for index in np.flatnonzero(self.rows.detected)]

    def row(self, string: str) -> Row:
        """The row of one candidate."""
        try:
            return self.rows.row(self.rows.strings.index(string))
        except ValueError:
            raise DecodeError(f"{show(string)} is not among the candidates") from None

    def with_warnings(self, warnings: Sequence[str]) -> Decoded:
        """The same result with other warnings, each of them once."""
        return replace(self, warnings=tuple(dict.fromkeys(warnings)))

    def to_arrow(self, detected_only: bool = False) -> Any:
        """The rows as a pyarrow Table."""
        return frames.to_arrow(self.rows, detected_only=detected_only)

    def to_pandas(self, detected_only: bool = False) -> Any:
        """The rows as a pandas DataFrame."""
        return frames.to_pandas(self.rows, detected_only=detected_only)

    def to_polars(self, detected_only: bool = False) -> Any:
        """The rows as a polars DataFrame."""
        return frames.to_polars(self.rows, detected_only=detected_only)

    def plot(self) -> Chart:
        """Bars with intervals, the detection threshold and the unlisted mass; `.save(path)`."""
        return Chart(charts.results(self))

    def _repr_html_(self) -> str:
        return frames.html(self)
