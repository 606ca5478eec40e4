"""Kept reports: blobs by cohort, in an order that is independent of arrival.

All reports of a cell and cohort are one sequence, cut into chunks of 1,024. Every order of the
sequence is equally likely, whenever its reports came. New reports preserve this: they take random
places in the longer sequence, and the reports that were there move to the end. This is a
Fisher-Yates step for many reports at once. It rewrites the chunks with those places and the last
chunk, so at most two chunks for each report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from rappor.errors import StoreError
from rappor.store.checksums import NONE, checksum, typed, xor
from rappor.store.contract import Fold
from rappor.store.report_order import FULL, places, shuffled, width
from rappor.store.sqlite import cell_rows, definitions, page_layout
from rappor.store.sqlite.cell_rows import CellRow
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.row_ids import new_id

_COLUMNS = "id, slot, size, data, checksum"


def add(connection: Connection, cell: CellRow, folds: Iterable[Fold]) -> None:
    """Mix the reports of folds of one cell into those that are kept already."""
    given: dict[int, list[bytes]] = {}
    for fold in folds:
        if fold.reports:
            given.setdefault(int(fold.cohort), []).append(fold.reports)
    if not given:
        return
    if not definitions.one(connection, cell.key.collection, cell.key.version).keep_reports_days:
        raise StoreError(f"{cell.key}: its definition keeps no reports")
    for cohort, parts in given.items():
        put(connection, cell, cohort, b"".join(parts))


def put(connection: Connection, cell: CellRow, cohort: int, reports: bytes) -> None:
    """Mix packed reports into those of their cohort; the caller saves the cell."""
    _mix(connection, cell, cell.slot(cohort), reports)


def _mix(connection: Connection, cell: CellRow, slot: int, reports: bytes) -> None:
    """Put reports at random places among all reports of their cohort."""
    size = width(cell.k)
    query = "SELECT id, size FROM reports WHERE slot=? ORDER BY size DESC, id"
    known = connection.execute(query, (slot,)).fetchall()
    if any(row[1] != FULL for row in known[:-1]) or (known and not 0 < known[-1][1] <= FULL):
        # Chunks of an older rappor that could not be mixed when its store was upgraded.
        reports += b"".join(_take(connection, cell, row[0]) for row in known)
        cell.kept -= sum(row[1] for row in known)
        known = []
    new = np.frombuffer(reports, np.uint8).reshape(-1, size)
    before = sum(row[1] for row in known)
    after = before + len(new)
    chosen = places(after, len(new)).astype(np.int64)
    tail = np.arange(before, after)
    touched = np.unique(np.concatenate([chosen, tail]) // FULL)
    table = np.zeros((len(touched) * FULL, size), np.uint8)
    seals: dict[int, bytes] = {}
    for at, number in enumerate(touched.tolist()):
        if number < len(known):
            data, seals[number] = _read(connection, cell, known[number][0])
            held = np.frombuffer(data, np.uint8).reshape(-1, size)
            table[at * FULL : at * FULL + len(held)] = held

    def row_of(place: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(touched, place // FULL) * FULL + place % FULL

    table[row_of(np.setdiff1d(tail, chosen))] = table[row_of(chosen[chosen < before])]
    table[row_of(chosen)] = new
    for at, number in enumerate(touched.tolist()):
        length = min(FULL, after - number * FULL)
        data = table[at * FULL : at * FULL + length].tobytes()
        if number < len(known):
            cell.chunk_parity = xor(cell.chunk_parity, seals[number])
            seal = _update(connection, known[number][0], slot, length, data)
        else:
            seal = _insert(connection, slot, length, data)
            cell.chunks += 1
        cell.chunk_parity = xor(cell.chunk_parity, seal)
    cell.kept += len(new)


def _insert(connection: Connection, slot: int, size: int, reports: bytes) -> bytes:
    fields = (new_id(connection, "reports"), slot, size, page_layout.padded(reports))
    seal = checksum("reports", *fields)
    connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?)", (*fields, seal))
    return seal


def _update(connection: Connection, number: int, slot: int, size: int, reports: bytes) -> bytes:
    """Update a chunk; SQLite overwrites a row of the same length in place."""
    data = page_layout.padded(reports)
    seal = checksum("reports", number, slot, size, data)
    connection.execute(
        "UPDATE reports SET size=?, data=?, checksum=? WHERE id=?", (size, data, seal, number)
    )
    return seal


def _read(connection: Connection, cell: CellRow, number: int) -> tuple[bytes, bytes]:
    """Read a chunk; its reports and checksum."""
    query = f"SELECT {_COLUMNS} FROM reports WHERE id=?"  # noqa: S608 - our own names
    return _verified(cell, connection.execute(query, (number,)).fetchone())


def _take(connection: Connection, cell: CellRow, number: int) -> bytes:
    """Delete a chunk; return its reports."""
    reports, seal = _read(connection, cell, number)
    connection.execute("DELETE FROM reports WHERE id=?", (number,))
    cell.chunks -= 1
    cell.chunk_parity = xor(cell.chunk_parity, seal)
    return reports


def _verified(cell: CellRow, row: object) -> tuple[bytes, bytes]:
    """Verify a chunk; its reports and checksum."""
    number, slot, size, data, seal = typed(row, "iiibb", f"{cell.key}: kept reports")
    length = size * width(cell.k)
    reports = (
        data if len(data) == length else data[page_layout.HIDDEN : page_layout.HIDDEN + length]
    )
    if len(reports) != length or checksum("reports", number, slot, size, data) != seal:
        raise StoreError(f"{cell.key}: the kept reports are damaged (checksum)")
    return reports, seal


def read(connection: Connection, cell: CellRow) -> dict[int, bytes]:
    """The kept reports by cohort, shuffled again, or StoreError if any are changed or missing."""
    found: dict[int, list[bytes]] = {}
    parity, number = NONE, 0
    first, last = cell.slots
    query = f"SELECT {_COLUMNS} FROM reports WHERE slot BETWEEN ? AND ?"  # noqa: S608 - our own names
    for row in connection.execute(query, (first, last)):
        data, seal = _verified(cell, row)
        found.setdefault(row[1] - first, []).append(data)
        parity, number = xor(parity, seal), number + 1
    kept = {cohort: b"".join(parts) for cohort, parts in sorted(found.items())}
    size = width(cell.k)
    if (
        (number, parity) != (cell.chunks, cell.chunk_parity)
        or sum(map(len, kept.values())) != cell.kept * size
        or any(cohort >= cell.m for cohort in kept)
    ):
        raise StoreError(f"{cell.key}: the kept reports are damaged (some are missing)")
    return {cohort: shuffled(reports, size) for cohort, reports in kept.items()}


def remove(connection: Connection, cell: CellRow) -> None:
    """Delete all kept reports of a cell; the caller saves the cell."""
    connection.execute("DELETE FROM reports WHERE slot BETWEEN ? AND ?", cell.slots)
    cell.kept, cell.chunks, cell.chunk_parity = 0, 0, NONE


def mix_again(connection: Connection) -> None:
    """Mix reports kept by an older rappor, whose chunks told which reports came first.

    Damaged reports stay as they are; reading them raises an error.
    """
    cells: Sequence[CellRow] = ()
    with suppress(StoreError):
        cells = [cell for cell in cell_rows.read(connection) if cell.kept]
    for cell in cells:
        with suppress(StoreError):
            kept = read(connection, cell)
            remove(connection, cell)
            for cohort, reports in kept.items():
                _mix(connection, cell, cell.slot(cohort), reports)
            cell.save(connection)
    if cells:
        page_layout.rewrite(connection, "reports")
