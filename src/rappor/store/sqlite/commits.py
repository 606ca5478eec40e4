"""Counts commits in the store and in a small file next to it, to notice a lost write-ahead log.

Each transaction that writes adds one to the number in the store, which is first in the write-ahead
log. After the commit the number is also written to the record, a separate file. If the store has
fewer commits than its record, acknowledged commits were lost. The record is not synced at each
commit, so it costs almost nothing. It is exact after a process was killed. After a power cut it may
be up to `SYNC_SECONDS` behind: then it may miss a loss, but never reports a false one. It also
names the store, by the first entry of the audit log, so that files of another store are noticed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rappor.errors import StoreBroken, StoreError, StoreFull
from rappor.store.checksums import SIZE, checksum, typed
from rappor.store.sqlite.connection import Connection

ENDING = "-commits"
SYNC_SECONDS = 5.0  # the shortest time between two syncs of the record
_SLOTS = 8  # for the latest numbers: if one write is torn or late, the others remain
_SLOT_BYTES = 8 + SIZE
_NUMBER_BYTES = _SLOTS * _SLOT_BYTES  # then the name of the store and its checksum
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class CommitRow(NamedTuple):
    """The row of `commits`.

    Attributes:
        number: the number of committed transactions, including this one.
        unfinished: whether somebody may be writing; False after the last writer closed in order.
    """

    number: int
    unfinished: bool


def read(connection: Connection) -> CommitRow:
    """The row, or StoreError if it was changed or is missing."""
    row = connection.execute("SELECT number, unfinished, checksum FROM commits").fetchone()
    number, unfinished, sealed = typed(row, "iib", "the number of commits")
    if checksum("commits", number, unfinished) != sealed and (number or unfinished or any(sealed)):
        raise StoreError("the number of commits: damaged (checksum)")
    return CommitRow(number, bool(unfinished))


def name_of(connection: Connection) -> bytes | None:
    """What names a store: the first entry of its audit log; None before there is one."""
    row = connection.execute("SELECT checksum FROM audit WHERE id=1").fetchone()
    return None if row is None else bytes(typed(row, "b", "the audit log")[0])


def count(connection: Connection, *, unfinished: bool) -> tuple[CommitRow, CommitRow]:
    """Count the open transaction; the row before it and with it."""
    before = read(connection)
    after = CommitRow(before.number + 1, unfinished)
    _write(connection, after)
    return before, after


def finish(connection: Connection) -> None:
    """Mark a copy: nobody writes to it."""
    number, _ = read(connection)
    _write(connection, CommitRow(number, False))


def _write(connection: Connection, row: CommitRow) -> None:
    unfinished = int(row.unfinished)
    connection.execute(
        "UPDATE commits SET number=?, unfinished=?, checksum=?",
        (row.number, unfinished, checksum("commits", row.number, unfinished)),
    )


class CommitRecord:
    """The file next to the store with the least number of commits that it must have.

    Args:
        path: the store's file.
        clock: seconds, for the syncs.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(f"{path}{ENDING}")
        self._clock = clock
        self._descriptor: int | None = None
        self._synced_at: float | None = None
        self.is_named = False
        with _failing(self.path):
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if os.fstat(self._descriptor).st_size < _NUMBER_BYTES:
                os.pwrite(self._descriptor, bytes(_NUMBER_BYTES), 0)
                os.fsync(self._descriptor)

    def name(self, name: bytes) -> None:
        """Say whose record it is; on disk with the next sync."""
        self._write(name + checksum("commits-store", name), _NUMBER_BYTES)
        self.is_named = True

    def note(self, number: int) -> None:
        """Note that the transaction with this number is on disk."""
        if self._descriptor is None:
            return
        self._write(_slot(number), number % _SLOTS * _SLOT_BYTES)
        now = self._clock()
        if self._synced_at is None or now - self._synced_at >= SYNC_SECONDS:
            self._synced_at = now
            with _failing(self.path):
                os.fsync(self._descriptor)

    def _write(self, data: bytes, at: int) -> None:
        if self._descriptor is None:
            return
        try:
            os.pwrite(self._descriptor, data, at)
        except OSError as error:
            if error.errno not in _NO_ROOM:  # else it is behind until there is room
                raise StoreBroken(f"{self.path}: the disk failed ({error})") from error

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def recorded(path: Path) -> int | None:
    """How many commits a store has at least, as its record says; None where none can be read."""
    data = _content(path)[:_NUMBER_BYTES]
    slots = (data[at : at + _SLOT_BYTES] for at in range(0, len(data), _SLOT_BYTES))
    numbers = [int.from_bytes(slot[:8], "little") for slot in slots if _is_sound(slot)]
    return max(numbers, default=None)


def named(path: Path) -> bytes | None:
    """Whose record it is (`name_of`); None where that cannot be read."""
    data = _content(path)[_NUMBER_BYTES:]
    name = data[:SIZE]
    return name if data == name + checksum("commits-store", name) else None


def _content(path: Path) -> bytes:
    try:
        return Path(f"{path}{ENDING}").read_bytes()
    except FileNotFoundError:
        return b""


def _slot(number: int) -> bytes:
    return number.to_bytes(8, "little") + checksum("commits-record", number)


def _is_sound(slot: bytes) -> bool:
    return len(slot) == _SLOT_BYTES and _slot(int.from_bytes(slot[:8], "little")) == slot


class _failing:
    """Turns errors of the file system into StoreFull and StoreBroken."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in _NO_ROOM:
            raise StoreFull(f"{self._path}: no room on the disk; nothing was written") from error
        if error.errno == errno.EIO:
            raise StoreBroken(f"{self._path}: the disk failed ({error})") from error
