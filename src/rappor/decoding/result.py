"""What decoding returns (R42)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rappor import charts
from rappor.charts import Chart
from rappor.checks import show
from rappor.decoding import frames
from rappor.decoding.rows import Mass, Row, Rows
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.options import Correction
    from rappor.decoding.quality import Check
    from rappor.mechanism.kinds import Kind

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
        reports_per_client: the most reports one client can have sent on one value, over all counts
            that were decoded together; counts that do not say add one.
        threshold: the estimate that one more candidate would need to be detected, in reports.
        checks: whether the result is good: every check that was made, failed ones first.
        notes: what was done to the input, in plain English.
        histogram: mean, quantiles and cumulative shares of kind ordinal; None for other kinds.
        detail: the working behind the table.
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
    reports_per_client: int
    params_digest: str
    kind: Kind
    dialect: str | None
    correction: Correction
    alpha: float
    method: str
    threshold: float
    checks: tuple[Check, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    histogram: Histogram | None = field(default=None, repr=False)
    detail: Any = field(default=None, repr=False)

    @property
    def detected(self) -> list[Row]:
        """The rows that pass the test, largest estimate first."""
        return [self.rows.row(int(index)) for index in np.flatnonzero(self.rows.detected)]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before believing the table: the texts of failed checks."""
        return tuple(check.text for check in self.checks if not check.ok)

    def row(self, string: str) -> Row:
        """The row of one candidate."""
        try:
            return self.rows.row(self.rows.strings.index(string))
        except ValueError:
            raise DecodeError(f"{show(string)} is not among the candidates") from None

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
        """Bars with intervals, the detection threshold and the unlisted mass; `.save(path)`.

        A histogram for kind ordinal.
        """
        drawn = charts.results(self) if self.histogram is None else charts.histogram(self.histogram)
        return Chart(drawn)

    def _repr_html_(self) -> str:
        return frames.html(self)
