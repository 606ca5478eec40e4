"""The database of the dashboard's state: one connection that threads share, and its tables."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rappor.dashboard.settings import APPLICATION_ID
from rappor.errors import StoreError, StoreRefused
from rappor.store.sqlite import schema_upgrade
from rappor.store.sqlite.connection import translated
from rappor.store.sqlite.schema_upgrade import Migration

BUSY_SECONDS = 10.0
_FILES = ("", "-wal", "-shm")
_LOG = logging.getLogger("rappor.dashboard")
MIGRATIONS: tuple[Migration, ...] = (
    (  # 1: accounts, links, sessions, candidates, results, jobs, audit, facts
        # The digest of an account's token; NULL if it can log in by links only.
        "CREATE TABLE accounts ("
        " name TEXT PRIMARY KEY, role TEXT NOT NULL, digest BLOB UNIQUE, made TEXT NOT NULL,"
        " maker TEXT NOT NULL, revoked TEXT) WITHOUT ROWID",
        "CREATE TABLE links ("
        " digest BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (name),"
        " expires INTEGER NOT NULL, used TEXT) WITHOUT ROWID",
        "CREATE TABLE sessions ("
        " digest BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (name),"
        " began INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE candidates ("
        " collection TEXT NOT NULL, version INTEGER NOT NULL, strings TEXT NOT NULL,"
        " size INTEGER NOT NULL, made TEXT NOT NULL, actor TEXT NOT NULL,"
        " PRIMARY KEY (collection, version)) WITHOUT ROWID",
        "CREATE TABLE results ("
        " key TEXT PRIMARY KEY, collection TEXT NOT NULL, kind TEXT NOT NULL, meta TEXT NOT NULL,"
        " content BLOB, made TEXT NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX results_collection ON results (collection, number)",
        "CREATE TABLE jobs ("
        " id TEXT PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, status TEXT NOT NULL,"
        " document TEXT NOT NULL, made TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE audit ("
        " id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,"
        " detail TEXT NOT NULL)",
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
    # 2: delete results of exact counts: next to released counts they could show a single report
    ("DELETE FROM results WHERE kind != 'draft'",),
)
Clock = Callable[[], datetime]


class Database:
    """The open file: mode 0600, WAL, created if it is missing.

    If the file was deleted or replaced, the next transaction opens the new one. So deleting the
    file ends every session, and accounts that `rappor access` makes then are seen.
    """

    def __init__(
        self, path: Path, on_reopen: Callable[[sqlite3.Connection], None] = lambda _: None
    ) -> None:
        """Open the file, and upgrade it to the newest schema.

        Args:
            path: the file.
            on_reopen: called in a transaction after a replaced file was opened.

        Raises:
            StoreError: it cannot be opened, is damaged, or belongs to another program.
        """
        self.path, self._on_reopen = path, on_reopen
        self._lock = threading.RLock()
        self._inode: tuple[int, int] | None = None  # the identity of the open file
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreRefused(f"{path}: cannot be made ({error.strerror})") from None
        self._open()

    def _open(self) -> None:
        path = self.path
        try:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StoreRefused(f"{path}: cannot be made ({error.strerror})") from None
        for ending in _FILES:  # also a file that was copied here
            with suppress(OSError):
                os.chmod(f"{path}{ending}", 0o600)
        inode = _inode_of(path)
        with self._translating():
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=BUSY_SECONDS,
            )
        try:
            with self._translating():
                for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                    self._connection.execute(f"PRAGMA {setting}").fetchall()
                self._connection.execute("PRAGMA secure_delete=ON").fetchall()
                migrate(self._connection)
        except StoreError:
            self._connection.close()
            raise
        self._inode = inode

    @contextmanager
    def writing(self, patience: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
        """One durable transaction.

        Args:
            patience: seconds to wait while another process writes.
        """
        with self._lock, self._translating():
            self._look()
            with self._waiting(patience):
                self._connection.execute("BEGIN IMMEDIATE")
            with self._transaction():
                yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _waiting(self, seconds: float) -> Iterator[None]:
        if seconds == BUSY_SECONDS:
            yield
            return
        self._connection.execute(f"PRAGMA busy_timeout={int(1000 * seconds)}")
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={int(1000 * BUSY_SECONDS)}")

    def _look(self) -> None:
        """Open the present file if it is not the open one."""
        is_open = self._inode is not None
        if is_open and (self._connection.in_transaction or _inode_of(self.path) == self._inode):
            return
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path}: its folder is gone")
        _LOG.warning("%s is another file now", self.path.name)
        self._connection.close()
        self._inode = None
        self._open()
        self._connection.execute("BEGIN IMMEDIATE")
        with self._transaction():
            self._on_reopen(self._connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading."""
        with self._lock, self._translating():
            self._look()
            yield self._connection

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            meaning = translated(error, self.path)
            if type(meaning) is StoreError:
                meaning = StoreError(f"{self.path}: {error}; move it away to start with a new file")
            raise meaning from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _inode_of(path: Path) -> tuple[int, int] | None:
    """The identity of a file; None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Upgrade a file to the newest schema; StoreError if it belongs to another program."""
    what = "a file of the dashboard"
    schema_upgrade.migrate(connection, migrations, APPLICATION_ID, what)
    version = schema_upgrade.version_of(connection, APPLICATION_ID, what)
    schema_upgrade.check_not_newer(version, migrations, "dashboard state")


def utc_now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def text_of(when: datetime) -> str:
    """The stored form of a time.

    >>> text_of(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
    '2026-11-16T09:30:00Z'
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(text: str) -> datetime:
    """A stored time.

    >>> time_of("2026-11-16T09:30:00Z").hour
    9
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
