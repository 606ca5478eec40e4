"""Checksums of rows, and what a row must look like.

A database's own check misses most flipped bits. So each row has a checksum of all its fields, and
each set of rows has a seal: the number of rows and the XOR of their checksums.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from rappor.errors import StoreError

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
