"""Imported files: each file is imported once, permanently."""

from __future__ import annotations

from rappor.errors import StoreError
from rappor.store.checksums import checksum, typed
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import check_seal, reseal


def insert(connection: Connection, digest: bytes, detail: str) -> bool:
    """Save the digest of a file; return whether it was new."""
    known = connection.execute("SELECT 1 FROM imports WHERE digest=?", (digest,)).fetchone()
    if known is not None:
        return False
    seal = checksum("imports", digest, detail)
    connection.execute("INSERT INTO imports VALUES (?, ?, ?)", (digest, detail, seal))
    reseal(connection, "imports", 1, seal)
    return True


def verify(connection: Connection) -> None:
    """StoreError if one was changed or is missing."""
    read(connection)


def read(connection: Connection) -> list[tuple[bytes, str]]:
    """Digest and detail of each file, or StoreError if one was changed or is missing."""
    sealed, found = [], []
    for row in connection.execute("SELECT digest, detail, checksum FROM imports"):
        digest, detail, seal = typed(row, "bsb", "imports")
        if checksum("imports", digest, detail) != seal:
            raise StoreError("imports: damaged (checksum)")
        sealed.append(seal)
        found.append((digest, detail))
    check_seal(connection, "imports", sealed)
    return found
