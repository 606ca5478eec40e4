"""Arrays of bytes and of numbers as PostgreSQL reads them in binary form.

psycopg can send lists too, but looks at each element several times. An array is a head, then each
element with its length in front; elements of one array have the same length here, so one call joins
them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from psycopg.adapt import Dumper
from psycopg.pq import Format

from rappor.store.postgres.connection import Connection

_HEAD = struct.Struct(">iiIii")  # dimensions, whether there are NULLs, type; elements, first index
_BYTEA, _BYTEA_ARRAY = 17, 1001
_BIGINT, _BIGINT_ARRAY = 20, 1016


class PackedBytes(bytes):
    """A bytea[] in binary form."""

    __slots__ = ()


class PackedNumbers(bytes):
    """A bigint[] in binary form."""

    __slots__ = ()


class _BytesDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: PackedBytes) -> bytes:
        return obj


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINT_ARRAY

    def dump(self, obj: PackedNumbers) -> bytes:
        return obj


def register(connection: Connection) -> None:
    """Let a connection send such arrays."""
    connection.adapters.register_dumper(PackedBytes, _BytesDumper)
    connection.adapters.register_dumper(PackedNumbers, _NumbersDumper)


def packed_bytes(elements: Sequence[bytes]) -> PackedBytes:
    """An array of bytes.

    >>> packed_bytes([b"ab", b"c"]).hex(" ", -4)
    '00000001 00000000 00000011 00000002 00000001 00000002 61620000 000163'
    """
    if not elements:
        return PackedBytes(_HEAD.pack(0, 0, _BYTEA, 0, 1)[:12])
    head = _HEAD.pack(1, 0, _BYTEA, len(elements), 1)
    size = len(elements[0])
    if all(len(element) == size for element in elements):
        length = size.to_bytes(4, "big")
        return PackedBytes(head + length + length.join(elements))
    parts = [part for element in elements for part in (len(element).to_bytes(4, "big"), element)]
    return PackedBytes(head + b"".join(parts))


def packed_numbers(elements: Sequence[int]) -> PackedNumbers:
    """An array of numbers.

    >>> packed_numbers([5]).hex(" ", 4)
    '00000001 00000000 00000014 00000001 00000001 00000008 00000000 00000005'
    """
    if not elements:
        return PackedNumbers(_HEAD.pack(0, 0, _BIGINT, 0, 1)[:12])
    head = _HEAD.pack(1, 0, _BIGINT, len(elements), 1)
    data = struct.pack(f">{len(elements)}q", *elements)
    length = (8).to_bytes(4, "big")
    return PackedNumbers(
        head + length + length.join([data[at : at + 8] for at in range(0, len(data), 8)])
    )
