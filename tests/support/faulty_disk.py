"""A file system for SQLite that watches, and fails on demand: apsw's VFS under our own store.

The store is handed a connection of apsw instead of the standard library's; all its SQL and settings
stay the same. What the file system sees is what a disk would.
"""

import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from rappor.store.sqlite.store import SqliteStore

_NUMBERS = itertools.count()
_ERRORS: dict[str, tuple[Any, int]] = {  # apsw's errors have attributes that its types leave out
    "full": (apsw.FullError, apsw.SQLITE_FULL),
    "io": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
}


class Disk:
    """What is written and not yet synced, by file; and what is to fail.

    Attributes:
        unsynced: bytes written to each file since its last sync.
        calls: writes, truncations and syncs so far.
        fail_at: from this call on, fail; None: never.
        fail_once: only that call.
        how: "full" or "io".
        which: the operations that count: "write", "sync", "truncate".
    """

    def __init__(self) -> None:
        self.unsynced: dict[str, int] = {}
        self.calls = 0
        self.failed = 0
        self.fail_at: int | None = None
        self.fail_once = False
        self.how = "io"
        self.which = {"write", "sync", "truncate"}
        self.name = f"watched-{next(_NUMBERS)}"
        self.vfs = _Watching(self)

    def arm(self, at: int, how: str, *, once: bool = False, which: set[str] | None = None) -> None:
        """Fail at the so-many-th call from now."""
        self.calls, self.failed = 0, 0
        self.fail_at, self.how, self.fail_once = at, how, once
        self.which = which or {"write", "sync", "truncate"}

    def disarm(self) -> None:
        self.fail_at = None

    def happens(self, what: str) -> None:
        """One operation; raises if its time has come."""
        if what not in self.which:
            return
        number, self.calls = self.calls, self.calls + 1
        if self.fail_at is None or number < self.fail_at or (self.fail_once and self.failed):
            return
        self.failed += 1
        kind, code = _ERRORS[self.how]
        error = kind("planted")
        error.result, error.extendedresult = code & 0xFF, code
        raise error

    def open(self, path: Path, **options: Any) -> SqliteStore:
        """A store on this disk."""
        return SqliteStore(path, connect=self.connect, **options)

    def connect(self, path: Path, read_only: bool) -> Any:
        return Connection(path, self.name)


class _Watching(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> "_File":
        return _File(self.disk, name, flags)

    def excepthook(self, kind: Any, error: Any, trace: Any) -> bool:
        """Whether it is a planted error, which SQLite keeps to itself when it cleans up."""
        return "planted" in str(error)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.named = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.happens("write")
        super().xWrite(data, offset)
        self.disk.unsynced[self.named] = self.disk.unsynced.get(self.named, 0) + len(data)

    def xTruncate(self, size: int) -> None:
        self.disk.happens("truncate")
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self.disk.happens("sync")
        super().xSync(flags)
        self.disk.unsynced.pop(self.named, None)

    def excepthook(self, kind: Any, error: Any, trace: Any) -> bool:
        """Whether it is a planted error, which SQLite keeps to itself when it cleans up."""
        return "planted" in str(error)


class Cursor:
    """A cursor of apsw, as the standard library has it."""

    def __init__(self, inner: Any, changed: int) -> None:
        self._inner, self.rowcount = inner, changed

    def fetchone(self) -> Any:
        with translating():
            return self._inner.fetchone()

    def fetchall(self) -> list[Any]:
        with translating():
            return list(self._inner.fetchall())

    def __iter__(self) -> Iterator[Any]:
        with translating():
            yield from self._inner


class Connection:
    """A connection of apsw, as the standard library has it."""

    def __init__(self, path: Path, vfs: str) -> None:
        with translating():
            self._inner = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)

    @property
    def in_transaction(self) -> bool:
        return bool(self._inner.in_transaction)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        with translating():
            return Cursor(self._inner.execute(sql, parameters), self._inner.changes())

    def executemany(self, sql: str, parameters: Any) -> Cursor:
        with translating():
            return Cursor(self._inner.executemany(sql, parameters), self._inner.changes())

    def close(self) -> None:
        with translating():
            self._inner.close()


class translating:
    """Errors of apsw as those of the standard library, with the same codes."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, apsw.Error):
            meant = sqlite3.OperationalError(str(error))
            meant.sqlite_errorcode = error.extendedresult  # type: ignore[attr-defined]
            raise meant from error


class Careless(Disk):
    """A disk whose connections never sync: what synchronous=OFF does."""

    def connect(self, path: Path, read_only: bool) -> Any:
        return _Off(path, self.name)


class _Off(Connection):
    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        if sql == "PRAGMA cache_size":  # the last setting that is verified: a build that cheats
            super().execute("PRAGMA synchronous=OFF")
        return super().execute(sql, parameters)
