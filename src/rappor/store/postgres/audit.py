"""The audit log: who changed or exported what. An entry's checksum covers the entry before it."""

from __future__ import annotations

from hashlib import sha256

from rappor.errors import StoreError
from rappor.store.checksums import typed
from rappor.store.contract import AuditEntry
from rappor.store.postgres.connection import Connection

_FIRST = bytes(32)


def append(connection: Connection, entry: AuditEntry) -> None:
    """Append an entry."""
    connection.execute("SELECT rappor.append_audit(%s, %s, %s, %s)", tuple(entry))


def read(connection: Connection) -> list[AuditEntry]:
    """All entries, oldest first, or StoreError if one was changed or is missing."""
    entries: list[AuditEntry] = []
    last = _FIRST
    query = "SELECT id, at, actor, action, detail, checksum FROM rappor.audit ORDER BY id"
    for row in connection.execute(query, binary=True):
        number, *fields, sealed = typed(row, "issssb", "the audit log")
        entry = AuditEntry(*fields)
        last = _checksum(last, entry)
        if number != len(entries) + 1 or last != sealed:
            raise StoreError(f"the audit log: damaged from entry {len(entries) + 1} on")
        entries.append(entry)
    end = connection.execute("SELECT size, checksum FROM rappor.audit_end", binary=True).fetchone()
    if end != (len(entries), last):
        raise StoreError("the audit log: damaged (its last entries are gone)")
    return entries


def _checksum(last: bytes, entry: AuditEntry) -> bytes:
    """As rappor.append_audit computes it."""
    texts = [field.encode() for field in entry]
    return sha256(last + b"".join(len(text).to_bytes(4, "big") + text for text in texts)).digest()
