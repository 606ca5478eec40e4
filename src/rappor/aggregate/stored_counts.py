"""Counts from a store, ready to decode; reports from files, ready to be stored (R20, R32, R35).

Cells of one period add up as parts of one population. Over periods a client's reports on one value
add up too, which `reports_per_client` keeps track of. Each (p, q) of a schedule stays by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from rappor.aggregate.counts import Counts
from rappor.collection import Collection, days_of
from rappor.errors import DecodeError
from rappor.params import Params
from rappor.store import StoredCounts

BY_PERIOD = "period"  # a split like that by a dimension


def counts_of(stored: StoredCounts, collection: Collection) -> Counts:
    """The counts of one cell, with all that its definition says about them.

    Raises:
        DecodeError: the cell is not one of this collection, or was made with other parameters.
    """
    key = stored.cell
    if (key.collection, key.version) != (collection.name, collection.version):
        raise DecodeError(f"{key} is no cell of {collection.name} v{collection.version}")
    params = collection.params_for(key.period)
    if params.digest != stored.params_digest:
        raise DecodeError(f"{key} was made with other parameters than its definition says")
    return Counts(
        params,
        stored.totals,
        stored.ones,
        kind=collection.kind,
        dialect=collection.dialect if collection.kind == "string" else None,
        collection=collection.name,
        version=collection.version,
        reports_per_client=collection.reports_per_period,
    )


def sum_cells(cells: Iterable[StoredCounts], collection: Collection) -> list[Counts]:
    """One Counts for each (p, q) that the cells were made with, in the order of their periods.

    `reports_per_client` is reports_per_period times the periods, and 1 where a client reports once.
    """
    periods: dict[tuple[Params, str], Counts] = {}
    for cell in sorted(cells, key=lambda each: each.cell):
        found = counts_of(cell, collection)
        key = (found.params, cell.cell.period)
        periods[key] = periods[key] + found if key in periods else found
    groups: dict[Params, list[Counts]] = {}
    for (params, _), found in periods.items():
        groups.setdefault(params, []).append(found)
    summed = [Counts.sum_periods(group) for group in groups.values()]
    if collection.one_time:
        return [replace(each, reports_per_client=1) for each in summed]
    return summed


def split(cells: Iterable[StoredCounts], by: str) -> dict[str, list[StoredCounts]]:
    """Cells by the value of a dimension, or by period.

    Raises:
        DecodeError: a cell without that dimension.
    """
    found: dict[str, list[StoredCounts]] = {}
    for cell in cells:
        pairs = dict(cell.cell.pairs)
        if by != BY_PERIOD and by not in pairs:
            declared = ", ".join([*pairs, BY_PERIOD])
            raise DecodeError(f"{cell.cell.collection} can be split by {declared}; not by {by}")
        found.setdefault(cell.cell.period if by == BY_PERIOD else pairs[by], []).append(cell)
    return dict(sorted(found.items()))


def within(period: str, first: date | None, last: date | None) -> bool:
    """Whether a period lies between two days; it may touch neither from outside.

    >>> within("2026-W47", date(2026, 11, 16), None), within("2026-W47", date(2026, 11, 17), None)
    (True, False)
    """
    start, end = days_of(period)
    return (first is None or first <= start) and (last is None or end <= last)
