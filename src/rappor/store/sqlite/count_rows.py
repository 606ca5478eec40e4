"""Rows of counts, one for each cell and cohort. A commit writes only the rows that it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from hashlib import blake2b
from operator import xor as xor_numbers

import numpy as np
from numpy.typing import NDArray

from rappor.checks import is_whole
from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey
from rappor.store.contract import Fold, StoredCounts
from rappor.store.sqlite import cell_rows, definitions, report_chunks
from rappor.store.sqlite.cell_rows import CellRow
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.row_cache import RowCache
from rappor.store.sqlite.seals import SIZE, typed, xor
from rappor.typing import IntArray

Words = NDArray[np.uint64]
Seal = Callable[[int, bytes], bytes]

_WORD = np.dtype("<u8")
_LARGEST = 2**63 - 1
_AT_ONCE = 4096  # folds; with the next line, limits the memory of an import or a commit
_BYTES_AT_ONCE = 4 * 2**20
_FEW = 4  # up to a quarter of the cohorts are looked up one by one


def apply(connection: Connection, folds: Iterable[Fold], cache: RowCache) -> int:
    """Add folds to their cells within a transaction; return their number of reports."""
    remaining, added = iter(folds), 0
    while some := _next(remaining):
        added += _apply(connection, some, cache)
        cache.shrink()
    return added


def _next(folds: Iterator[Fold]) -> list[Fold]:
    """The next folds, at most the number that memory allows."""
    taken: list[Fold] = []
    size = 0
    for fold in folds:
        taken.append(fold)
        size += getattr(fold.ones, "nbytes", 0) + len(fold.reports or b"")
        if len(taken) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
            break
    return taken


def _apply(connection: Connection, folds: Iterable[Fold], cache: RowCache) -> int:
    grouped: dict[CellKey, list[Fold]] = {}
    for fold in folds:
        grouped.setdefault(fold.cell, []).append(fold)
    added = 0
    for key, group in grouped.items():
        cell = cache.cells.get(key) or _cell_of(connection, key)
        cache.cells[key] = cell
        for fold in group:
            _check(fold, cell)
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


def _check(fold: Fold, cell: CellRow) -> None:
    """StoreError unless the fold fits its cell's definition."""
    wrong = ""
    if fold.params_digest != cell.params_digest:
        wrong = "reports made with other parameters than its definition's"
    elif not is_whole(fold.cohort) or not 0 <= fold.cohort < cell.m:
        wrong = f"cohort must be 0 to {cell.m - 1}, got {fold.cohort!r}"
    elif not is_whole(fold.total) or not 0 <= fold.total <= _LARGEST:
        wrong = "total must be a whole number from 0 on"
    elif not isinstance(fold.ones, np.ndarray) or fold.ones.shape != (cell.k,):
        wrong = f"ones must have the shape ({cell.k},)"
    elif fold.ones.dtype.kind not in "iu":
        wrong = f"ones must be whole numbers, got {fold.ones.dtype}"
    elif fold.reports is not None and len(fold.reports) != fold.total * report_chunks.width(cell.k):
        wrong = f"{len(fold.reports)} bytes are not {fold.total} reports of {cell.k} bits"
    if wrong:
        raise StoreError(f"{fold.cell}: {wrong}")


def _add_counts(
    connection: Connection, cell: CellRow, folds: Sequence[Fold], cache: RowCache
) -> None:
    given = _tables(cell, folds)
    seal, first = _sealer(cell), cell.slots[0]
    unknown = [cohort for cohort in given if first + cohort not in cache.counts]
    if unknown:
        _read_counts(connection, cell, unknown, cache)
    seals, changed = [], []
    for cohort, table in given.items():
        slot = first + cohort
        before = cache.counts.get(slot)
        if before is not None:
            table += np.frombuffer(before[0], _WORD)
            seals.append(before[1])
            if table[0] > _LARGEST:
                raise StoreError(f"{cell.key}, cohort {cohort}: counts above 2^63 - 1")
        data = table.tobytes()
        changed.append((slot, data, seal(slot, data)))
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET data=excluded.data, "
        "checksum=excluded.checksum",
        changed,
    )
    for row in changed:
        cache.learn(*row)
    cell.cohorts += len(given) - len(seals)
    cell.reports += sum(fold.total for fold in folds)
    cell.parity = xor(cell.parity, _parity([*seals, *(row[2] for row in changed)]))


def _tables(cell: CellRow, folds: Sequence[Fold]) -> dict[int, Words]:
    """What folds add, by cohort: the total, then the k ones."""
    ones = np.stack([fold.ones for fold in folds])
    totals = np.array([fold.total for fold in folds], np.int64)
    if (ones < 0).any() or (ones > totals[:, None]).any():
        raise StoreError(f"{cell.key}: ones must be from 0 to the total")
    table = np.empty((len(folds), cell.k + 1), _WORD)
    table[:, 0], table[:, 1:] = totals, ones
    tables: dict[int, Words] = {}
    for fold, numbers in zip(folds, table, strict=True):
        cohort = int(fold.cohort)
        tables[cohort] = numbers if cohort not in tables else tables[cohort] + numbers
    return tables


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
    seal, wanted = _sealer(cell), set(cohorts)
    for row in rows:
        if row is not None:
            cohort, table, sum_ = _numbers(cell, row, seal)
            if cohort in wanted:
                cache.learn(cell.slot(cohort), table.tobytes(), sum_)


def _sealer(cell: CellRow) -> Seal:
    """The checksum of a row of counts covers its number, its bytes and the parameters."""
    base = blake2b(cell.params_digest.encode(), digest_size=SIZE, person=b"rappor-counts")

    def seal(slot: int, data: bytes) -> bytes:
        state = base.copy()
        state.update(slot.to_bytes(8, "little") + data)
        return state.digest()

    return seal


def _parity(seals: Sequence[bytes]) -> bytes:
    numbers = (int.from_bytes(seal, "little") for seal in seals)
    return reduce(xor_numbers, numbers, 0).to_bytes(SIZE, "little")


def _numbers(cell: CellRow, row: object, seal: Seal) -> tuple[int, Words, bytes]:
    """Verify a row; its cohort, its k + 1 numbers and its checksum."""
    slot, data, found = typed(row, "ibb", f"{cell.key}: counts")
    cohort = slot & (1 << COHORT_BITS) - 1
    if cohort >= cell.m or len(data) != (cell.k + 1) * _WORD.itemsize or seal(slot, data) != found:
        raise StoreError(f"{cell.key}, cohort {cohort}: the counts are damaged (checksum)")
    return cohort, np.frombuffer(data, _WORD), found


def read(connection: Connection, cell: CellRow) -> StoredCounts:
    """The counts of a cell, or StoreError if any of them was changed or is missing."""
    totals: IntArray = np.zeros(cell.m, np.int64)
    ones: IntArray = np.zeros((cell.m, cell.k), np.int64)
    seals, seal = [], _sealer(cell)
    query = "SELECT id, data, checksum FROM counts WHERE id BETWEEN ? AND ?"
    for row in connection.execute(query, cell.slots):
        cohort, numbers, found = _numbers(cell, row, seal)
        totals[cohort], ones[cohort] = numbers[0], numbers[1:]
        seals.append(found)
    if (
        _parity(seals) != cell.parity
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
