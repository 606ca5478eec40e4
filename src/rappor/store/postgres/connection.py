"""A connection to the database. All settings that durability depends on are set and verified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as postgres

from rappor.errors import (
    StoreBusy,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
)
from rappor.store.url import public_url

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 5
LOCK_MS = 5_000  # the longest wait for a lock, such as that of retention
STATEMENT_MS = 30_000
IDLE_MS = 60_000  # a transaction in which nothing happens is ended by the server
MIN_SERVER = 140_000  # PostgreSQL 14

# A lost peer is noticed within about 15 seconds, also in the middle of an answer.
_ALIVE = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_SETTINGS = {
    "lock_timeout": f"{LOCK_MS}ms",
    "statement_timeout": f"{STATEMENT_MS}ms",
    "idle_in_transaction_session_timeout": f"{IDLE_MS}ms",
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "search_path": "pg_catalog",  # every name of ours says its schema
    "client_min_messages": "warning",
    "enable_seqscan": "off",  # statistics of a table that was made today say nothing about it
    "plan_cache_mode": "force_generic_plan",
}
# What the server must say, and why.
_REQUIRED = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}
_DURABLE = "acknowledged reports would be lost when the server's machine fails"

FAILURES = (psycopg.Error,)
_GONE = (  # the server ends, starts, or has too many connections
    postgres.AdminShutdown,
    postgres.CrashShutdown,
    postgres.CannotConnectNow,
    postgres.DatabaseDropped,
    postgres.IdleInTransactionSessionTimeout,
    postgres.TooManyConnections,
)
_BUSY = (
    postgres.QueryCanceled,
    postgres.LockNotAvailable,
    postgres.DeadlockDetected,
    postgres.SerializationFailure,
    postgres.OutOfMemory,
)
_REFUSED = (
    postgres.InsufficientPrivilege,
    postgres.InvalidAuthorizationSpecification,
    postgres.InvalidPassword,
    postgres.ReadOnlySqlTransaction,
)
_NO_DATABASE = re.compile(r'database ".*" does not exist')  # libpq gives words and no code
_DAMAGED = (postgres.DataCorrupted, postgres.IndexCorrupted)


def connect(url: str, *, read_only: bool) -> Connection:
    """Open a connection, set all settings and verify those that durability depends on.

    Raises:
        StoreUnavailable: the server cannot be reached now.
        StoreRefused: it does not let us in.
        StoreError: it is too old, or may lose what it has acknowledged.
    """
    with translating(url):
        connection: Connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="rappor",
            **_ALIVE,  # type: ignore[arg-type]  # libpq's parameters
        )
    try:
        with translating(url):
            _prepare(connection, read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, read_only: bool) -> None:
    if connection.info.server_version < MIN_SERVER:
        raise StoreError(
            f"the server is PostgreSQL {connection.info.server_version // 10_000}; rappor needs "
            f"{MIN_SERVER // 10_000} or newer"
        )
    settings = _SETTINGS | ({"default_transaction_read_only": "on"} if read_only else {})
    names, values = list(settings), list(settings.values())
    connection.execute(
        "SELECT set_config(name, value, false) "
        "FROM unnest(%s::text[], %s::text[]) AS settings(name, value)",
        (names, values),
    )
    if read_only:
        return
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )
    for name, wanted in _REQUIRED.items():
        (found,) = _one(connection.execute("SELECT current_setting(%s)", (name,)).fetchone())
        if found not in wanted:
            raise StoreError(f"the server runs with {name} = {found}: {_DURABLE}; set it to on")
    (standby,) = _one(connection.execute("SELECT pg_is_in_recovery()").fetchone())
    if standby:
        raise StoreUnavailable("the server is a standby; connect to the primary")


def _one(row: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if row is None:
        raise StoreError("the server gave no answer")
    return row


def translated(error: Exception, url: str) -> StoreError:
    """Our error for an error of PostgreSQL; it never holds a password or a row."""
    where = public_url(url)
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    said = (str(primary or error).strip().splitlines() or [""])[0][:200]
    if isinstance(error, postgres.DiskFull):
        return StoreFull(f"{where}: no room on the server's disk; nothing was written")
    if isinstance(error, _BUSY):
        return StoreBusy(f"{where}: the database was busy for too long ({said})")
    if isinstance(error, _REFUSED) or "authentication failed" in said:
        return StoreRefused(
            f"{where}: the database refuses this ({said}); check the role and its grants"
        )
    if isinstance(error, _DAMAGED):
        return StoreError(f"{where}: damaged ({said}); restore a backup")
    if isinstance(error, _GONE) or (
        isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        and getattr(error, "sqlstate", None) is None
    ):
        if _NO_DATABASE.search(said):
            return StoreUnavailable(
                f"{where}: the server has no such database; create it, or check its name"
            )
        return StoreUnavailable(
            f"{where}: the database cannot be reached ({_reason(said)}); check the address, or "
            "try again later"
        )
    if isinstance(error, postgres.IoError):
        return StoreUnavailable(f"{where}: the server's disk failed ({said})")
    if isinstance(error, postgres.UndefinedTable | postgres.InvalidSchemaName):
        return StoreError(f"{where}: there is no store in this database; check the name")
    return StoreError(f"{where}: damaged, or not a store ({said})")


def _reason(said: str) -> str:
    """What libpq says, without the addresses that it has tried."""
    return said.rpartition("failed: ")[2][:120]


@contextmanager
def translating(url: str) -> Iterator[None]:
    """Turn the errors of PostgreSQL into StoreError."""
    try:
        yield
    except StoreError as error:
        where = public_url(url)
        if where in str(error):
            raise
        raise type(error)(f"{where}: {error}") from error.__cause__
    except FAILURES as error:
        # `from None`: the cause has the statement, whose parameters are reports and tokens.
        raise translated(error, url) from None
