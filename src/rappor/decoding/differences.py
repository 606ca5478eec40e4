"""The result of a comparison: each candidate's share on both sides, and what separates them."""

from __future__ import annotations

import html as escaping
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rappor.charts import Chart
from rappor.charts.comparison import Pair, comparison_panel, comparison_title
from rappor.charts.numbers import MISSING, show_difference, show_finding, show_p
from rappor.charts.rows import MAX_ROWS
from rappor.charts.rows import chosen as chosen_rows
from rappor.checks import show
from rappor.decoding import frames
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check
from rappor.decoding.result import Decoded
from rappor.errors import DecodeError
from rappor.typing import FloatArray

_MAX_ROWS = 50  # in a notebook


class Difference(NamedTuple):
    """One candidate: its share in either collection, and what separates them.

    `difference` lies within its interval. Where `different` is true both allow for the fact that
    the row was chosen by its size, and lie on its side of 0; where not, the interval holds 0.
    `raw_difference` is share_one - share_two. `std_error` is infinite for a candidate that cannot
    be tested.
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
    raw_difference: float
    different: bool

    @property
    def side_only(self) -> bool:
        """Whether the shares differ, but by how much is known as an upper limit only."""
        return self.different and 0 in (self.low_95, self.high_95)


@dataclass(frozen=True, slots=True, eq=False)
class Differences(Sequence[Difference]):
    """The rows as columns, made into `Difference`s when asked for; smallest p-value first."""

    strings: Sequence[str]
    share_one: FloatArray = field(repr=False)
    share_two: FloatArray = field(repr=False)
    difference: FloatArray = field(repr=False)
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
            difference=float(self.difference[index]),
            std_error=float(self.std_error[index]),
            p_value=float(self.p_value[index]),
            adjusted_p_value=float(self.adjusted_p_value[index]),
            low_95=float(self.low[index]),
            high_95=float(self.high[index]),
            raw_difference=float(self.raw_difference[index]),
            different=bool(self.different[index]),
        )

    @property
    def raw_difference(self) -> FloatArray:
        """What the shares differ by, whatever was chosen."""
        found: FloatArray = self.share_one - self.share_two
        return found

    def columns(self) -> dict[str, Any]:
        """The columns by name, as arrays (the strings as a list), for any table library.

        An end of an interval is nan where a row differs and only its side is known: the difference
        is not 0, and how far from 0 nobody can say.
        """
        from_0, to_0 = (self.different & (end == 0) for end in (self.low, self.high))
        return {
            "string": list(self.strings),
            "share_one": self.share_one,
            "share_two": self.share_two,
            "difference": self.difference,
            "std_error": self.std_error,
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "low_95": np.where(from_0, np.nan, self.low),
            "high_95": np.where(to_0, np.nan, self.high),
            "raw_difference": self.raw_difference,
            "side_only": from_0 | to_0,
            "different": self.different,
        }

    @overload
    def __getitem__(self, index: int) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> list[Difference]: ...
    def __getitem__(self, index: int | slice) -> Difference | list[Difference]:
        if isinstance(index, slice):
            return [self.row(place) for place in range(*index.indices(len(self)))]
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
        names: what the first and the second are, in words.
        checks: whether both results are good; see `Decoded.checks`.
        notes: what was done to the input, in plain English.
        title: what was compared, such as "homepage v1"; empty for counts without a name.
        sides: the decoded table of each side, for `plot` and for tables.
    """

    rows: Differences
    reports: tuple[int, int]
    candidates: int
    robust: bool
    untestable: tuple[str, ...]
    kind: str
    dialect: str | None
    correction: Correction
    alpha: float
    names: tuple[str, str] = ("First", "Second")
    checks: tuple[Check, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    title: str = ""
    sides: tuple[Decoded, Decoded] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        from rappor.decoding.result_table import difference_summary

        return f"<Compared {difference_summary(self)}>"

    def __str__(self) -> str:
        """The table that `rappor compare` prints, with its notes and warnings."""
        from rappor.decoding.result_table import whole_difference_text

        return whole_difference_text(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of failed checks, which a reader should know before believing the table."""
        return tuple(check.text for check in self.checks if not check.ok)

    @property
    def different(self) -> list[Difference]:
        """The rows whose shares differ, by the corrected test; smallest p-value first."""
        return [self.rows.row(int(index)) for index in np.flatnonzero(self.rows.different)]

    def row(self, string: str) -> Difference:
        """The row of one candidate."""
        try:
            return self.rows.row(list(self.rows.strings).index(string))
        except ValueError:
            raise DecodeError(
                f"{show(string)} is not among the candidates; add it, and compare again"
            ) from None

    def shown_shares(self, strings: Sequence[str]) -> list[tuple[str, str]]:
        """The shares of candidates on either side by itself, as decoded tables and pages show them.

        With its interval if it was detected there, and an upper limit if not; dashes for a
        comparison without the two tables.
        """
        if self.sides is None:
            return [(MISSING, MISSING)] * len(strings)
        first, second = (_shown(side, strings) for side in self.sides)
        return list(zip(first, second, strict=True))

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        pyarrow = frames._package("pyarrow", "to_arrow")
        columns = self.rows.columns()
        return pyarrow.table(
            {**columns, "string": pyarrow.array(columns["string"], pyarrow.string())}
        )

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return frames._package("pandas", "to_pandas").DataFrame(self.rows.columns())

    def plot(self) -> Chart:
        """Both sides of each row with 95 % intervals, and the difference; `.save(path)`.

        At most 30 rows: those that differ, then the largest of the first side.
        """
        if self.sides is None:
            raise DecodeError(
                "a comparison without its two tables cannot be drawn; draw the one that compare "
                "returned"
            )
        first, second = (side.rows for side in self.sides)
        tables = (first.strings, second.strings, self.rows.strings)
        one, two, tested = ({text: place for place, text in enumerate(table)} for table in tables)
        strings = [row.string for row in self.different]
        strings += [row.string for row in chosen_rows(self.sides[0]) if row.string in tested]
        pairs = [
            Pair(
                first.row(one[string]),
                second.row(two[string]),
                self.rows.row(tested[string]),
                self.reports,
            )
            for string in list(dict.fromkeys(strings))[:MAX_ROWS]
        ]
        title = comparison_title(len(self.different), self.candidates, self.kind, self.names)
        words = (
            f"Differences are {self.names[0]} minus {self.names[1]}, in percentage points, with "
            "95 % intervals.",
        )
        return Chart(comparison_panel(pairs, self.names, title, words, page=False).in_file())

    def _repr_html_(self) -> str:
        different = self.different
        verb = "differs" if len(different) == 1 else "differ"
        lines = [
            f"{len(different):,} of {self.candidates:,} candidates {verb} between "
            f"{self.reports[0]:,} and {self.reports[1]:,} reports.",
            *self.notes,
            *self.warnings,
        ]
        head = (
            "String",
            *map(escaping.escape, self.names),
            "Difference",
            "95 % interval",
            "Adjusted p-value",
        )
        cells = "".join(f'<th scope="col">{name}</th>' for name in head)
        shown = different[:_MAX_ROWS]
        shares = self.shown_shares([row.string for row in shown])
        body = "".join(map(_html_row, shown, shares))
        if not different:
            body = f'<tr><td colspan="{len(head)}">No difference was found.</td></tr>'
        elif len(different) > _MAX_ROWS:
            note = f"{len(different) - _MAX_ROWS:,} more rows that differ are not shown."
            body += f'<tr><td colspan="{len(head)}">{note}</td></tr>'
        caption = "<br>".join(escaping.escape(line) for line in lines)
        return (
            f"<table><caption>{caption}</caption><thead><tr>{cells}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


def _shown(side: Decoded, strings: Sequence[str]) -> list[str]:
    wanted = set(strings)
    place = {text: index for index, text in enumerate(side.rows.strings) if text in wanted}
    return [
        str(show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected))
        for row in (side.rows.row(place[string]) for string in strings)
    ]


def _html_row(row: Difference, shares: tuple[str, str]) -> str:
    gap = show_difference(row.difference, row.low_95, row.high_95, row.different)
    shown = (*shares, *gap, show_p(row.adjusted_p_value))
    name = f'<th scope="row">{escaping.escape(row.string)}</th>'
    return f"<tr>{name}{''.join(f'<td>{escaping.escape(cell)}</td>' for cell in shown)}</tr>"
