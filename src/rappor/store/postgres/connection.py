"""A connection to the database. All settings that durability depends on are set and verified."""

from __future__ import annotations

import re
import select
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import errors as postgres
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus

from rappor.errors import (
    StoreBusy,
    StoreError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
)
from rappor.store.url import check_url, public_url

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 5
LOCK_MS = 5_000  # the longest wait for a lock, such as that of retention
STATEMENT_MS = 30_000
IDLE_MS = 60_000  # a transaction in which nothing happens is ended by the server
STALLED_SECONDS = 35.0  # the longest wait for an answer; a server that runs ends it earlier
_MESSAGES = 4  # that a server may send unasked before a connection counts as usable
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
    # What a lock guards is read after it was taken: an older snapshot would not see it.
    "default_transaction_isolation": "read committed",
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
_POOLER = "is a pooler between that gives it to others? Use session pooling"
_UNREADABLE = "not a URL that PostgreSQL's client library can read; check its parameters"

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
)
_NO_DATABASE = re.compile(r'database ".*" does not exist')  # libpq gives words and no code
_INVALID = re.compile(r'invalid .*"')  # libpq quotes a parameter
_DAMAGED = (postgres.DataCorrupted, postgres.IndexCorrupted)


_T = TypeVar("_T")


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if the server does not answer: it may hang without ending.

    The server's own limits do not help when its process is stopped, or its answers are swallowed.

    Attributes:
        limit: the longest wait in seconds; None for statements that may take any time.
    """

    limit: float | None = STALLED_SECONDS

    def wait(self, gen: Generator[Any, Any, _T], *arguments: Any, **named: Any) -> _T:
        """As psycopg waits, for `limit` seconds at most."""
        if self.limit is None:
            return super().wait(gen, *arguments, **named)
        return super().wait(self._timed(gen, self.limit), *arguments, **named)

    def _timed(self, gen: Generator[Any, Any, _T], seconds: float) -> Generator[Any, Any, _T]:
        """The same steps; psycopg sends a false value several times a second while it waits."""
        end = monotonic() + seconds
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and monotonic() > end:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server does not answer")
                wanted = gen.send(ready)
        except StopIteration as done:
            value: _T = done.value
            return value


def is_over(connection: Connection) -> bool:
    """Whether a connection that nothing was asked of has ended meanwhile; asks nobody."""
    if connection.closed:
        return True
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    for _ in range(_MESSAGES):
        if not poll.poll(0):  # nearly always
            return False
        try:
            connection.pgconn.consume_input()  # why it ends; then that it has ended
        except psycopg.Error:
            return True
    return bool(connection.pgconn.status != ConnStatus.OK)


def without_limits(connection: Connection) -> None:
    """Let the statements of this transaction take any time."""
    connection.execute("SET LOCAL statement_timeout = 0")
    if isinstance(connection, TimedConnection):
        connection.limit = None


@contextmanager
def unlimited(connection: Connection) -> Iterator[None]:
    """Let statements outside of a transaction take any time."""
    connection.execute("SET statement_timeout = 0")
    before = getattr(connection, "limit", None)
    if isinstance(connection, TimedConnection):
        connection.limit = None
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(f"SET statement_timeout = {STATEMENT_MS}")
        if isinstance(connection, TimedConnection):
            connection.limit = before


def check_parameters(url: str) -> None:
    """StoreError unless libpq can read the URL. What libpq says quotes it, passwords included."""
    check_url(url)
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        raise StoreError(_UNREADABLE) from None


def connect(url: str, *, read_only: bool) -> Connection:
    """Open a connection, set all settings and verify those that durability depends on.

    Raises:
        StoreUnavailable: the server cannot be reached now.
        StoreRefused: it does not let us in.
        StoreError: it is too old, or may lose what it has acknowledged; or the URL is malformed.
    """
    with translating(url):
        check_parameters(url)
        connection: Connection = TimedConnection.connect(
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
    (isolation,) = _one(
        connection.execute("SELECT current_setting('default_transaction_isolation')").fetchone()
    )
    if isolation != _SETTINGS["default_transaction_isolation"]:
        raise StoreError(f"the connection does not keep its settings ({isolation}): {_POOLER}")
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
    if isinstance(error, postgres.ReadOnlySqlTransaction):  # a standby, or being moved
        return StoreUnavailable(f"{where}: the database takes no changes now ({said})")
    if isinstance(error, _DAMAGED):
        return StoreError(f"{where}: damaged ({said}); restore a backup")
    if isinstance(error, _GONE) or (
        isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        and getattr(error, "sqlstate", None) is None
    ):
        if _INVALID.search(said) and "FATAL" not in said:
            return StoreError(f"{where}: {_UNREADABLE}")
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
