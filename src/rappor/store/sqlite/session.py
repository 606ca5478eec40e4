"""The open file: a connection that writes, one that reads, and the rules of their use."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rappor.errors import StoreBroken, StoreError
from rappor.store.sqlite import commits, loss, schema
from rappor.store.sqlite.connection import (
    BUSY_MS,
    FAILURES,
    Connect,
    Connection,
    prepare,
    roll_back,
    translated,
    translating,
)
from rappor.store.sqlite.lock import FolderLock

FOLD_COMMITS = 256  # so many are folded into the file, and the log is written again from its start
LOG_BYTES = 16 * 2**20  # a longer log is emptied
LOG_SECONDS = 60.0  # and so is an older one: it holds the order in which reports came
_QUICK_MS = 100


class Session:
    """Transactions on one file. Thread-safe: writers wait for each other, readers do not wait.

    After the disk has failed once, everything raises StoreBroken: what a failed sync left on disk
    is not known, so nothing is tried again.
    """

    def __init__(
        self, path: Path, connect: Connect, read_only: bool, accept_loss: bool = False
    ) -> None:
        self.path = path
        self._log = path.with_name(path.name + "-wal")
        self.read_only = read_only
        self.finding = loss.LossFinding()
        self._broken = ""
        self._closed = False
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._try_again_above = LOG_BYTES
        self._unfolded = 0  # commits
        self._has_written = False
        self.rollbacks = 0  # transactions of which nothing is left
        self._settled_at = time.monotonic()
        self._record: commits.Record | None = None
        self._identities: dict[Path, tuple[int, int]] = {}
        if read_only and not path.is_file():
            raise StoreError(f"{path}: there is no store")
        if not read_only:
            _make_file(path)
        self._lock = FolderLock(path.with_suffix(".lock"), read_only)
        self._open: list[Connection] = []
        try:
            with translating(path):
                if self._lock.alone():
                    self.finding = loss.inspect(path, accept=accept_loss)
                else:  # whoever came first has looked
                    self._lock.share()
                if not read_only:
                    self._record = commits.Record(path)
                    sync_folder(path.parent)
                    if _size(self._log):
                        # What a process has written, and not synced when it was killed, is about to
                        # count as stored.
                        sync_file(self._log)
                self._writer = self._connected(connect, read_only)
                if read_only:
                    schema.verify(self._writer)
                    self._reader = self._writer
                    self._read_lock = self._write_lock
                elif self._record is not None:
                    schema.migrate(self._writer)
                    if _size(self._log):  # of one that was killed: it may have no room for more
                        self._settle(_QUICK_MS)
                    self._reader = self._connected(connect, True)
                    self._note(commits.read(self._writer).number)
                self._reader.execute("SELECT count(*) FROM seals").fetchone()  # recovers the log
            if not read_only:
                self._identities = _identities(path, self._log)
            self._lock.share()
        except StoreError as error:
            self._abandon()
            if str(path) in str(error):
                raise
            raise type(error)(f"{path}: {error}") from error.__cause__
        except BaseException:
            self._abandon()
            raise

    def _connected(self, connect: Connect, read_only: bool) -> Connection:
        connection = connect(self.path, read_only)
        self._open.append(connection)
        prepare(connection, read_only)
        return connection

    def _check_usable(self) -> None:
        if self._broken:
            raise StoreBroken(f"{self._broken}; nothing is tried again")
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")

    @property
    def usable(self) -> bool:
        """Whether it can be written to."""
        return not self._broken and not self._closed and not self.read_only

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction: all of what happens in it, or nothing."""
        with self._write_lock:
            self._check_usable()
            if self.read_only:
                raise StoreError(f"{self.path}: the store is open for reading only")
            with self._failing():
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    yield self._writer
                    if self._writer.in_transaction:  # else the caller has thought better of it
                        self._commit(unfinished=True)
                except BaseException:
                    self.rollbacks += 1
                    roll_back(self._writer)
                    raise
                self._settle_if_due()

    def _commit(self, *, unfinished: bool) -> None:
        """Commit durably, and count it where a lost log does not reach."""
        before, now = commits.count(self._writer, unfinished=unfinished)
        self._writer.execute("COMMIT")
        self._has_written = True
        self._note(now.number)
        if now.unfinished and not before.unfinished:
            self._settle(_QUICK_MS, "PASSIVE")  # the file says so by itself, without its log
        self.check_in_place()

    def _note(self, number: int) -> None:
        """Write the number of commits down, and whose it is as soon as that is known."""
        if self._record is None:
            return
        if not self._record.is_named and (name := commits.name_of(self._writer)) is not None:
            self._record.name(name)
        self._record.note(number)

    def check_in_place(self) -> None:
        """StoreBroken where the open files are no longer those in the folder.

        What is written to a file that was deleted is gone when the process ends.
        """
        if not self.is_in_place:
            self._broken = f"{self.path}: deleted or replaced while it was open"
            raise StoreBroken(self._broken)

    @property
    def is_in_place(self) -> bool:
        """Whether the open files are still those in the folder. For any thread, at any time."""
        try:
            return all(_identity(path) == known for path, known in self._identities.items())
        except OSError:
            return self._closed

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot: what others write meanwhile is not seen."""
        with self._read_lock:
            self._check_usable()
            with self._failing():
                try:
                    self._reader.execute("BEGIN")
                    yield self._reader
                finally:
                    roll_back(self._reader)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Errors in our words; a broken disk is remembered."""
        try:
            yield
        except FAILURES as error:
            meant = translated(error, self.path)
            if type(meant) is StoreError and _is_unwritable(error):
                meant = StoreBroken(f"{self.path}: can no longer be written ({error})")
            if isinstance(meant, StoreBroken):
                self._broken = str(meant)
            raise meant from error

    def _settle_if_due(self) -> None:
        """Under load the log keeps its length: to sync a file that grows takes twice as long."""
        self._unfolded += 1
        size = _size(self._log)
        now = time.monotonic()
        if size < self._try_again_above and now - self._settled_at < LOG_SECONDS:
            if self._unfolded >= FOLD_COMMITS:
                self._settle(_QUICK_MS, "RESTART")
            return
        self._settled_at = now
        done = self._settle(_QUICK_MS)
        # A reader is in the way: try again when the log has grown some more, or a minute later.
        self._try_again_above = LOG_BYTES if done else size + LOG_BYTES

    def settle(self, patience: int = _QUICK_MS) -> bool:
        """Fold the log into the file and empty it; False where a reader is in the way so long."""
        with self._write_lock:
            self._check_usable()
            with self._failing():
                return self.read_only or self._settle(patience)

    def _settle(self, patience: int, how: str = "TRUNCATE") -> bool:
        self._unfolded = 0
        try:
            self._writer.execute(f"PRAGMA busy_timeout={patience}").fetchall()
            row = self._writer.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            return bool(row is not None and row[0] == 0)
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", None) or 0
            if code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
                return False  # the log keeps what is committed until there is room
            raise
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={BUSY_MS}").fetchall()

    def close(self) -> None:
        """Let go of everything; the last one to leave folds the log into the file."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            if self._has_written and self.usable and self._lock.alone():
                with suppress(StoreError, *FAILURES):  # else it is found as after a crash
                    self._writer.execute("BEGIN IMMEDIATE")
                    self._commit(unfinished=False)
                roll_back(self._writer)
            self._abandon()

    def _abandon(self) -> None:
        """Let go of everything as it is."""
        self._closed = True
        for connection in reversed(self._open):
            with suppress(sqlite3.Error):
                connection.close()
        if self._record is not None:
            self._record.close()
        self._lock.close()


def _is_unwritable(error: Exception) -> bool:
    """Whether SQLite says that a file which could be written cannot be written any more."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _identities(*paths: Path) -> dict[Path, tuple[int, int]]:
    """What tells the files that are open from others of the same name, where names have that."""
    return {path: _identity(path) for path in paths} if os.name == "posix" else {}


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def sync_file(path: Path) -> None:
    """Make sure that what is in a file is on disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StoreBroken(f"{path}: the disk failed ({error})") from error
    finally:
        os.close(descriptor)


def _make_file(path: Path) -> None:
    """An empty file that only its owner can read, and its name on disk."""
    if path.exists():
        return
    loss.check_nothing_left(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
