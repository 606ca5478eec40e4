"""A connection to the file. All settings that durability depends on are set and verified."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from rappor.errors import StoreBroken, StoreBusy, StoreError, StoreFull, StoreRefused

APPLICATION_ID = 0x52505231  # "RPR1"
BUSY_MS = 10_000

# The settings of each connection, and what SQLite must answer when asked for them.
_SETTINGS: dict[str, tuple[str, object]] = {
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),  # a commit is on disk before it returns
    "foreign_keys": ("ON", 1),
    "secure_delete": ("ON", 1),  # deleted rows are overwritten
    "busy_timeout": (str(BUSY_MS), BUSY_MS),
    "wal_autocheckpoint": (
        "0",
        0,
    ),  # we empty the log, which has the order of arrival
    "fullfsync": ("ON", 1),
    "checkpoint_fullfsync": ("ON", 1),
    "cell_size_check": ("ON", 1),
    "trusted_schema": ("OFF", 0),
    "temp_store": ("MEMORY", 2),  # nothing is written outside the folder
    "mmap_size": ("0", 0),  # a damaged page must be an error, not a signal
    "cache_size": ("-32768", -32768),
}
# What SQLite raises; UnicodeDecodeError if even its message comes from damaged bytes.
FAILURES = (sqlite3.Error, UnicodeDecodeError)
RESTORE = "restore a backup"
_IOERR_SHMSIZE = 10 | 19 << 8  # a full disk when the log's index has to grow


class Cursor(Protocol):
    """The part of a cursor that we use."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """The part of a connection that we use. Tests use one with their own file system."""

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
        """Close the file."""
        ...


class Connect(Protocol):
    """Opens a connection."""

    def __call__(self, path: Path, read_only: bool) -> Connection:
        """Open an existing file."""
        ...


def connect(path: Path, read_only: bool, mode: str = "") -> sqlite3.Connection:
    """The standard library's connection, without automatic transactions.

    Without a `mode`, also a reader may move the log of a dead process into the file and empty it.
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
    """Set all settings and verify each of them, or raise StoreError."""
    for name, (wanted, answer) in _SETTINGS.items():
        if name == "journal_mode" and read_only:
            continue
        connection.execute(f"PRAGMA {name}={wanted}").fetchall()
        (found,) = connection.execute(f"PRAGMA {name}").fetchone() or (None,)
        if found != answer and not (found is None and name == "mmap_size"):
            raise StoreError(f"SQLite does not do {name}={wanted} here: it says {found}")
    if read_only:
        connection.execute("PRAGMA query_only=ON").fetchall()


def translated(error: Exception, path: Path, way_out: str = RESTORE) -> StoreError:
    """Our error for an error of SQLite; `way_out` is what to do if the file is damaged."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"{path}: no room on the disk; nothing was written")
        case sqlite3.SQLITE_IOERR if code == _IOERR_SHMSIZE:
            return StoreFull(f"{path}: no room on the disk for the log; nothing was written")
        case sqlite3.SQLITE_IOERR:
            return StoreBroken(f"{path}: the disk failed ({error})")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(f"{path}: damaged, or not a store ({error}); {way_out}")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"{path}: another process has been writing for too long")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreRefused(
                f"{path}: cannot be opened or written ({error}); check the folder's permissions"
            )
        case _:
            return StoreError(f"{path}: damaged, or not a store ({error}); {way_out}")


@contextmanager
def translating(path: Path, way_out: str = RESTORE) -> Iterator[None]:
    """Turn the errors of SQLite into StoreError."""
    try:
        yield
    except FAILURES as error:
        raise translated(error, path, way_out) from error


def roll_back(connection: Connection) -> None:
    """Roll back a transaction, unless SQLite has done it already."""
    with suppress(*FAILURES):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
