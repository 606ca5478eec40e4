"""A connection to the file, with every setting that durability rests on asked for and verified."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from rappor.errors import StoreBroken, StoreBusy, StoreError, StoreFull

APPLICATION_ID = 0x52505231  # "RPR1"
BUSY_MS = 10_000

# What each connection is told, and what it must answer when asked.
_SETTINGS: dict[str, tuple[str, object]] = {
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),  # a commit is on disk before it returns
    "foreign_keys": ("ON", 1),
    "secure_delete": ("ON", 1),  # what is deleted is overwritten
    "busy_timeout": (str(BUSY_MS), BUSY_MS),
    "wal_autocheckpoint": ("0", 0),  # we truncate the log ourselves: it holds the order of arrival
    "fullfsync": ("ON", 1),
    "checkpoint_fullfsync": ("ON", 1),
    "cell_size_check": ("ON", 1),
    "trusted_schema": ("OFF", 0),
    "temp_store": ("MEMORY", 2),  # nothing is written outside the folder
    "mmap_size": ("0", 0),  # a damaged page must be an error, not a signal
    "cache_size": ("-32768", -32768),
}
# What SQLite raises; the second where it cannot even say what is wrong, because that is damaged.
FAILURES = (sqlite3.Error, UnicodeDecodeError)
_IOERR_SHMSIZE = 10 | 19 << 8  # how a full disk shows when the log's index has to grow


class Cursor(Protocol):
    """What we use of a cursor."""

    @property
    def rowcount(self) -> int:
        """Rows that the statement changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What we use of a connection; tests put one with a file system of their own here."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run one statement for each of several rows."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Connect(Protocol):
    """How a connection is made."""

    def __call__(self, path: Path, read_only: bool) -> Connection:
        """Open an existing file."""
        ...


def connect(path: Path, read_only: bool, mode: str = "") -> sqlite3.Connection:
    """The standard library's connection; transactions are ours to begin and end.

    Without a `mode`, whoever reads may fold in the log that a dead process has left, and empty it.
    """
    mode = mode or ("ro" if read_only and not os.access(path, os.W_OK) else "rw")
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_MS / 1000,
    )


def prepare(connection: Connection, read_only: bool) -> None:
    """Ask for all settings and verify each of them, or raise StoreError."""
    for name, (wanted, answer) in _SETTINGS.items():
        if name == "journal_mode" and read_only:
            continue
        connection.execute(f"PRAGMA {name}={wanted}").fetchall()
        (found,) = connection.execute(f"PRAGMA {name}").fetchone() or (None,)
        if found != answer and not (found is None and name == "mmap_size"):
            raise StoreError(f"SQLite does not do {name}={wanted} here: it says {found}")
    if read_only:
        connection.execute("PRAGMA query_only=ON").fetchall()


def translated(error: Exception, path: Path) -> StoreError:
    """What an error of SQLite means to a caller."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"{path}: no room on the disk; nothing was written")
        case sqlite3.SQLITE_IOERR if code == _IOERR_SHMSIZE:
            return StoreFull(f"{path}: no room on the disk for the log; nothing was written")
        case sqlite3.SQLITE_IOERR:
            return StoreBroken(f"{path}: the disk failed ({error})")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(f"{path}: damaged, or not a store ({error})")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"{path}: another process has been writing for too long")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreError(f"{path}: cannot be opened or written ({error})")
        case _:
            return StoreError(f"{path}: damaged, or not a store ({error})")


@contextmanager
def translating(path: Path) -> Iterator[None]:
    """Turn whatever SQLite raises into StoreError."""
    try:
        yield
    except FAILURES as error:
        raise translated(error, path) from error


def roll_back(connection: Connection) -> None:
    """End a transaction without effect; SQLite may have done it already."""
    with suppress(*FAILURES):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
