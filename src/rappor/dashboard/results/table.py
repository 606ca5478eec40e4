"""The table under the chart (R42): which rows, in which order, and which page of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.charts.rows import NOT_DETECTED, chosen
from rappor.dashboard.results.kept import Kept
from rappor.dashboard.view import DEFAULT_SORT, PAGE_ROWS, View
from rappor.decoding.compare import Difference
from rappor.decoding.result import Row

Order = NDArray[np.intp]


class TableLine(NamedTuple):
    """One row; `other` and `gap` where two sides are compared."""

    row: Row
    other: Row | None = None
    gap: Difference | None = None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One page of a table.

    Attributes:
        lines: its rows.
        matching: rows that the search finds, or that are shown without one.
        every: all rows.
        page: which page, from 1 on.
        pages: how many there are.
    """

    lines: tuple[TableLine, ...]
    matching: int
    every: int
    page: int
    pages: int


def table_of(kept: Kept, view: View) -> ResultTable:
    """The page of the table that a view asks for; the last one where it asks for too much."""
    order = _order(kept, view) if view.q or view.every else _usual(kept, view)
    pages = max(1, -(-len(order) // PAGE_ROWS))
    page = min(view.page, pages)
    here = order[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    lines = tuple(line_at(kept, int(index)) for index in here)
    return ResultTable(lines, len(order), len(kept.decoded.rows), page, pages)


def line_at(kept: Kept, index: int) -> TableLine:
    """The row at a place of the kept table."""
    row = kept.decoded.rows.row(index)
    if kept.other is None or kept.compared is None:
        return TableLine(row)
    return TableLine(row, kept.other.rows.row(index), kept.compared.rows.row(index))


def matching(kept: Kept, view: View) -> Order:
    """The places of all rows that the search finds, sorted: what files hold."""
    return _order(kept, view)


def chart_lines(kept: Kept, most: int) -> list[TableLine]:
    """The rows of a chart, in its order."""
    place = {string: index for index, string in enumerate(kept.decoded.rows.strings)}
    if kept.decoded.kind == "ordinal":
        return [line_at(kept, index) for index in range(min(len(kept.decoded.rows), most))]
    return [line_at(kept, place[row.string]) for row in chosen(kept.decoded, most)]


def _usual(kept: Kept, view: View) -> Order:
    """What is detected and the next few, or all of a short list; sorted."""
    decoded = kept.decoded
    if decoded.kind != "string":
        return _order(kept, view)
    shown = {row.string for row in chosen(decoded, len(decoded.detected) + NOT_DETECTED)}
    if kept.compared is not None:
        shown |= {row.string for row in kept.compared.different}
    strings = decoded.rows.strings
    order = _order(kept, view)
    return np.array([index for index in order if strings[int(index)] in shown], np.intp)


def _order(kept: Kept, view: View) -> Order:
    rows = kept.decoded.rows
    found = np.arange(len(rows))
    if view.q:
        wanted = view.q.casefold()
        strings = enumerate(rows.strings)
        found = np.array([i for i, text in strings if wanted in text.casefold()], np.intp)
    column = view.sort.removeprefix("-")
    if column == "place" or (view.sort == DEFAULT_SORT and kept.decoded.kind != "ordinal"):
        return found[::-1] if view.sort == "-place" else found  # as it is kept
    if column == "string":
        keys = sorted(found.tolist(), key=lambda index: rows.strings[index])
        return np.array(keys[::-1] if view.sort.startswith("-") else keys, np.intp)
    values = _values(kept, column)[found]
    values = np.where(np.isnan(values), -np.inf, values)
    return found[np.argsort(-values if view.sort.startswith("-") else values, kind="stable")]


def _values(kept: Kept, column: str) -> NDArray[np.float64]:
    rows = kept.decoded.rows
    if column == "snr":
        nothing = np.full(len(rows), np.nan)
        error = rows.std_error
        found: NDArray[np.float64] = np.divide(rows.estimate, error, out=nothing, where=error > 0)
        return found
    if column in ("other", "difference"):
        if kept.other is None or kept.compared is None:
            return rows.estimate
        gaps = kept.compared.rows
        return kept.other.rows.estimate if column == "other" else gaps.share_one - gaps.share_two
    values: NDArray[np.float64] = np.asarray(getattr(rows, column), np.float64)
    return values
