"""A histogram of numbers reported by range, and what follows from it (§2.1).

Shares, the cumulative distribution, quantiles, the mean; each with a 95 % interval that allows for
the shares' common sum. Derivations: docs/theory/basic.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rappor.checks import between_0_and_1, is_real
from rappor.decoding.intervals import Z_95, limits
from rappor.decoding.options import Correction
from rappor.decoding.result import Decoded, Mass, Row, Rows
from rappor.errors import DecodeError
from rappor.typing import FloatArray


class SummaryEstimate(NamedTuple):
    """A number with its standard error and 95 % interval.

    `value` is nan where nothing but an upper limit is known; `low_95` is 0 then.
    """

    value: float
    std_error: float
    low_95: float
    high_95: float


class Share(NamedTuple):
    """The share of reports in one range, or up to and including it."""

    label: str
    share: float
    std_error: float
    low_95: float
    high_95: float


class Quantile(NamedTuple):
    """The range that holds a quantile, and the ranges that may hold it with 95 % confidence.

    `value`, `low_95` and `high_95` are numbers: the values of the ranges where each has one, else
    the edges of the outermost ranges (±∞ for open ones), with `value` interpolated within its range
    and None where that range is open. All three are None where ranges have labels only.
    """

    probability: float
    label: str
    low_label: str
    high_label: str
    value: float | None
    low_95: float | None
    high_95: float | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histogram:
    """Decoded counts of kind ordinal.

    Attributes:
        decoded: rows (in the order of the ranges, not by estimate), warnings and the rest.
        labels: a name for each range, lowest first.
        share: the raw estimate of the share of reports in each range; sums to 1 if `complete`; may
            be negative.
        variance: of each range's own estimate, before the sum was imposed; independent of the
            others.
        complete: whether every report lies in a range, so that shares sum to 1.
        edges: between ranges, the outermost infinite; None if not known.
        values: a number that stands for each range, nan if none does; None if none is known.
        discrete: whether a range holds the one number that stands for it, and no other.
    """

    decoded: Decoded
    labels: tuple[str, ...]
    share: FloatArray = field(repr=False)
    variance: FloatArray = field(repr=False)
    complete: bool
    edges: FloatArray | None = field(repr=False)
    values: FloatArray | None = field(repr=False)
    discrete: bool

    def __repr__(self) -> str:
        return f"<Histogram {repr(self.decoded).removeprefix('<Decoded ')}"

    def __str__(self) -> str:
        """The table of the ranges, then mean and quantiles, as `rappor decode` prints them."""
        from rappor.decoding.result_table import histogram_text

        return histogram_text(self)

    @property
    def rows(self) -> Rows:
        """One row for each range, lowest first."""
        return self.decoded.rows

    @property
    def reports(self) -> int:
        """N."""
        return self.decoded.reports

    @property
    def detected(self) -> list[Row]:
        """The rows that are too large to be noise."""
        return self.decoded.detected

    @property
    def undetected_mass(self) -> Mass:
        """Reports in no range."""
        return self.decoded.undetected_mass

    @property
    def correction(self) -> Correction:
        """How p-values were corrected."""
        return self.decoded.correction

    @property
    def alpha(self) -> float:
        """The error rate that the correction keeps."""
        return self.decoded.alpha

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the input."""
        return self.decoded.notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of failed checks, which a reader should know before believing the table."""
        return self.decoded.warnings

    @property
    def covariance(self) -> FloatArray:
        """Of the shares; diag(v) - v v'/Σv where they sum to 1, else diag(v)."""
        table = np.diag(self.variance)
        total = float(self.variance.sum())
        if self.complete and total > 0:
            table -= np.outer(self.variance, self.variance) / total
        return table

    @property
    def shares(self) -> tuple[Share, ...]:
        """Each range with the estimate and the interval of its row."""
        n, rows = self.reports or 1, self.rows
        columns = (rows.estimate, rows.std_error, rows.low, rows.high)
        return tuple(map(Share, self.labels, *((column / n).tolist() for column in columns)))

    def cumulative(self) -> tuple[Share, ...]:
        """F_i = Σ_{j<=i} share_j with pointwise 95 % intervals, all moved into [0, 1].

        The estimates are not made monotone.
        """
        share, reach = np.cumsum(self.share), Z_95 * np.sqrt(self._spread_below(0.0))
        low, high = (np.clip(share + side * reach, 0, 1) for side in (-1, 1))
        columns = (np.clip(share, 0, 1), reach / Z_95, low, high)
        return tuple(map(Share, self.labels, *(column.tolist() for column in columns)))

    def quantile(self, probability: float) -> Quantile:
        """The lowest range up to which at least this share of the reports lies.

        The interval is every range i that the band allows, and those between: F_{i-1} may be below
        the probability and F_i may reach it. It covers because it asks for two pointwise intervals
        at the true range, each one-sided at 97.5 %; the band itself need not be monotone. The point
        estimate crosses at the mean of the running maximum (from below) and minimum (from above).
        Without `complete`, quantiles are of the reports that lie in a range.
        """
        p = between_0_and_1("probability", probability)
        self._total()
        cumulative = np.cumsum(self.share)
        # F_i - p F_k: compared with 0, so that an uncertain total is allowed for.
        lead = cumulative - p * cumulative[-1]
        reach = Z_95 * np.sqrt(self._spread_below(p))
        low, high = lead - reach, lead + reach
        high[-1] = lead[-1] = math.inf  # all ranges together hold all
        first = int(np.argmax(high >= 0))
        final = int(np.flatnonzero(np.append(-math.inf, low[:-1]) < 0)[-1])
        rising = np.maximum.accumulate(lead)
        falling = np.minimum.accumulate(lead[::-1])[::-1]
        middle = int(np.argmax(rising + falling >= 0))
        before = (cumulative[middle - 1] if middle else 0.0) / cumulative[-1]
        within = (p - before) * cumulative[-1] / self.share[middle] if self.share[middle] else 0.5
        return Quantile(
            p,
            self.labels[middle],
            self.labels[first],
            self.labels[final],
            *self._numbers(middle, first, final, min(max(float(within), 0.0), 1.0)),
        )

    def mean(self, values: Sequence[float] | None = None) -> SummaryEstimate:
        """Σ x_i share_i with its interval; the estimand is the realised mean of the x_i.

        x_i stands for all numbers in range i: its midpoint, or the given value. An open range has
        no midpoint, and DecodeError asks for `values`. Without `complete`, it is the mean of the
        reports that lie in a range.
        """
        x = self._values(values)
        total = self._total()
        found = float(x @ self.share) / total
        error = math.sqrt(self._variance_of((x - found) / total))
        value, low, high = (
            min(max(found + side * Z_95 * error, float(x.min())), float(x.max()))
            for side in (0, -1, 1)
        )
        return SummaryEstimate(value, error, low, high)

    def spread(self, values: Sequence[float] | None = None) -> SummaryEstimate:
        """The standard deviation √(Σ (x_i - mean)² share_i).

        Its square is estimated, and noise may carry that below 0. So the value is nan, and nothing
        but an upper limit is known, unless the square is 1.96 standard errors above 0. The interval
        allows for that choice: it covers 95 % of the time among those that are shown, and begins at
        0 where the square is not far above the threshold.
        """
        x = self._values(values)
        total = self._total()
        mean = self.mean(values)
        centre = float(x @ self.share) / total
        # The square of an estimated mean is too large by its variance on average.
        square = float((x - centre) ** 2 @ self.share) / total + mean.std_error**2
        # Where the mean is uncertain, so is the weight of each range: the largest error counts.
        error = max(
            math.sqrt(self._variance_of(((x - around) ** 2 - square) / total))
            for around in (centre, mean.low_95, mean.high_95)
        )
        largest = float(x.max() - x.min()) ** 2 / 4
        shows = np.array([square > Z_95 * error])
        found = limits(np.array([square]), np.array([error]), shows, Z_95, largest)
        value, low, high = (math.sqrt(float(column[0])) for column in found)
        if not shows[0]:
            return SummaryEstimate(math.nan, math.nan, 0.0, high)
        return SummaryEstimate(value, error / (2 * value), low, high)

    def to_arrow(self, *, detected_only: bool = False) -> Any:
        """The rows as a pyarrow Table."""
        from rappor.decoding import frames

        return frames.to_arrow(self, detected_only=detected_only)

    def to_pandas(self, *, detected_only: bool = False) -> Any:
        """The rows as a pandas DataFrame."""
        from rappor.decoding import frames

        return frames.to_pandas(self, detected_only=detected_only)

    def to_polars(self, *, detected_only: bool = False) -> Any:
        """The rows as a polars DataFrame."""
        from rappor.decoding import frames

        return frames.to_polars(self, detected_only=detected_only)

    def plot(self) -> Any:
        """The histogram as a chart, which notebooks show; `.save(path)` writes SVG or PNG."""
        from rappor import charts

        return charts.Chart(charts.histogram(self))

    def _repr_html_(self) -> str:
        from rappor.decoding import frames

        return frames.html(self)

    def _spread_below(self, p: float) -> FloatArray:
        """Variance of F_i - p F_k, for every i."""
        below: FloatArray = np.cumsum(self.variance)
        total = float(below[-1])
        if not self.complete or total == 0:
            return below * (1 - p) ** 2 + (total - below) * p**2
        left: FloatArray = np.maximum(below - below * below / total, 0.0)
        return left

    def _variance_of(self, a: FloatArray) -> float:
        """Variance of Σ a_i share_i."""
        v, total = self.variance, float(self.variance.sum())
        imposed = float(a @ v) ** 2 / total if self.complete and total > 0 else 0.0
        return max(float(a * a @ v) - imposed, 0.0)

    def _total(self) -> float:
        if not self.reports:
            raise DecodeError("there are no reports to describe: choose counts that have some")
        total = float(self.share.sum())
        if total <= 0:
            raise DecodeError(
                "the ranges together hold no reports, as far as the noise shows; collect more "
                "reports"
            )
        return total

    def _values(self, given: Sequence[float] | None) -> FloatArray:
        if given is not None:
            return range_values(given, len(self.labels))
        if self.values is None:
            raise DecodeError("these ranges have labels only: give values, one number for each")
        if np.isnan(self.values).any():
            open_ranges = [self.labels[i] for i in np.flatnonzero(np.isnan(self.values))]
            raise DecodeError(
                f"open ranges have no midpoint ({', '.join(open_ranges)}): give values, "
                "one number for each range"
            )
        return self.values

    def _numbers(
        self, middle: int, first: int, final: int, within: float
    ) -> tuple[float | None, float | None, float | None]:
        if self.discrete and self.values is not None:
            middle_value, low, high = self.values[[middle, first, final]].tolist()
            return middle_value, low, high
        if self.edges is None:
            return None, None, None
        left, right = float(self.edges[middle]), float(self.edges[middle + 1])
        closed = math.isfinite(left) and math.isfinite(right)
        value = left + within * (right - left) if closed else None
        return value, float(self.edges[first]), float(self.edges[final + 1])


def range_values(given: Sequence[float], ranges: int) -> FloatArray:
    """One finite number for each range, or DecodeError."""
    listed = list(given)
    if len(listed) != ranges or not all(is_real(x) and math.isfinite(x) for x in listed):
        raise DecodeError(f"values must be {ranges} finite numbers, one for each range")
    return np.array(listed, dtype=np.float64)
