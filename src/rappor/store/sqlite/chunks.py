"""Kept reports: shuffled blobs, grouped by cohort, under random numbers (SECURITY, "Shuffle").

A small batch never stands by itself: it is mixed into the cohort's last chunk until that is full.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from rappor.errors import StoreError
from rappor.store.sqlite import definitions
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.numbers import new_id
from rappor.store.sqlite.rows import Cell
from rappor.store.sqlite.seals import NONE, checksum, typed, xor
from rappor.store.types import Fold

FULL = 1024  # reports in a chunk that takes no more


def width(k: int) -> int:
    """Bytes of a packed report."""
    return (k + 7) // 8


def shuffled(reports: bytes, size: int) -> bytes:
    """The reports in an order drawn from the operating system's randomness."""
    table = np.frombuffer(reports, np.uint8).reshape(-1, size)
    keys = np.frombuffer(os.urandom(8 * len(table)), np.uint64)
    return table[np.argsort(keys)].tobytes()


def add(connection: Connection, cell: Cell, folds: Iterable[Fold]) -> None:
    """Keep the reports of folds of one cell, by cohort mixed with those that came before."""
    given: dict[int, list[bytes]] = {}
    for fold in folds:
        if fold.reports:
            given.setdefault(int(fold.cohort), []).append(fold.reports)
    if not given:
        return
    if not definitions.one(connection, cell.key.collection, cell.key.version).keep_reports_days:
        raise StoreError(f"{cell.key}: its definition keeps counts only, and no reports")
    for cohort, parts in given.items():
        _mix(connection, cell, cell.slot(cohort), b"".join(parts))


def _mix(connection: Connection, cell: Cell, slot: int, reports: bytes) -> None:
    size = width(cell.k)
    cell.kept += len(reports) // size
    row = connection.execute(
        "SELECT id, slot, size, data, checksum FROM reports WHERE slot=? AND size<? LIMIT 1",
        (slot, FULL),
    ).fetchone()
    if row is not None:
        number, data, seal = _verified(cell, row)
        reports = data + reports
        connection.execute("DELETE FROM reports WHERE id=?", (number,))
        cell.chunks -= 1
        cell.chunk_parity = xor(cell.chunk_parity, seal)
    mixed = shuffled(reports, size)
    fields = (new_id(connection, "reports"), slot, len(mixed) // size, mixed)
    seal = checksum("reports", *fields)
    connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?)", (*fields, seal))
    cell.chunks += 1
    cell.chunk_parity = xor(cell.chunk_parity, seal)


def _verified(cell: Cell, row: object) -> tuple[int, bytes, bytes]:
    """Number, reports and checksum of a chunk."""
    number, slot, size, data, seal = typed(row, "iiibb", f"{cell.key}: kept reports")
    if len(data) != size * width(cell.k) or checksum("reports", number, slot, size, data) != seal:
        raise StoreError(f"{cell.key}: the kept reports are damaged (checksum)")
    return number, data, seal


def read(connection: Connection, cell: Cell) -> dict[int, bytes]:
    """The kept reports by cohort, shuffled anew, or StoreError where any was changed or is gone."""
    found: dict[int, list[bytes]] = {}
    parity, number = NONE, 0
    first, last = cell.slots
    query = "SELECT id, slot, size, data, checksum FROM reports WHERE slot BETWEEN ? AND ?"
    for row in connection.execute(query, (first, last)):
        _, data, seal = _verified(cell, row)
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


def remove(connection: Connection, cell: Cell) -> None:
    """Take all kept reports of a cell away; the caller saves the cell."""
    connection.execute("DELETE FROM reports WHERE slot BETWEEN ? AND ?", cell.slots)
    cell.kept, cell.chunks, cell.chunk_parity = 0, 0, NONE
