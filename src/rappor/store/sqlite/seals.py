"""Checksums of rows, and seals that tell when a row is gone.

SQLite's own check passes most flipped bits (SECURITY, 8). So each row carries a checksum of all
that is in it, and whatever holds rows together carries their number and the XOR of their checksums.
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
    """The two combined; combining again takes it out.

    >>> xor(xor(b"ab", b"xy"), b"xy")
    b'ab'
    """
    number = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return number.to_bytes(len(one), "little")


def typed(row: Any, types: str, what: str) -> tuple[Any, ...]:
    """The row, if its fields have the types that the schema says: s, i or b for each."""
    kinds = {"s": str, "i": int, "b": bytes}
    if (
        row is None
        or len(row) != len(types)
        or any(type(field) is not kinds[kind] for field, kind in zip(row, types, strict=True))
    ):
        raise StoreError(f"{what}: damaged (not what was written there)")
    return tuple(row)


def read_seal(connection: Connection, name: str) -> tuple[int, bytes]:
    """How many rows there are to be, and the XOR of their checksums."""
    row = connection.execute("SELECT size, parity FROM seals WHERE name=?", (name,)).fetchone()
    size, parity = typed(row, "ib", f"the seal of {name}")
    return size, parity


def write_seal(connection: Connection, name: str, size: int, parity: bytes) -> None:
    """Set a seal."""
    done = connection.execute(
        "UPDATE seals SET size=?, parity=? WHERE name=?", (size, parity, name)
    )
    if done.rowcount != 1:
        raise StoreError(f"the seal of {name}: damaged (it is missing)")


def reseal(connection: Connection, name: str, change: int, *checksums: bytes) -> None:
    """Put checksums into a seal or take them out of it."""
    size, parity = read_seal(connection, name)
    for each in checksums:
        parity = xor(parity, each)
    write_seal(connection, name, size + change, parity)


def check_seal(connection: Connection, name: str, checksums: list[bytes]) -> None:
    """StoreError unless exactly these rows are sealed."""
    size, parity = read_seal(connection, name)
    found = NONE
    for each in checksums:
        found = xor(found, each)
    if size != len(checksums) or parity != found:
        raise StoreError(
            f"{name}: damaged ({len(checksums)} rows are there, {size} were written, or one was "
            "changed)"
        )
