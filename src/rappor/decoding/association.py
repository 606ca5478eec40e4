"""The result of an association: a joint table with errors, conditional shares and tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np

from rappor.charts import Chart
from rappor.charts.association import association_panel
from rappor.checks import show
from rappor.decoding import frames
from rappor.decoding.intervals import Z_95
from rappor.decoding.joint_fit import ChiSquare, JointFit
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check
from rappor.decoding.smoothing import project_simplex
from rappor.errors import DecodeError
from rappor.typing import BoolArray, FloatArray

_KNOWN = 2.0  # standard errors from 0 that a sum needs to be divided by


class JointCell(NamedTuple):
    """One pair of values.

    Shares are of all reports, with intervals of ± 1.96 standard errors, unprojected: a share below
    0 is noise. `expected` is the share in the independent table: row times column, for a tuple the
    table that fits the cells best. `departure` is share - expected. Conditional shares lie between
    0 and 1, and are nan where the value they are given is too rare to divide by. P-values are
    nan for "other", which is not tested. All is nan in a cell that no cohort of a tuple tells.
    """

    first: str
    second: str
    share: float
    std_error: float
    low_95: float
    high_95: float
    expected: float
    departure: float
    departure_std_error: float
    p_value: float
    adjusted_p_value: float
    associated: bool
    share_given_first: float
    given_first_low_95: float
    given_first_high_95: float
    share_given_second: float
    given_second_low_95: float
    given_second_high_95: float


class MarginShare(NamedTuple):
    """One value of a field by itself, with its 95 % interval."""

    value: str
    share: float
    std_error: float
    low_95: float
    high_95: float


@dataclass(frozen=True, slots=True, eq=False)
class JointCells(Sequence[JointCell]):
    """The cells of a table, row by row; made into `JointCell`s when asked for."""

    labels: tuple[tuple[str, ...], tuple[str, ...]]
    columns: dict[str, FloatArray | BoolArray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels[0]) * len(self.labels[1])

    def cell(self, index: int) -> JointCell:
        """The cell at a position from 0 on."""
        row, column = divmod(index, len(self.labels[1]))
        numbers = {name: table[row, column].item() for name, table in self.columns.items()}
        return JointCell(self.labels[0][row], self.labels[1][column], **numbers)

    @overload
    def __getitem__(self, index: int) -> JointCell: ...
    @overload
    def __getitem__(self, index: slice) -> list[JointCell]: ...
    def __getitem__(self, index: int | slice) -> JointCell | list[JointCell]:
        if isinstance(index, slice):
            return [self.cell(place) for place in range(*index.indices(len(self)))]
        return self.cell(range(len(self))[index])

    def __iter__(self) -> Iterator[JointCell]:
        return (self.cell(index) for index in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Association:
    """The result of `rappor.associate`.

    Attributes:
        names: what the two fields are called.
        rows: every cell, a lazy sequence, row by row.
        margins: the shares of the first and of the second field.
        independence: the score test of independence.
        unlisted_mass: the share of reports in which one of the values is not listed, with its
            interval: (share, low, high); a share below 0 is noise.
        reports: N.
        tested: how many cells were tested and corrected for.
        method: "separate" for two variables that were reported separately, "tuple" for one report
            on both.
        epsilon_one: what one report on both fields costs a client.
        epsilon_infinity: what all reports on one pair of values cost.
        checks: whether the result is good; see `Decoded.checks`.
        notes: what was done to the input, in plain English.
        title: what was decoded, such as "install v1"; empty for counts without a name.
    """

    names: tuple[str, str]
    rows: JointCells
    margins: tuple[tuple[MarginShare, ...], tuple[MarginShare, ...]] = field(repr=False)
    independence: ChiSquare
    unlisted_mass: tuple[float, float, float]
    reports: int
    tested: int
    method: str
    epsilon_one: float
    epsilon_infinity: float
    correction: Correction
    alpha: float
    checks: tuple[Check, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    title: str = ""

    def __repr__(self) -> str:
        from rappor.decoding.association_table import summary

        return f"<Association {summary(self)}>"

    def __str__(self) -> str:
        """The table that `rappor associate` prints, with its notes and warnings."""
        from rappor.decoding.association_table import whole_text

        return whole_text(self)

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The values of both fields; "other" is the last of an open one."""
        return self.rows.labels

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of failed checks, which a reader should know before believing the table."""
        return tuple(check.text for check in self.checks if not check.ok)

    @property
    def is_associated(self) -> bool:
        """Whether the test of independence rejects it at alpha."""
        return self.independence.p_value <= self.alpha

    @property
    def associated(self) -> list[JointCell]:
        """Cells that depart from independence by the corrected test; smallest p-value first."""
        found = [cell for cell in self.rows if cell.associated]
        return sorted(found, key=lambda cell: (cell.p_value, cell.first, cell.second))

    @property
    def share(self) -> FloatArray:
        """The joint shares, shape (R, C); they may be negative."""
        return np.asarray(self.rows.columns["share"])

    @property
    def std_error(self) -> FloatArray:
        """Standard errors of the joint shares, shape (R, C)."""
        return np.asarray(self.rows.columns["std_error"])

    def cell(self, first: str, second: str) -> JointCell:
        """The cell of a pair of values."""
        places = []
        for value, labels, name in zip((first, second), self.labels, self.names, strict=True):
            if value not in labels:
                raise DecodeError(f"{show(value)} is not a listed value of {name}; list it first")
            places.append(labels.index(value))
        return self.rows.cell(places[0] * len(self.labels[1]) + places[1])

    def projected(self) -> FloatArray:
        """The nearest joint shares that are nowhere negative and sum to 1, shape (R, C).

        Closer to the truth as a whole, but biased cell by cell, and without intervals: publish it
        as a picture, and test with `rows`. Cells that could not be estimated stay nan, and the
        others sum to what they were estimated to hold together.
        """
        table = self.share
        known = np.isfinite(table)
        made = np.full_like(table, np.nan)
        total = self._known_total(known)
        if total <= 0:
            return np.where(known, 0.0, np.nan)
        weights = 1.0 / self.std_error[known] ** 2
        made[known] = total * project_simplex(table[known] / total, weights)
        return made

    def shrunk(self) -> FloatArray:
        """The joint shares moved towards what all cells have in common, shape (R, C).

        Each cell becomes its posterior mean under a law of the ratio of shares to shares under
        independence, which is learnt from all cells together (empirical Bayes). Much closer to the
        truth as a whole than `projected` in large tables and where the association is weak against
        the noise; a pair that is unlike all others may be drawn in too far. Nowhere negative,
        biased cell by cell, and without intervals, like `projected`.
        """
        from rappor.decoding.shrunk_table import shrunk_table

        errors = [np.array([value.std_error for value in margin]) for margin in self.margins]
        expected = np.asarray(self.rows.columns["expected"], np.float64)
        made = shrunk_table(self.share, self.std_error, expected, (errors[0], errors[1]))
        known = np.isfinite(made)
        total, held = self._known_total(known), float(made[known].sum())
        return np.where(known, made * (total / held if held > 0 else 0.0), np.nan)

    def _known_total(self, known: BoolArray) -> float:
        """What the cells that could be estimated hold together."""
        if known.all():
            return 1.0
        return min(max(float(self.share[known].sum()), 0.0), 1.0)

    def to_pandas(self) -> Any:
        """The cells as a pandas DataFrame."""
        return frames._package("pandas", "to_pandas").DataFrame(self.columns())

    def columns(self) -> dict[str, list[Any]]:
        """The columns by name, one entry for each cell."""
        first, second = self.labels
        named: dict[str, list[Any]] = {
            "first": [value for value in first for _ in second],
            "second": [value for _ in first for value in second],
        }
        for name, table in self.rows.columns.items():
            named[name] = np.asarray(table).ravel().tolist()
        return named

    def plot(self) -> Chart:
        """A heat map of the joint shares with both margins."""
        from rappor.decoding.association_table import sentences

        title, *words = sentences(self)
        return Chart(association_panel(self, title.removesuffix("."), words).in_file())


def cells_of(
    fit: JointFit,
    labels: tuple[tuple[str, ...], tuple[str, ...]],
    p_value: FloatArray,
    adjusted: FloatArray,
    associated: BoolArray,
) -> JointCells:
    """The columns of all cells from a fit and its tests; tables have the shape (R, C)."""
    error = np.sqrt(fit.variance)
    rows, columns = fit.margins
    given_first = _given(fit, rows[:, None], fit.margin_variances[0][:, None], fit.with_row)
    given_second = _given(fit, columns[None], fit.margin_variances[1][None], fit.with_column)
    table: dict[str, FloatArray | BoolArray] = {
        "share": fit.share + 0.0,
        "std_error": error,
        "low_95": fit.share - Z_95 * error,
        "high_95": fit.share + Z_95 * error,
        "expected": fit.share - fit.departure,
        "departure": fit.departure,
        "departure_std_error": np.sqrt(fit.departure_variance),
        "p_value": p_value,
        "adjusted_p_value": adjusted,
        "associated": associated,
        "share_given_first": given_first[0],
        "given_first_low_95": given_first[1],
        "given_first_high_95": given_first[2],
        "share_given_second": given_second[0],
        "given_second_low_95": given_second[1],
        "given_second_high_95": given_second[2],
    }
    return JointCells(labels, table)


def margins_of(
    fit: JointFit, labels: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[tuple[MarginShare, ...], tuple[MarginShare, ...]]:
    """The shares of both fields by themselves."""
    made = []
    for values, shares, variances in zip(labels, fit.margins, fit.margin_variances, strict=True):
        pairs = zip(values, shares.tolist(), np.sqrt(variances).tolist(), strict=True)
        made.append(
            tuple(
                MarginShare(value, share, error, share - Z_95 * error, share + Z_95 * error)
                for value, share, error in pairs
            )
        )
    return made[0], made[1]


def unlisted(fit: JointFit, has_other: bool) -> tuple[float, float, float]:
    """The share of reports outside the listed pairs, with its interval."""
    if not has_other:
        return 0.0, 0.0, 0.0
    share, variance = fit.listed
    reach = Z_95 * math.sqrt(variance)
    return 1.0 - share, 1.0 - share - reach, 1.0 - share + reach


def _given(
    fit: JointFit, total: FloatArray, variance: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cell over sum, with its interval from Fieller's theorem.

    All r with (cell - r sum)² <= z² Var(cell - r sum): right also where the sum is small. nan if
    the sum is not clearly above 0, where the set is not an interval. No more than the part from 0
    to 1, where the truth is: coverage stays what it is.
    """
    square = Z_95**2
    a = total**2 - square * variance
    b = fit.share * total - square * covariance
    c = fit.share**2 - square * fit.variance
    with np.errstate(all="ignore"):
        known = (a > 0) & (total > _KNOWN * np.sqrt(variance))
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        middle = np.where(known, fit.share / total, np.nan)
        low, high = (np.where(known, (b + sign * root) / a, np.nan) for sign in (-1, 1))
    return np.clip(middle, 0.0, 1.0), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
