"""Seals of tables: the number of rows and the XOR of their checksums show when one is missing."""

from __future__ import annotations

from rappor.errors import StoreError
from rappor.store.checksums import NONE, typed, xor
from rappor.store.sqlite.connection import Connection


def read_seal(connection: Connection, name: str) -> tuple[int, bytes]:
    """The number of rows that there must be, and the XOR of their checksums."""
    row = connection.execute("SELECT size, parity FROM seals WHERE name=?", (name,)).fetchone()
    size, parity = typed(row, "ib", f"the seal of {name}")
    return size, parity


def write_seal(connection: Connection, name: str, size: int, parity: bytes) -> None:
    """Write a seal."""
    done = connection.execute(
        "UPDATE seals SET size=?, parity=? WHERE name=?", (size, parity, name)
    )
    if done.rowcount != 1:
        raise StoreError(f"the seal of {name}: damaged (it is missing)")


def reseal(connection: Connection, name: str, change: int, *checksums: bytes) -> None:
    """Add checksums to a seal, or remove them from it."""
    size, parity = read_seal(connection, name)
    for changed in checksums:
        parity = xor(parity, changed)
    write_seal(connection, name, size + change, parity)


def check_seal(connection: Connection, name: str, checksums: list[bytes]) -> None:
    """StoreError unless the seal is that of these rows."""
    size, parity = read_seal(connection, name)
    expected = NONE
    for row_checksum in checksums:
        expected = xor(expected, row_checksum)
    if size != len(checksums) or parity != expected:
        raise StoreError(
            f"{name}: damaged ({len(checksums)} rows are there, {size} were written, or one was "
            "changed)"
        )
