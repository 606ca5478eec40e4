"""What decoding returns: a table with a row for each candidate, and how far to trust it (§4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rappor import charts
from rappor.charts import Chart
from rappor.checks import show
from rappor.decoding.forgery import Forgery
from rappor.decoding.intervals import above_undetected
from rappor.errors import DecodeError
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.options import Correction
    from rappor.decoding.quality import Check
    from rappor.typing import Kind

__all__ = ["Decoded", "Mass", "Row", "Rows"]


class Row(NamedTuple):
    """One candidate: the estimated number of reports that hold it, with its uncertainty.

    `estimate` and `proportion` allow for the fact that detected strings were chosen by their size,
    and lie within the interval; `raw_estimate` does not, and may be below 0 or above all reports.
    `interval` is in reports, `prop_low_95` and `prop_high_95` are the same as shares. A row that
    was not detected has the lower end 0, and its upper end is a limit of 97.5 %.
    """

    string: str
    estimate: float
    std_error: float
    proportion: float
    prop_std_error: float
    prop_low_95: float
    prop_high_95: float
    p_value: float
    adjusted_p_value: float
    snr: float
    detected: bool
    interval: tuple[float, float]
    raw_estimate: float

    @property
    def presence_only(self) -> bool:
        """Whether the string is there, but how often is known as an upper limit only."""
        return self.detected and self.interval[0] <= 0


@dataclass(frozen=True, slots=True)
class Mass:
    """A number of reports with its uncertainty, also as a share of all reports."""

    count: float
    std_error: float
    low_95: float
    high_95: float
    proportion: float
    prop_std_error: float
    prop_low_95: float
    prop_high_95: float


def mass(count: float, std_error: float, reports: int) -> Mass:
    """A count with its 95 % interval, both moved into [0, N], and the same as shares.

    The limits are those of a number that cannot be below 0 or above N (`above_undetected`): where
    noise carries the count beyond, they do not end at 0 or at N, as if that were certain.

    >>> mass(50.0, 10.0, 100).prop_std_error
    0.1
    >>> [round(mass(count, 10.0, 1000).high_95, 1) for count in (0.0, -20.0)]
    [22.4, 12.5]
    """
    n = reports or 1
    if std_error > 0:
        z = np.array([reports - count, count]) / std_error
        below, above = (std_error * above_undetected(z)).tolist()
        ends = (count - below, count + above)
    else:
        ends = (count, count)
    low, high = (min(max(end, 0.0), float(reports)) for end in ends)
    count = min(max(count, low), high)
    return Mass(count, std_error, low, high, count / n, std_error / n, low / n, high / n)


@dataclass(frozen=True, slots=True, eq=False)
class Picked(Sequence[str]):
    """Strings in another order, without a copy of a million of them."""

    strings: Sequence[str]
    order: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self.strings[place] for place in self.order[index]]
        return self.strings[int(self.order[index])]

    def __iter__(self) -> Iterator[str]:
        return (self.strings[place] for place in self.order)


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Sequence[Row]):
    """The rows as columns, made into `Row`s on demand: a million candidates cost arrays only.

    Sorted by raw estimate, largest first; equal ones by string. `reports` is N.
    """

    reports: int
    strings: Sequence[str]
    estimate: FloatArray
    raw_estimate: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    adjusted_p_value: FloatArray
    detected: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.estimate)

    def row(self, index: int) -> Row:
        """The row at a position from 0 on."""
        n = self.reports or 1
        estimate, error = float(self.estimate[index]), float(self.std_error[index])
        low, high = float(self.low[index]), float(self.high[index])
        raw = float(self.raw_estimate[index])
        return Row(
            string=self.strings[index],
            estimate=estimate,
            std_error=error,
            proportion=estimate / n,
            prop_std_error=error / n,
            prop_low_95=low / n,
            prop_high_95=high / n,
            p_value=float(self.p_value[index]),
            adjusted_p_value=float(self.adjusted_p_value[index]),
            snr=raw / error if error > 0 else float("nan"),
            detected=bool(self.detected[index]),
            interval=(low, high),
            raw_estimate=raw,
        )

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self.row(place) for place in range(*index.indices(len(self)))]
        return self.row(range(len(self))[index])

    def __iter__(self) -> Iterator[Row]:
        return (self.row(index) for index in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The result of `rappor.decode`.

    Attributes:
        rows: every candidate, a lazy sequence sorted by raw estimate.
        reports: N.
        candidates: M, the candidates tested and corrected for.
        undetected_mass: reports that no detected string explains: not on the list, or too rare.
        chi2_dof: residual χ² per degree of freedom under the noise of the mechanism alone; near 1
            if the candidates explain the counts.
        scale: the factor on variances that was used (at least 1).
        design_effect: the bound on over-dispersion from several reports per client. Closed forms
            widen by it; for strings the scale is measured, and the bound says how much of it
            repeated reports may explain before strings are taken to be missing.
        robust: whether the counts hold more than noise, detected strings and repeated reports
            explain, so that the robust path ran.
        groups: candidates with the same bits in every cohort, which cannot be told apart.
        untestable: candidates that the detected strings together explain away.
        reports_per_client: the most reports one client can have sent on one value, over all counts
            that were decoded together; counts that do not say add one.
        threshold: the estimate that one more candidate would need to be detected, in reports.
        forgery: what a forged report does to an estimate.
        checks: whether the result is good: every check that was made, failed ones first.
        notes: what was done to the input, in plain English.
        histogram: mean, quantiles and cumulative shares of kind ordinal; None for other kinds.
        detail: the working behind the table.
        title: what was decoded, such as "homepage v1, 2026-W47"; empty for counts without a name.
    """

    rows: Rows
    reports: int
    candidates: int
    cohorts: int
    undetected_mass: Mass
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
    forgery: Forgery
    checks: tuple[Check, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    histogram: Histogram | None = field(default=None, repr=False)
    detail: Any = field(default=None, repr=False)
    title: str = ""

    def __repr__(self) -> str:
        from rappor.decoding.result_table import short_text

        return f"<Decoded {short_text(self)}>"

    def __str__(self) -> str:
        """The table that `rappor decode` prints, with its notes and warnings."""
        from rappor.decoding.result_table import whole_text

        return whole_text(self)

    @property
    def detected(self) -> list[Row]:
        """The rows that pass the test, largest estimate first."""
        return [self.rows.row(int(index)) for index in np.flatnonzero(self.rows.detected)]

    @property
    def unlisted(self) -> Mass:
        """The former name of `undetected_mass`; deprecated."""
        return self.undetected_mass

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of failed checks, which a reader should know before believing the table."""
        return tuple(check.text for check in self.checks if not check.ok)

    @property
    def threshold_band(self) -> tuple[float, float]:
        """Where detected and undetected raw estimates separate, in reports; twice the same number.

        Tests know more than the size of an estimate, so that both may overlap: then from the
        smallest detected to the largest undetected one. Untestable candidates do not count.
        """
        raw, detected = self.rows.raw_estimate, self.rows.detected
        tested = np.ones(len(raw), bool)
        if self.untestable:
            left_out = frozenset(self.untestable)
            tested = np.array([text not in left_out for text in self.rows.strings])
        low = float(raw[detected].min(initial=math.inf))
        high = float(raw[tested & ~detected].max(initial=-math.inf))
        if low <= high:
            return low, high
        between = min(max(self.threshold, high), low)
        return between, between

    @property
    def forged_to_detect(self) -> float:
        """How many forged reports would make a string detected that nobody holds."""
        adds = self.forgery.adds
        if self.forgery.mirrored:
            adds = max(adds, self.forgery.on_mirrored().adds)
        return self.threshold / adds

    def forged_reports(self) -> tuple[FloatArray, FloatArray]:
        """How many forged reports would have made each row up, and would hide it.

        In the order of the rows; nan for those that were not detected. At least one hides a row: it
        may be detected with an estimate below the threshold, which is that of a typical one.
        """
        raw, detected = self.rows.raw_estimate, self.rows.detected
        made_up = self.forgery.to_make_up(raw)
        hidden = self.forgery.to_hide(raw, self.threshold)
        if self.forgery.mirrored:
            row, other = self.rows.strings.index(self.forgery.mirrored), self.forgery.on_mirrored()
            made_up[row] = other.to_make_up(raw)[row]
            hidden[row] = other.to_hide(raw, self.threshold)[row]
        hidden = np.maximum(np.ceil(hidden), 1.0)
        return np.where(detected, np.ceil(made_up), np.nan), np.where(detected, hidden, np.nan)

    def row(self, string: str) -> Row:
        """The row of one candidate."""
        try:
            return self.rows.row(self.rows.strings.index(string))
        except ValueError:
            raise DecodeError(
                f"{show(string)} is not among the candidates; add it, and decode again: that "
                "costs no ε"
            ) from None

    def to_arrow(self, detected_only: bool = False) -> Any:
        """The rows as a pyarrow Table."""
        from rappor.decoding import frames

        return frames.to_arrow(self.rows, detected_only=detected_only)

    def to_pandas(self, detected_only: bool = False) -> Any:
        """The rows as a pandas DataFrame."""
        from rappor.decoding import frames

        return frames.to_pandas(self.rows, detected_only=detected_only)

    def to_polars(self, detected_only: bool = False) -> Any:
        """The rows as a polars DataFrame."""
        from rappor.decoding import frames

        return frames.to_polars(self.rows, detected_only=detected_only)

    def plot(self, truth: Mapping[str, int] | None = None) -> Chart:
        """Bars with intervals, the detection threshold and the undetected mass; `.save(path)`.

        A histogram for kind ordinal.

        Args:
            truth: of a simulation, the number of reports that hold each string; drawn next to the
                bars, and left out of a histogram.
        """
        if self.histogram is not None:
            return Chart(charts.histogram(self.histogram))
        return Chart(charts.results(self, truth=truth))

    def _repr_html_(self) -> str:
        from rappor.decoding import frames

        return frames.html(self)
