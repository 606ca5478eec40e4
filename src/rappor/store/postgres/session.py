"""The open database: one connection that writes, one that reads, and their transactions.

A connection that is lost is opened again at the next call, after a pause that grows with each
failure. Calls during the pause fail at once: nobody waits for a server that is down.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from rappor.errors import StoreError, StoreUnavailable
from rappor.store.postgres import arrays
from rappor.store.postgres.connection import (
    FAILURES,
    STALLED_SECONDS,
    Connection,
    TimedConnection,
    connect,
    is_over,
    translated,
    translating,
)
from rappor.store.url import public_url

FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresSession:
    """Transactions on one database. Thread-safe: writers wait for each other, and so do readers.

    Args:
        url: the database.
        read_only: whether nothing may be written.
        clock: for the pauses between attempts to connect.

    Attributes:
        generation: the number of connections for writing so far. Rows of a connection that is lost
            belong to a writer that is gone.
    """

    def __init__(
        self, url: str, read_only: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.url, self.read_only = url, read_only
        self.generation = 0
        self._clock = clock
        self._closed = False
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._pause, self._retry_at = FIRST_PAUSE, 0.0

    @property
    def name(self) -> str:
        """The URL as messages show it."""
        return public_url(self.url)

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name}: the store is closed")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other thread write to the store meanwhile."""
        with self._write_lock:
            yield

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction: all of its changes or none.

        Raises:
            StoreUnavailable: the connection was lost. If that happened during the commit, it is not
                known whether the changes are stored; the caller must not say that they are.
        """
        with self._write_lock:
            connection = self._begun(self._for_writing, "BEGIN")
            with self._failing(connection):
                yield connection
                if connection.info.transaction_status is not TransactionStatus.IDLE:
                    connection.execute("COMMIT", prepare=False)

    @contextmanager
    def maintaining(self) -> Iterator[Connection]:
        """The connection that writes, without a transaction: for VACUUM."""
        with self._write_lock:
            connection = self._for_writing()
            with self._failing(connection):
                yield connection

    @contextmanager
    def releasing(self) -> Iterator[Connection]:
        """A transaction that saves snapshots, also if the store is open for reading only."""
        with self._read_lock:
            connection = self._begun(self._for_reading, "BEGIN READ WRITE")
            with self._failing(connection):
                yield connection
                connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot: it does not change while others write."""
        with self._read_lock:
            connection = self._begun(self._for_reading, _READ)
            with self._failing(connection):
                try:
                    yield connection
                finally:
                    roll_back(connection)

    def _begun(self, get: Callable[[], Connection], statement: str) -> Connection:
        """A connection in a new transaction.

        A connection that was idle may be lost without a sign. Nothing was asked for yet, so another
        one takes its place.
        """
        connection = get()
        try:
            with self._failing(connection):
                connection.execute(statement, prepare=False)
        except StoreUnavailable:
            if not connection.closed:
                raise
            connection = get()
            with self._failing(connection):
                connection.execute(statement, prepare=False)
        return connection

    def _for_reading(self) -> Connection:
        self._check_usable()
        if self._reader is None or is_over(self._reader):
            self._reader = self._connected(self._reader, read_only=True)
        return _timed(self._reader)

    def _for_writing(self) -> Connection:
        self._check_usable()
        if self.read_only:
            raise StoreError(f"{self.name}: the store is open for reading only")
        if self._writer is None or is_over(self._writer):
            self._writer = self._connected(self._writer, read_only=False)
            arrays.register(self._writer)
            self.generation += 1
        return _timed(self._writer)

    def _connected(self, before: Connection | None, *, read_only: bool) -> Connection:
        """Connect, unless an attempt has just failed.

        Who was connected once waits, whatever the server has against it now: a password that was
        changed, or a setting that durability needs, is put right while the collector runs.
        """
        if before is not None:
            with suppress(psycopg.Error):
                before.close()
        now = self._clock()
        if now < self._retry_at:
            raise StoreUnavailable(f"{self.name}: the database cannot be reached")
        try:
            connection = connect(self.url, read_only=read_only)
        except StoreError as error:
            # S311: the jitter keeps collectors from coming back all at once; it is no secret.
            self._retry_at = now + self._pause * random.uniform(0.5, 1.0)  # noqa: S311
            self._pause = min(2 * self._pause, MAX_PAUSE)
            if before is None or isinstance(error, StoreUnavailable):
                raise
            raise StoreUnavailable(str(error)) from None
        self._pause, self._retry_at = FIRST_PAUSE, 0.0
        return connection

    @contextmanager
    def _failing(self, connection: Connection) -> Iterator[None]:
        """Translate errors; roll back, or drop a connection that is lost."""
        try:
            yield
        except FAILURES as error:
            lost = connection.closed or connection.broken
            roll_back(connection)
            if lost:
                raise StoreUnavailable(
                    f"{self.name}: the connection to the database was lost"
                ) from None
            raise translated(error, self.url) from None
        except BaseException:
            roll_back(connection)
            raise

    def close(self) -> None:
        """Close the connections."""
        with self._write_lock, self._read_lock:
            self._closed = True
            for connection in (self._writer, self._reader):
                if connection is not None:
                    with suppress(psycopg.Error):
                        connection.close()

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._closed

    @property
    def connected(self) -> bool:
        """Whether the connection that writes is open, as far as is known."""
        return self._writer is not None and not self._writer.closed


def _timed(connection: Connection) -> Connection:
    """The connection with its usual limit."""
    if isinstance(connection, TimedConnection):
        connection.limit = STALLED_SECONDS
    return connection


def roll_back(connection: Connection) -> None:
    """Roll back; a connection on which that fails is closed."""
    try:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    except FAILURES:
        with suppress(psycopg.Error):
            connection.close()


@contextmanager
def opened(url: str, *, read_only: bool) -> Iterator[Connection]:
    """A connection for one purpose, closed at the end."""
    connection = connect(url, read_only=read_only)
    try:
        with translating(url):
            yield connection
    finally:
        connection.close()
