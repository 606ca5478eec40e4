"""Rows of counts, one for each cell and cohort. A commit writes only the rows that it changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey
from rappor.store.checksums import typed, xor
from rappor.store.contract import Fold, StoredCounts
from rappor.store.fold_tables import (
    WORD,
    Seal,
    Words,
    changed_rows,
    check_fold,
    next_folds,
    parity_of,
    sealer,
)
from rappor.store.sqlite import cell_rows, definitions, report_chunks
from rappor.store.sqlite.cell_rows import CellRow
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.row_cache import RowCache
from rappor.typing import IntArray

_FEW = 4  # up to a quarter of the cohorts are looked up one by one


def apply(connection: Connection, folds: Iterable[Fold], cache: RowCache) -> int:
    """Add folds to their cells within a transaction; return their number of reports."""
    remaining, added = iter(folds), 0
    while some := next_folds(remaining):
        added += _apply(connection, some, cache)
        cache.shrink()
    return added


def _apply(connection: Connection, folds: Iterable[Fold], cache: RowCache) -> int:
    grouped: dict[CellKey, list[Fold]] = {}
    for fold in folds:
        grouped.setdefault(fold.cell, []).append(fold)
    added = 0
    for key, group in grouped.items():
        cell = cache.cells.get(key) or _cell_of(connection, key)
        cache.cells[key] = cell
        for fold in group:
            check_fold(fold, cell)
        filled = [fold for fold in group if fold.total]
        if filled:
            _add_counts(connection, cell, filled, cache)
            report_chunks.add(connection, cell, filled)
        cell.save(connection)
        added += sum(fold.total for fold in filled)
    return added


def _cell_of(connection: Connection, key: CellKey) -> CellRow:
    cell = cell_rows.find(connection, key)
    if cell is None:
        cell = CellRow(key, *definitions.expected(connection, key))
        cell.create(connection)
    return cell


def _add_counts(
    connection: Connection, cell: CellRow, folds: Sequence[Fold], cache: RowCache
) -> None:
    first = cell.slots[0]
    unknown = {int(fold.cohort) for fold in folds if first + int(fold.cohort) not in cache.counts}
    if unknown:
        _read_counts(connection, cell, sorted(unknown), cache)
    changed, seals = changed_rows(cell, folds, first, cache.counts)
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET data=excluded.data, "
        "checksum=excluded.checksum",
        changed,
    )
    for row in changed:
        cache.learn(*row)
    cell.cohorts += len(changed) - len(seals)
    cell.reports += sum(fold.total for fold in folds)
    cell.parity = xor(cell.parity, parity_of([*seals, *(row[2] for row in changed)]))


def _read_counts(
    connection: Connection, cell: CellRow, cohorts: Sequence[int], cache: RowCache
) -> None:
    """Read and verify the counts of some cohorts into the cache."""
    query = "SELECT id, data, checksum FROM counts WHERE id"
    if _FEW * len(cohorts) < cell.m:
        slots = [cell.slot(cohort) for cohort in cohorts]
        rows = [connection.execute(f"{query}=?", (slot,)).fetchone() for slot in slots]
    else:
        rows = connection.execute(f"{query} BETWEEN ? AND ?", cell.slots).fetchall()
    seal, wanted = sealer(cell), set(cohorts)
    for row in rows:
        if row is not None:
            cohort, table, sum_ = _numbers(cell, row, seal)
            if cohort in wanted:
                cache.learn(cell.slot(cohort), table.tobytes(), sum_)


def _numbers(cell: CellRow, row: object, seal: Seal) -> tuple[int, Words, bytes]:
    """Verify a row; its cohort, its k + 1 numbers and its checksum."""
    slot, data, found = typed(row, "ibb", f"{cell.key}: counts")
    cohort = slot & (1 << COHORT_BITS) - 1
    if cohort >= cell.m or len(data) != (cell.k + 1) * WORD.itemsize or seal(slot, data) != found:
        raise StoreError(f"{cell.key}, cohort {cohort}: the counts are damaged (checksum)")
    return cohort, np.frombuffer(data, WORD), found


def read(connection: Connection, cell: CellRow) -> StoredCounts:
    """The counts of a cell, or StoreError if any of them was changed or is missing."""
    totals: IntArray = np.zeros(cell.m, np.int64)
    ones: IntArray = np.zeros((cell.m, cell.k), np.int64)
    seals, seal = [], sealer(cell)
    query = "SELECT id, data, checksum FROM counts WHERE id BETWEEN ? AND ?"
    for row in connection.execute(query, cell.slots):
        cohort, numbers, found = _numbers(cell, row, seal)
        totals[cohort], ones[cohort] = numbers[0], numbers[1:]
        seals.append(found)
    if (
        parity_of(seals) != cell.parity
        or len(seals) != cell.cohorts
        or sum(totals.tolist()) != cell.reports
    ):
        raise StoreError(f"{cell.key}: the counts are damaged (a cohort is missing or out of date)")
    return StoredCounts(cell.key, cell.params_digest, totals, ones)


def remove(connection: Connection, cell: CellRow) -> None:
    """Delete a cell with its counts and reports."""
    report_chunks.remove(connection, cell)
    connection.execute("DELETE FROM counts WHERE id BETWEEN ? AND ?", cell.slots)
    cell.remove(connection)
