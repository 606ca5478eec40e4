"""What a comparison returns: a line for every candidate, most certain difference first (R19)."""

from __future__ import annotations

import html as escaping
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rappor.charts.numbers import show_p, show_percent, show_share
from rappor.checks import show
from rappor.decoding import frames
from rappor.errors import DecodeError

FloatArray = NDArray[np.float64]

_MOST_ROWS = 50


class Difference(NamedTuple):
    """One candidate: its share in either collection, and what separates them.

    `difference` is share_one - share_two. Where `different` is true its interval allows for having
    been chosen by its size; `std_error` is infinite for a candidate that cannot be tested.
    """

    string: str
    share_one: float
    share_two: float
    difference: float
    std_error: float
    p_value: float
    adjusted_p_value: float
    low_95: float
    high_95: float
    different: bool


@dataclass(frozen=True, slots=True, eq=False)
class Differences(Sequence[Difference]):
    """The rows as columns, made into `Difference`s when asked for; smallest p-value first."""

    strings: Sequence[str]
    share_one: FloatArray = field(repr=False)
    share_two: FloatArray = field(repr=False)
    std_error: FloatArray = field(repr=False)
    p_value: FloatArray = field(repr=False)
    adjusted_p_value: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    different: NDArray[np.bool_] = field(repr=False)

    def __len__(self) -> int:
        return len(self.share_one)

    def row(self, index: int) -> Difference:
        """The row at a position from 0 on."""
        return Difference(
            string=self.strings[index],
            share_one=float(self.share_one[index]),
            share_two=float(self.share_two[index]),
            difference=float(self.share_one[index] - self.share_two[index]),
            std_error=float(self.std_error[index]),
            p_value=float(self.p_value[index]),
            adjusted_p_value=float(self.adjusted_p_value[index]),
            low_95=float(self.low[index]),
            high_95=float(self.high[index]),
            different=bool(self.different[index]),
        )

    def columns(self) -> dict[str, Any]:
        """The columns by name, as arrays (the strings as a list)."""
        return {
            "string": list(self.strings),
            "share_one": self.share_one,
            "share_two": self.share_two,
            "difference": self.share_one - self.share_two,
            "std_error": self.std_error,
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "low_95": self.low,
            "high_95": self.high,
            "different": self.different,
        }

    @overload
    def __getitem__(self, index: int) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> list[Difference]: ...
    def __getitem__(self, index: int | slice) -> Difference | list[Difference]:
        if isinstance(index, slice):
            return [self.row(each) for each in range(*index.indices(len(self)))]
        return self.row(range(len(self))[index])

    def __iter__(self) -> Iterator[Difference]:
        return (self.row(index) for index in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The result of `compare`.

    Attributes:
        rows: every candidate, a lazy sequence, smallest p-value first.
        reports: N of the first and of the second.
        candidates: M, the candidates tested and corrected for.
        robust: whether heavy strings are missing from the list in either, so that both were fitted
            by the robust path.
        untestable: candidates that the strings found in either explain away; their p-value is 1.
        warnings: what a reader should know before believing the table, in plain English.
    """

    rows: Differences
    reports: tuple[int, int]
    candidates: int
    robust: bool
    untestable: tuple[str, ...]
    warnings: tuple[str, ...]
    kind: str
    dialect: str | None
    correction: str
    alpha: float

    @property
    def different(self) -> list[Difference]:
        """The rows whose shares differ, by the corrected test; smallest p-value first."""
        return [self.rows.row(int(index)) for index in np.flatnonzero(self.rows.different)]

    def row(self, string: str) -> Difference:
        """The row of one candidate."""
        try:
            return self.rows.row(list(self.rows.strings).index(string))
        except ValueError:
            raise DecodeError(f"{show(string)} is not among the candidates") from None

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        pyarrow = frames._package("pyarrow", "to_arrow")
        found = self.rows.columns()
        return pyarrow.table({**found, "string": pyarrow.array(found["string"], pyarrow.string())})

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return frames._package("pandas", "to_pandas").DataFrame(self.rows.columns())

    def _repr_html_(self) -> str:
        found = self.different
        verb = "differs" if len(found) == 1 else "differ"
        said = [
            f"{len(found):,} of {self.candidates:,} candidates {verb} between {self.reports[0]:,} "
            f"and {self.reports[1]:,} reports.",
            *self.warnings,
        ]
        head = ("String", "First", "Second", "Difference", "95 % interval", "Adjusted p-value")
        cells = "".join(f'<th scope="col">{name}</th>' for name in head)
        body = "".join(_html_row(row) for row in found[:_MOST_ROWS])
        if not found:
            body = f'<tr><td colspan="{len(head)}">No difference was found.</td></tr>'
        elif len(found) > _MOST_ROWS:
            note = f"{len(found) - _MOST_ROWS:,} more rows that differ are not shown."
            body += f'<tr><td colspan="{len(head)}">{note}</td></tr>'
        caption = "<br>".join(escaping.escape(line) for line in said)
        return (
            f"<table><caption>{caption}</caption><thead><tr>{cells}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


def _html_row(row: Difference) -> str:
    shown = (
        show_percent(row.share_one),
        show_percent(row.share_two),
        *show_share(row.difference, row.low_95, row.high_95),
        show_p(row.adjusted_p_value),
    )
    name = f'<th scope="row">{escaping.escape(row.string)}</th>'
    return f"<tr>{name}{''.join(f'<td>{escaping.escape(cell)}</td>' for cell in shown)}</tr>"
