"""The open file: one connection that writes, one that reads, and their transactions."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rappor.errors import StoreBroken, StoreError, StoreRefused
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
from rappor.store.sqlite.store_lock import StoreLock

FOLD_COMMITS = 256  # after this many, the log is moved into the file and written from its start
LOG_BYTES = 16 * 2**20  # a longer log is emptied
LOG_SECONDS = 60.0  # so is an older one, because it has the order of arrival
_QUICK_MS = 100


class Session:
    """Transactions on one file. Thread-safe: writers wait for each other, readers do not wait.

    After the disk has failed once, every call raises StoreBroken. It is not known what a failed
    sync left on the disk, so nothing is tried again.
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
        self.rollbacks = 0  # the number of transactions that were rolled back
        self._settled_at = time.monotonic()
        self._record: commits.CommitRecord | None = None
        self._identities: dict[Path, tuple[int, int]] = {}
        if read_only and not path.is_file():
            raise StoreError(f"{path}: there is no store")
        if not read_only:
            _make_file(path)
        self._lock = StoreLock(path.with_suffix(".lock"), read_only)
        self._open: list[Connection] = []
        try:
            with translating(path):
                if self._lock.alone():
                    self.finding = loss.inspect(path, accept=accept_loss)
                else:  # the process that opened it first has inspected it
                    self._lock.share()
                if not read_only:
                    self._record = commits.CommitRecord(path)
                    sync_folder(path.parent)
                    if _size(self._log):
                        # A killed process may have written this without syncing it. From now on it
                        # counts as stored.
                        sync_file(self._log)
                self._writer = self._connected(connect, read_only)
                if read_only:
                    schema.verify(self._writer)
                    self._reader = self._writer
                    self._read_lock = self._write_lock
                elif self._record is not None:
                    schema.migrate(self._writer)
                    if _size(self._log):  # of a killed process; it may be too long
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
        """Whether the store can be written to."""
        return not self._broken and not self._closed and not self.read_only

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction: all of its changes or none."""
        with self._write_lock:
            self._check_usable()
            if self.read_only:
                raise StoreError(f"{self.path}: the store is open for reading only")
            with self._failing():
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    yield self._writer
                    if self._writer.in_transaction:  # else the caller has rolled back
                        self._commit(unfinished=True)
                except BaseException:
                    self.rollbacks += 1
                    roll_back(self._writer)
                    raise
                self._settle_if_due()

    def _commit(self, *, unfinished: bool) -> None:
        """Commit durably, and count the commit in the store and in the record."""
        before, now = commits.count(self._writer, unfinished=unfinished)
        self._writer.execute("COMMIT")
        self._has_written = True
        self._note(now.number)
        if now.unfinished and not before.unfinished:
            self._settle(_QUICK_MS, "PASSIVE")  # so that also the file without its log says so
        self.check_in_place()

    def _note(self, number: int) -> None:
        """Write the number of commits down, and whose it is as soon as that is known."""
        if self._record is None:
            return
        if not self._record.is_named and (name := commits.name_of(self._writer)) is not None:
            self._record.name(name)
        self._record.note(number)

    def check_in_place(self) -> None:
        """StoreBroken if the open files are no longer those in the folder.

        What is written to a deleted file is lost when the process ends.
        """
        if not self.is_in_place:
            self._broken = f"{self.path}: deleted or replaced while it was open"
            raise StoreBroken(self._broken)

    @property
    def is_in_place(self) -> bool:
        """Whether the open files are still those in the folder. Any thread may ask."""
        try:
            return all(_identity(path) == known for path, known in self._identities.items())
        except OSError:
            return self._closed

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot: it does not change while others write."""
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
        """Translate errors of SQLite, and remember a broken disk."""
        try:
            yield
        except FAILURES as error:
            ours = translated(error, self.path)
            if isinstance(ours, StoreRefused):
                ours = StoreBroken(f"{self.path}: can no longer be written ({error})")
            if isinstance(ours, StoreBroken):
                self._broken = str(ours)
            raise ours from error

    def _settle_if_due(self) -> None:
        """Empty a log that is too long or too old.

        Under load the log keeps its length, because syncing a file that grows takes twice as long.
        """
        self._unfolded += 1
        size = _size(self._log)
        now = time.monotonic()
        if size < self._try_again_above and now - self._settled_at < LOG_SECONDS:
            if self._unfolded >= FOLD_COMMITS:
                self._settle(_QUICK_MS, "RESTART")
            return
        self._settled_at = now
        done = self._settle(_QUICK_MS)
        # If a reader blocks it: try again when the log has grown, or a minute later.
        self._try_again_above = LOG_BYTES if done else size + LOG_BYTES

    def settle(self, patience: int = _QUICK_MS) -> bool:
        """Move the log into the file and empty it; False if a reader blocks it for too long."""
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
                return False  # the log keeps the commits until there is room
            raise
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={BUSY_MS}").fetchall()

    def close(self) -> None:
        """Close everything; the last process to close moves the log into the file."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            if self._has_written and self.usable and self._lock.alone():
                with suppress(StoreError, *FAILURES):  # as after a crash
                    self._writer.execute("BEGIN IMMEDIATE")
                    self._commit(unfinished=False)
                roll_back(self._writer)
            self._abandon()

    def _abandon(self) -> None:
        """Close everything as it is."""
        self._closed = True
        for connection in reversed(self._open):
            with suppress(sqlite3.Error):
                connection.close()
        if self._record is not None:
            self._record.close()
        self._lock.close()


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _identities(*paths: Path) -> dict[Path, tuple[int, int]]:
    """Device and inode of files, to tell them from others of the same name; POSIX only."""
    return {path: _identity(path) for path in paths} if os.name == "posix" else {}


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def sync_file(path: Path) -> None:
    """Sync a file's content to the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StoreBroken(f"{path}: the disk failed ({error})") from error
    finally:
        os.close(descriptor)


def _make_file(path: Path) -> None:
    """Make an empty file for its owner only, and sync its name."""
    if path.exists():
        return
    loss.check_nothing_left(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
