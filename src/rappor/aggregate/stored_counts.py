"""Counts from a store, ready to decode (§4).

Cells of one period add up as parts of one population. Over periods, a client's reports on one value
add up too, and `reports_per_client` says how many. Each (p, q) of a schedule has its own Counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from rappor.aggregate.counts import Counts
from rappor.collection import Collection, days_of
from rappor.errors import DecodeError
from rappor.mechanism.kinds import HASHED
from rappor.params import Params
from rappor.store import StoredCounts

BY_PERIOD = "period"  # splits by period, as a dimension does by its values


def counts_of(stored: StoredCounts, collection: Collection) -> Counts:
    """The counts of one cell, with everything that its definition says about them.

    Raises:
        DecodeError: the cell is of another collection, or was made with other parameters.
    """
    key = stored.cell
    if (key.collection, key.version) != (collection.name, collection.version):
        raise DecodeError(f"{key} is not a cell of {collection.name} v{collection.version}")
    params = collection.params_for(key.period)
    if params.digest != stored.params_digest:
        raise DecodeError(f"{key} was made with other parameters than its definition says")
    return Counts(
        params,
        stored.totals,
        stored.ones,
        kind=collection.kind,
        dialect=collection.dialect if collection.kind in HASHED else None,
        collection=collection.name,
        version=collection.version,
        reports_per_client=collection.reports_per_period,
    )


def sum_cells(cells: Iterable[StoredCounts], collection: Collection) -> list[Counts]:
    """One Counts for each (p, q) that the cells were made with, in the order of their periods.

    `reports_per_client` is reports_per_period times the periods, or 1 if a client reports once.
    """
    periods: dict[tuple[Params, str], Counts] = {}
    for cell in sorted(cells, key=lambda stored: stored.cell):
        found = counts_of(cell, collection)
        key = (found.params, cell.cell.period)
        periods[key] = periods[key] + found if key in periods else found
    groups: dict[Params, list[Counts]] = {}
    for (params, _), found in periods.items():
        groups.setdefault(params, []).append(found)
    summed = [Counts.sum_periods(group) for group in groups.values()]
    if collection.one_time:
        return [replace(counts, reports_per_client=1) for counts in summed]
    return summed


def split(cells: Iterable[StoredCounts], by: str) -> dict[str, list[StoredCounts]]:
    """Cells by the value of a dimension, or by period.

    Raises:
        DecodeError: a cell does not have that dimension.
    """
    found: dict[str, list[StoredCounts]] = {}
    for cell in cells:
        pairs = dict(cell.cell.pairs)
        if by != BY_PERIOD and by not in pairs:
            declared = ", ".join([*pairs, BY_PERIOD])
            raise DecodeError(f"{cell.cell.collection} can be split by {declared}; not by {by}")
        found.setdefault(cell.cell.period if by == BY_PERIOD else pairs[by], []).append(cell)
    return dict(sorted(found.items()))


def single(counts: Sequence[Counts]) -> Counts:
    """The only Counts of one side of a comparison.

    Raises:
        DecodeError: there is none, or its periods have several p and q.
    """
    if not counts:
        raise DecodeError("there are no reports left in these periods")
    if len(counts) > 1:
        raise DecodeError(
            "these periods have different p and q: compare periods with the same p and q"
        )
    return counts[0]


def within(period: str, first: date | None, last: date | None) -> bool:
    """Whether a whole period lies between two days, both included.

    >>> within("2026-W47", date(2026, 11, 16), None), within("2026-W47", date(2026, 11, 17), None)
    (True, False)
    """
    start, end = days_of(period)
    return (first is None or first <= start) and (last is None or end <= last)
