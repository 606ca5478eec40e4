"""Rows of counts, one for each cell, cohort and writer. A commit writes only the writer's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey
from rappor.store.checksums import SIZE, typed, xor
from rappor.store.contract import Fold, StoredCounts
from rappor.store.fold_tables import (
    MAX_COUNT,
    WORD,
    Row,
    Words,
    changed_rows,
    check_fold,
    next_folds,
    parity_of,
    sealer,
)
from rappor.store.postgres import cell_rows, definitions, report_chunks
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection
from rappor.typing import IntArray

MAX_BYTES = 16 * 2**20  # of counts in memory; above, the rows are forgotten and read again
_COHORT = (1 << COHORT_BITS) - 1


class RowChanges(NamedTuple):
    """What some folds change in rows that exist.

    Attributes:
        rows: the changed rows of counts.
        cells: the changed rows of cells.
    """

    rows: list[Row]
    cells: list[WriterCell]


class WriterRows:
    """The rows of one writer. Nobody else changes them, so they are read at most once.

    Valid until a transaction is rolled back: the store makes new ones then.

    Attributes:
        writer: the writer's number.
    """

    def __init__(self, writer: int) -> None:
        """Know nothing yet."""
        self.writer = writer
        self._cells: dict[CellKey, WriterCell] = {}
        self._counts: dict[int, tuple[bytes, bytes]] = {}  # bytes and checksum, by slot
        self._complete: set[int] = set()  # cells whose rows are all in memory
        self._bytes = 0

    def apply(self, connection: Connection, folds: Iterable[Fold]) -> int:
        """Add folds to their cells within a transaction; return their number of reports.

        Kept reports come last: their lock is held by one transaction at a time.
        """
        remaining, added = iter(folds), 0
        keep: list[tuple[WriterCell, Fold]] = []
        while some := next_folds(remaining):
            added += self._apply(connection, some, keep)
            if self._bytes > MAX_BYTES:
                self._counts.clear()
                self._complete.clear()
                self._bytes = 0
        report_chunks.add(connection, keep)
        return added

    def plan(self, folds: Iterable[Fold]) -> RowChanges | None:
        """What folds change, found without a query.

        None if a row has to be read or inserted first, if reports are kept, or if the folds are
        too many for one statement.
        """
        remaining = iter(folds)
        grouped = _by_cell(next_folds(remaining))
        if next(remaining, None) is not None:
            return None
        change = RowChanges([], [])
        for key, group in grouped.items():
            cell = self._cells.get(key)
            if cell is None or cell.id not in self._complete:
                return None
            for fold in group:
                check_fold(fold, cell)
                if fold.reports or not fold.total or cell.slot(fold.cohort) not in self._counts:
                    return None
            rows, after = self._change(cell, group)
            change.rows.extend(rows)
            change.cells.append(after)
        return change

    def adopt(self, change: RowChanges) -> None:
        """Remember rows that were written."""
        for cell in change.cells:
            self._cells[cell.key] = cell
        for row in change.rows:
            self._learn(*row)

    def _apply(
        self, connection: Connection, folds: Sequence[Fold], keep: list[tuple[WriterCell, Fold]]
    ) -> int:
        grouped = _by_cell(folds)
        self._find(connection, grouped)
        rows: list[Row] = []
        added = 0
        for key, group in grouped.items():
            cell = self._cells[key]
            for fold in group:
                check_fold(fold, cell)
            filled = [fold for fold in group if fold.total]
            if filled:
                rows += self._add(connection, cell, filled)
                keep += [(cell, fold) for fold in filled if fold.reports]
            added += sum(fold.total for fold in filled)
        _save(connection, self.writer, rows)
        cell_rows.save(connection, [self._cells[key] for key in grouped])
        return added

    def _find(self, connection: Connection, keys: Iterable[CellKey]) -> None:
        """Read or make the rows of cells."""
        unknown = [key for key in keys if key not in self._cells]
        if not unknown:
            return
        for cell in cell_rows.of_writer(connection, self.writer, unknown):
            self._cells[cell.key] = cell
        new = [key for key in unknown if key not in self._cells]
        for key in new:
            made = WriterCell(self.writer, key, *definitions.expected(connection, key))
            self._cells[key] = made
            self._complete.add(made.id)
        if new:
            identities = [self._cells[key].identity for key in new]
            cell_rows.reseal(connection, self.writer, len(new), identities)

    def _add(self, connection: Connection, cell: WriterCell, folds: Sequence[Fold]) -> list[Row]:
        """The changed rows of one cell."""
        if cell.id not in self._complete:
            for slot, data, found in _rows(connection, cell):
                self._learn(slot, data, found)
            self._complete.add(cell.id)
        rows, after = self._change(cell, folds)
        self.adopt(RowChanges(rows, [after]))
        return rows

    def _change(self, cell: WriterCell, folds: Sequence[Fold]) -> tuple[list[Row], WriterCell]:
        """The changed rows of a cell whose rows are all in memory, and its own row."""
        found, seals = changed_rows(cell, folds, cell.slots[0], self._counts)
        sealed = _sealed([row[2] for row in found], self.writer)
        changed = [(slot, data, seal) for (slot, data, _), seal in zip(found, sealed, strict=True)]
        after = replace(
            cell,
            cohorts=cell.cohorts + len(changed) - len(seals),
            reports=cell.reports + sum(fold.total for fold in folds),
            parity=xor(cell.parity, parity_of([*seals, *sealed])),
        )
        return changed, after

    def _learn(self, slot: int, data: bytes, found: bytes) -> None:
        if slot not in self._counts:
            self._bytes += len(data)
        self._counts[slot] = data, found


def _by_cell(folds: Iterable[Fold]) -> dict[CellKey, list[Fold]]:
    grouped: dict[CellKey, list[Fold]] = {}
    for fold in folds:
        grouped.setdefault(fold.cell, []).append(fold)
    return grouped


def _sealed(seals: Sequence[bytes], writer: int) -> list[bytes]:
    """Checksums that cover the writer too: a row moved to another writer is noticed."""
    mask = int.from_bytes(writer.to_bytes(SIZE, "little") * len(seals), "little")
    data = (int.from_bytes(b"".join(seals), "little") ^ mask).to_bytes(SIZE * len(seals), "little")
    return [data[at : at + SIZE] for at in range(0, len(data), SIZE)]


def _save(connection: Connection, writer: int, rows: Sequence[Row]) -> None:
    if not rows:
        return
    slots, datas, seals = (list(column) for column in zip(*rows, strict=True))
    connection.execute(
        "INSERT INTO rappor.counts AS c (id, writer, data, checksum) "
        "SELECT slot, %s, data, sum FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) "
        "AS new(slot, data, sum) "
        "ON CONFLICT (id, writer) DO UPDATE SET data = excluded.data, checksum = excluded.checksum",
        (writer, slots, datas, seals),
    )


def _rows(connection: Connection, cell: WriterCell, table: str = "counts") -> list[Row]:
    """The verified rows of a cell and writer: slot, bytes and checksum."""
    query = (
        f"SELECT id, data, checksum FROM rappor.{table} "  # noqa: S608 - our own names
        "WHERE id BETWEEN %s AND %s AND writer = %s"
    )
    found, seal = [], sealer(cell)
    for row in connection.execute(query, (*cell.slots, cell.writer), binary=True):
        slot, data, sum_ = typed(row, "ibb", f"{cell.key}: counts")
        cohort = slot & _COHORT
        if (
            cohort >= cell.m
            or len(data) != (cell.k + 1) * WORD.itemsize
            or _sealed([seal(slot, data)], cell.writer) != [sum_]
        ):
            raise StoreError(f"{cell.key}, cohort {cohort}: the counts are damaged (checksum)")
        found.append((slot, data, sum_))
    reports = sum(int(np.frombuffer(data, WORD, 1)[0]) for _, data, _ in found)
    if (
        parity_of([sum_ for _, _, sum_ in found]) != cell.parity
        or len(found) != cell.cohorts
        or reports != cell.reports
    ):
        raise StoreError(f"{cell.key}: the counts are damaged (a cohort is missing or out of date)")
    return found


def read(
    connection: Connection, cells: Sequence[WriterCell], table: str = "counts"
) -> StoredCounts:
    """The counts of one cell, summed over its writers, or StoreError if any were changed."""
    first = cells[0]
    sums: Words = np.zeros((first.m, first.k + 1), WORD)
    for cell in cells:
        if (cell.params_digest, cell.k, cell.m) != (first.params_digest, first.k, first.m):
            raise StoreError(f"{cell.key}: damaged (its writers have other parameters)")
        for slot, data, _ in _rows(connection, cell, table):
            sums[slot & _COHORT] += np.frombuffer(data, WORD)
    if sum(sums[:, 0].tolist()) > MAX_COUNT:
        raise StoreError(f"{first.key}: counts above 2^63 - 1")
    numbers: IntArray = sums.astype(np.int64)
    return StoredCounts(first.key, first.params_digest, numbers[:, 0], numbers[:, 1:])


def folds_of(connection: Connection, cell: WriterCell) -> list[Fold]:
    """What a writer has added to a cell, as folds."""
    rows = [
        (slot & _COHORT, np.frombuffer(data, WORD).astype(np.int64))
        for slot, data, _ in _rows(connection, cell)
    ]
    return [
        Fold(cell.key, cohort, cell.params_digest, int(table[0]), table[1:])
        for cohort, table in rows
    ]


def remove(connection: Connection, cells: Iterable[WriterCell]) -> None:
    """Delete the rows of cells and of their counts, and adjust the seals of their writers."""
    gone: dict[int, list[WriterCell]] = {}
    for cell in cells:
        gone.setdefault(cell.writer, []).append(cell)
    for writer, group in gone.items():
        for cell in group:
            connection.execute(
                "DELETE FROM rappor.counts WHERE id BETWEEN %s AND %s AND writer = %s",
                (*cell.slots, writer),
            )
        connection.execute(
            "DELETE FROM rappor.cells WHERE id = ANY(%s::bigint[]) AND writer = %s",
            ([cell.id for cell in group], writer),
        )
        cell_rows.reseal(connection, writer, -len(group), [cell.identity for cell in group])
