"""Files that were imported: each one exactly once, for ever."""

from __future__ import annotations

from rappor.errors import StoreError
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import check_seal, checksum, reseal, typed


def insert(connection: Connection, digest: bytes, detail: str) -> bool:
    """Remember a file by its digest; whether it was new."""
    known = connection.execute("SELECT 1 FROM imports WHERE digest=?", (digest,)).fetchone()
    if known is not None:
        return False
    seal = checksum("imports", digest, detail)
    connection.execute("INSERT INTO imports VALUES (?, ?, ?)", (digest, detail, seal))
    reseal(connection, "imports", 1, seal)
    return True


def verify(connection: Connection) -> None:
    """StoreError where one was changed or is gone."""
    sealed = []
    for row in connection.execute("SELECT digest, detail, checksum FROM imports"):
        digest, detail, seal = typed(row, "bsb", "imports")
        if checksum("imports", digest, detail) != seal:
            raise StoreError("imports: damaged (checksum)")
        sealed.append(seal)
    check_seal(connection, "imports", sealed)
