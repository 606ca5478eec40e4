"""Advisory locks, and the order in which transactions take locks.

1. STORE: shared by every transaction that adds reports, exclusive for those that change what they
   rely on: migrations, a new day of tokens, retention, compaction, definitions.
2. Tokens, in the order of their bytes. Two transactions with the same token wait for each other
   only here.
3. Rows of the writer's own. No other writer touches them.
4. KEPT: kept reports, which are mixed with those of all other writers.
5. The audit log's last entry.

RELEASED orders those who copy snapshots for pages. They take no other lock.

RETENTION is held by one process while retention runs there. Nobody waits for it.

A transaction that waits for a lock holds only locks of smaller numbers, so no cycle is possible.
"""

from __future__ import annotations

from rappor.store.postgres.connection import Connection

_BASE = 0x5250_5052_0000  # "RPPR"; the numbers of writers are larger than 2^48
STORE = _BASE | 1
KEPT = _BASE | 2
RELEASED = _BASE | 3
RETENTION = _BASE | 4


def share_store(connection: Connection) -> None:
    """Let no migration, retention or compaction run until the transaction ends."""
    connection.execute(f"SELECT pg_advisory_xact_lock_shared({STORE})")


def take_store(connection: Connection) -> None:
    """Wait until nobody adds reports, and let nobody until the transaction ends."""
    connection.execute(f"SELECT pg_advisory_xact_lock({STORE})")
