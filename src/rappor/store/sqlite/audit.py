"""The audit log: who changed or exported what. An entry's checksum covers the entry before it."""

from __future__ import annotations

from rappor.errors import StoreError
from rappor.store.checksums import NONE, checksum, typed
from rappor.store.contract import AuditEntry
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import read_seal, write_seal


def append(connection: Connection, entry: AuditEntry) -> None:
    """Append an entry."""
    size, last = read_seal(connection, "audit")
    sealed = checksum("audit", last, *entry)
    connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", (size + 1, *entry, sealed))
    write_seal(connection, "audit", size + 1, sealed)


def read(connection: Connection) -> list[AuditEntry]:
    """All entries, oldest first, or StoreError if one was changed or is missing."""
    entries: list[AuditEntry] = []
    last = NONE
    query = "SELECT id, at, actor, action, detail, checksum FROM audit ORDER BY id"
    for row in connection.execute(query):
        number, *fields, sealed = typed(row, "issssb", "the audit log")
        entry = AuditEntry(*fields)
        if number != len(entries) + 1 or checksum("audit", last, *entry) != sealed:
            raise StoreError(f"the audit log: damaged from entry {len(entries) + 1} on")
        entries.append(entry)
        last = sealed
    if read_seal(connection, "audit") != (len(entries), last):
        raise StoreError("the audit log: damaged (its last entries are gone)")
    return entries
