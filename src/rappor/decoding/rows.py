"""The rows of a decoded table: an honest line for every candidate (R42)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rappor.typing import FloatArray


class Row(NamedTuple):
    """One candidate: how many reports hold it, and how sure that is.

    `interval` is in reports, `prop_low_95` and `prop_high_95` are the same as shares; both allow
    for the fact that detected strings were chosen by their size.
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
    """The rows as columns, made into `Row`s when asked for: a million candidates cost arrays only.

    Sorted by estimate, largest first; equal ones by string. `reports` is N.
    """

    reports: int
    strings: Sequence[str]
    estimate: FloatArray
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
            snr=estimate / error if error > 0 else float("nan"),
            detected=bool(self.detected[index]),
            interval=(low, high),
        )

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self.row(each) for each in range(*index.indices(len(self)))]
        return self.row(range(len(self))[index])

    def __iter__(self) -> Iterator[Row]:
        return (self.row(index) for index in range(len(self)))
