"""Sealed: bytes with a checksum in front, so that a damaged file is known and never used."""

from __future__ import annotations

import hashlib


def seal(kind: str, body: bytes) -> bytes:
    """The body under a line that names its kind and its SHA-256.

    >>> unseal("note", seal("note", b"text"))
    b'text'
    """
    return f"rappor-{kind}-v1 {_checksum(kind, body)}\n".encode("ascii") + body


def unseal(kind: str, data: bytes) -> bytes | None:
    """The body, or None where one bit is wrong, missing or too many.

    >>> unseal("note", seal("note", b"text")[:-1]) is None
    True
    """
    body = data.partition(b"\n")[2]
    return body if data == seal(kind, body) else None


def _checksum(kind: str, body: bytes) -> str:
    return hashlib.sha256(f"rappor {kind} ".encode("ascii") + body).hexdigest()
