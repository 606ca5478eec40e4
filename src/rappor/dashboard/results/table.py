"""The table of the Results page: its rows, their order, and one page of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.charts.rows import NOT_DETECTED, chosen
from rappor.dashboard.page_query import DEFAULT_SORT, PAGE_ROWS, PageQuery
from rappor.dashboard.results.serialization import StoredDecode
from rappor.decoding.differences import Difference
from rappor.decoding.result import Row

Order = NDArray[np.intp]


class TableLine(NamedTuple):
    """One row; `other` and `gap` are those of a comparison.

    `made_up` and `hidden` are how many forged reports would have made it up or would hide it.
    """

    row: Row
    other: Row | None = None
    gap: Difference | None = None
    made_up: float = math.nan
    hidden: float = math.nan


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One page of a table.

    Attributes:
        lines: its rows.
        matching: the number of rows that match the search, or are shown without one.
        every: the number of all rows.
        page: which page, from 1 on.
        pages: the number of pages.
    """

    lines: tuple[TableLine, ...]
    matching: int
    every: int
    page: int
    pages: int


def table_of(result: StoredDecode, query: PageQuery) -> ResultTable:
    """The page of the table that a query asks for; the last page if there is no such page."""
    order = _order(result, query) if query.q or query.every else _usual(result, query)
    pages = max(1, -(-len(order) // PAGE_ROWS))
    page = min(query.page, pages)
    here = order[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    made_up, hidden = result.decoded.forged_reports()
    lines = tuple(
        line_at(result, int(index))._replace(
            made_up=float(made_up[index]), hidden=float(hidden[index])
        )
        for index in here
    )
    return ResultTable(lines, len(order), len(result.decoded.rows), page, pages)


def line_at(result: StoredDecode, index: int) -> TableLine:
    """The row at a place of the result."""
    row = result.decoded.rows.row(index)
    if result.other is None or result.compared is None:
        return TableLine(row)
    return TableLine(row, result.other.rows.row(index), result.compared.rows.row(index))


def matching(result: StoredDecode, query: PageQuery) -> Order:
    """The places of all rows that match the search, sorted; files hold these rows."""
    return _order(result, query)


def chart_lines(result: StoredDecode, max_rows: int) -> list[TableLine]:
    """The rows of a chart, in its order."""
    place = {string: index for index, string in enumerate(result.decoded.rows.strings)}
    if result.decoded.kind == "ordinal":
        return [line_at(result, index) for index in range(min(len(result.decoded.rows), max_rows))]
    return [line_at(result, place[row.string]) for row in chosen(result.decoded, max_rows)]


def _usual(result: StoredDecode, query: PageQuery) -> Order:
    """Detected rows and the next few, or all rows of a short list; sorted."""
    decoded = result.decoded
    if decoded.kind != "string":
        return _order(result, query)
    shown = {row.string for row in chosen(decoded, len(decoded.detected) + NOT_DETECTED)}
    if result.compared is not None:
        shown |= {row.string for row in result.compared.different}
    strings = decoded.rows.strings
    order = _order(result, query)
    return np.array([index for index in order if strings[int(index)] in shown], np.intp)


def _order(result: StoredDecode, query: PageQuery) -> Order:
    rows = result.decoded.rows
    found = np.arange(len(rows))
    if query.q:
        wanted = query.q.casefold()
        strings = enumerate(rows.strings)
        found = np.array([i for i, text in strings if wanted in text.casefold()], np.intp)
    column = query.sort.removeprefix("-")
    if column == "place" or (query.sort == DEFAULT_SORT and result.decoded.kind != "ordinal"):
        return found[::-1] if query.sort == "-place" else found  # the order of the result
    if column == "string":
        keys = sorted(found.tolist(), key=lambda index: rows.strings[index])
        return np.array(keys[::-1] if query.sort.startswith("-") else keys, np.intp)
    values = _values(result, column)[found]
    values = np.where(np.isnan(values), -np.inf, values)
    return found[np.argsort(-values if query.sort.startswith("-") else values, kind="stable")]


def _values(result: StoredDecode, column: str) -> NDArray[np.float64]:
    rows = result.decoded.rows
    if column == "snr":
        nothing = np.full(len(rows), np.nan)
        error = rows.std_error
        found: NDArray[np.float64] = np.divide(
            rows.raw_estimate, error, out=nothing, where=error > 0
        )
        return found
    if column in ("other", "difference"):
        if result.other is None or result.compared is None:
            return rows.estimate
        gaps = result.compared.rows
        return result.other.rows.estimate if column == "other" else gaps.difference
    values: NDArray[np.float64] = np.asarray(getattr(rows, column), np.float64)
    return values
