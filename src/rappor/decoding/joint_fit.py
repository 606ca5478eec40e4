"""What a fit of two variables gives: the joint table, its variances, and a test of independence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rappor.typing import FloatArray


class ListedField(Protocol):
    """One field of a joint table, however it was reported."""

    @property
    def name(self) -> str:
        """What the field is called."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Its values; for an open field the last one is "other"."""

    @property
    def is_open(self) -> bool:
        """Whether there may be values that are not listed."""

    @property
    def listed(self) -> int:
        """How many values are listed: all but "other"."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the list."""


class ChiSquare(NamedTuple):
    """A test of independence.

    Attributes:
        statistic: what is compared with a χ² law, of mean `freedom` where variables are
            independent.
        freedom: degrees of freedom; not whole where reports repeat.
        p_value: the chance of such a statistic where they are independent.
    """

    statistic: float
    freedom: float
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class JointFit:
    """A joint table with all that is said about it; arrays have a row for each first value.

    Attributes:
        share: the estimates, shape (R, C); they may be negative, and sum to 1 over all cells. Here
            and below, nan where nothing tells a share.
        variance: of the estimates around the realised shares, shape (R, C).
        margins: shares of the first and of the second variable.
        margin_variances: of those.
        with_row: covariance of a cell and its row's sum; with_column: of a cell and its column's.
        departure: cell minus row times column: 0 where the variables are independent.
        departure_variance: its variance where they are independent.
        independence: the score test of all departures together.
        listed: the share of all listed pairs together, and its variance.
        excess: by how much the residuals' variance exceeds what noise explains, as a factor: for
            bits of the first variable and of the second; 1 where nothing is missing.
    """

    share: FloatArray = field(repr=False)
    variance: FloatArray = field(repr=False)
    margins: tuple[FloatArray, FloatArray] = field(repr=False)
    margin_variances: tuple[FloatArray, FloatArray] = field(repr=False)
    with_row: FloatArray = field(repr=False)
    with_column: FloatArray = field(repr=False)
    departure: FloatArray = field(repr=False)
    departure_variance: FloatArray = field(repr=False)
    independence: ChiSquare
    listed: tuple[float, float]
    excess: tuple[float, float] = (1.0, 1.0)
