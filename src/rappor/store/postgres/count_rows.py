"""Rows of counts, one for each cell, cohort and writer. A commit writes only the writer's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey
from rappor.store.checksums import typed, xor
from rappor.store.contract import Fold, StoredCounts
from rappor.store.fold_tables import (
    MAX_COUNT,
    WORD,
    Words,
    check_fold,
    next_folds,
    parity_of,
    sealer,
    tables_of,
)
from rappor.store.postgres import cell_rows, definitions, report_chunks
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection
from rappor.typing import IntArray

MAX_BYTES = 16 * 2**20  # of counts in memory; above, the rows are forgotten and read again
_COHORT = (1 << COHORT_BITS) - 1


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

    def _apply(
        self, connection: Connection, folds: Sequence[Fold], keep: list[tuple[WriterCell, Fold]]
    ) -> int:
        grouped: dict[CellKey, list[Fold]] = {}
        for fold in folds:
            grouped.setdefault(fold.cell, []).append(fold)
        self._find(connection, grouped)
        rows: list[tuple[int, bytes, bytes]] = []
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

    def _add(
        self, connection: Connection, cell: WriterCell, folds: Sequence[Fold]
    ) -> list[tuple[int, bytes, bytes]]:
        """The changed rows of one cell."""
        given = tables_of(cell, folds)
        if cell.id not in self._complete:
            for slot, data, found in _rows(connection, cell):
                self._learn(slot, data, found)
            self._complete.add(cell.id)
        seal, seals, changed = sealer(cell), [], []
        for cohort, table in given.items():
            slot = cell.slot(cohort)
            before = self._counts.get(slot)
            if before is not None:
                table += np.frombuffer(before[0], WORD)
                seals.append(before[1])
                if table[0] > MAX_COUNT:
                    raise StoreError(f"{cell.key}, cohort {cohort}: counts above 2^63 - 1")
            data = table.tobytes()
            changed.append((slot, data, _sealed(seal(slot, data), self.writer)))
        for row in changed:
            self._learn(*row)
        cell.cohorts += len(given) - len(seals)
        cell.reports += sum(fold.total for fold in folds)
        cell.parity = xor(cell.parity, parity_of([*seals, *(row[2] for row in changed)]))
        return changed

    def _learn(self, slot: int, data: bytes, found: bytes) -> None:
        if slot not in self._counts:
            self._bytes += len(data)
        self._counts[slot] = data, found


def _sealed(seal: bytes, writer: int) -> bytes:
    """A row's checksum covers the writer too: a row moved to another writer is noticed."""
    return xor(seal, writer.to_bytes(len(seal), "little"))


def _save(connection: Connection, writer: int, rows: Sequence[tuple[int, bytes, bytes]]) -> None:
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


def _rows(
    connection: Connection, cell: WriterCell, table: str = "counts"
) -> list[tuple[int, bytes, bytes]]:
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
            or _sealed(seal(slot, data), cell.writer) != sum_
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
