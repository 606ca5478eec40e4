"""Checksums of rows, and seals that show when a row is missing.

SQLite's own check misses most flipped bits. So each row has a checksum of all its fields, and each
set of rows has a seal: the number of rows and the XOR of their checksums.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from rappor.errors import StoreError
from rappor.store.sqlite.connection import Connection

SIZE = 16
NONE = bytes(SIZE)

Field = str | int | bytes


def checksum(table: str, *fields: Field) -> bytes:
    """BLAKE2b of a row's fields, each with its length in front.

    >>> checksum("counts", 7, b"ab") == checksum("counts", 7, b"a", b"b")
    False
    """
    state = blake2b(digest_size=SIZE, person=table.encode()[:16])
    for field in fields:
        data = field if isinstance(field, bytes) else str(field).encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


def xor(one: bytes, other: bytes) -> bytes:
    """The XOR of two checksums; applying it again removes one.

    >>> xor(xor(b"ab", b"xy"), b"xy")
    b'ab'
    """
    number = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return number.to_bytes(len(one), "little")


def typed(row: Any, types: str, what: str) -> tuple[Any, ...]:
    """The row, or StoreError unless its fields have these types: s, i or b for each."""
    kinds = {"s": str, "i": int, "b": bytes}
    if (
        row is None
        or len(row) != len(types)
        or any(type(field) is not kinds[kind] for field, kind in zip(row, types, strict=True))
    ):
        raise StoreError(f"{what}: damaged (not what was written there)")
    return tuple(row)


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
