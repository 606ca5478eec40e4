"""Kept reports: chunks by cell and cohort, in an order that is independent of arrival and writer.

The database mixes new reports into the old ones (`functions.KEEP_REPORTS`), so a collector need not
be able to read any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS
from rappor.store.checksums import typed
from rappor.store.contract import Fold
from rappor.store.postgres import definitions
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection
from rappor.store.report_order import FULL, shuffled, width


def add(connection: Connection, keep: Sequence[tuple[WriterCell, Fold]]) -> None:
    """Mix the reports of folds into those that are kept already."""
    given: dict[int, list[bytes]] = {}
    widths: dict[int, int] = {}
    for cell, fold in keep:
        key = cell.key
        if not definitions.one(connection, key.collection, key.version).keep_reports_days:
            raise StoreError(f"{key}: its definition keeps no reports")
        slot = cell.slot(int(fold.cohort))
        given.setdefault(slot, []).append(fold.reports or b"")
        widths[slot] = width(cell.k)
    for slot, parts in given.items():
        put(connection, slot, widths[slot], b"".join(parts))


def put(connection: Connection, slot: int, size: int, reports: bytes) -> None:
    """Mix reports of `size` bytes each into those of their cell and cohort."""
    connection.execute(
        "SELECT rappor.keep_reports(%s::bigint, %s::integer, %s)", (slot, size, reports)
    )


def read(connection: Connection, cell: WriterCell) -> dict[int, bytes]:
    """The kept reports by cohort, shuffled again, or StoreError if any are changed or missing."""
    found: dict[int, list[bytes]] = {}
    size = width(cell.k)
    first = cell.slots[0]
    query = (
        "SELECT slot, number, data, checksum FROM rappor.reports WHERE slot BETWEEN %s AND %s "
        "ORDER BY slot, number"
    )
    for row in connection.execute(query, cell.slots, binary=True):
        slot, number, data, sum_ = typed(row, "iibb", f"{cell.key}: kept reports")
        parts = found.setdefault(slot - first, [])
        about = slot.to_bytes(8, "big") + number.to_bytes(4, "big")
        if sha256(about + data).digest() != sum_ or len(data) % size or slot - first >= cell.m:
            raise StoreError(f"{cell.key}: the kept reports are damaged (checksum)")
        if number != len(parts) or (parts and len(parts[-1]) != FULL * size):
            raise StoreError(f"{cell.key}: the kept reports are damaged (some are missing)")
        parts.append(data)
    return {cohort: shuffled(b"".join(parts), size) for cohort, parts in found.items()}


def remove(connection: Connection, ids: Sequence[int]) -> None:
    """Delete all kept reports of cells."""
    connection.execute(
        "DELETE FROM rappor.reports USING unnest(%s::bigint[]) AS gone(cell) "  # noqa: S608 - our own numbers
        f"WHERE slot BETWEEN gone.cell << {COHORT_BITS} "
        f"AND (gone.cell << {COHORT_BITS}) | {(1 << COHORT_BITS) - 1}",
        (list(ids),),
    )
