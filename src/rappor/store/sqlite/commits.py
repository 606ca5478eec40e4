"""The number of commits, in the store and in a small file next to it: a log that is lost is missed.

Each transaction that writes adds one to the number in the store, which is then in the write-ahead
log. After the commit the number is written into the record, a file that no log has to be read for.
A store that has fewer commits than its record has lost some that were acknowledged. The record is
written without a sync, so it costs a commit nothing to speak of: a killed process leaves it exact,
and a power cut leaves it at most `SYNC_SECONDS` behind, which makes it a weaker witness, and never
a wrong one.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rappor.errors import StoreBroken, StoreError, StoreFull
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import SIZE, checksum, typed

ENDING = "-commits"
SYNC_SECONDS = 5.0  # between two syncs of the record, at least
_SLOTS = 8  # the latest numbers: one that is torn, or late, leaves the others
_SLOT_BYTES = 8 + SIZE
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Commits(NamedTuple):
    """The row of `commits`.

    Attributes:
        number: transactions that were committed, this one included.
        unfinished: whether somebody may be writing; False after an orderly end of the last one.
    """

    number: int
    unfinished: bool


def read(connection: Connection) -> Commits:
    """The row, or StoreError where it was changed or is gone."""
    row = connection.execute("SELECT number, unfinished, checksum FROM commits").fetchone()
    number, unfinished, sealed = typed(row, "iib", "the number of commits")
    if checksum("commits", number, unfinished) != sealed and (number or unfinished or any(sealed)):
        raise StoreError("the number of commits: damaged (checksum)")
    return Commits(number, bool(unfinished))


def count(connection: Connection, *, unfinished: bool) -> tuple[Commits, Commits]:
    """Count the open transaction; the row before it and with it."""
    before = read(connection)
    after = Commits(before.number + 1, unfinished)
    _write(connection, after)
    return before, after


def finish(connection: Connection) -> None:
    """Say of a copy that nobody is writing to it."""
    number, _ = read(connection)
    _write(connection, Commits(number, False))


def _write(connection: Connection, row: Commits) -> None:
    unfinished = int(row.unfinished)
    connection.execute(
        "UPDATE commits SET number=?, unfinished=?, checksum=?",
        (row.number, unfinished, checksum("commits", row.number, unfinished)),
    )


class Record:
    """The file next to the store that says how many commits it has, at least.

    Args:
        path: the store's file.
        clock: seconds, for the syncs.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(f"{path}{ENDING}")
        self._clock = clock
        self._descriptor: int | None = None
        self._synced_at: float | None = None
        with _failing(self.path):
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if os.fstat(self._descriptor).st_size < _SLOTS * _SLOT_BYTES:
                os.pwrite(self._descriptor, bytes(_SLOTS * _SLOT_BYTES), 0)
                os.fsync(self._descriptor)

    def note(self, number: int) -> None:
        """A transaction of this number is on disk."""
        if self._descriptor is None:
            return
        at = number % _SLOTS * _SLOT_BYTES
        try:
            os.pwrite(self._descriptor, _slot(number), at)
        except OSError as error:
            if error.errno not in _NO_ROOM:  # else it is behind until there is room
                raise StoreBroken(f"{self.path}: the disk failed ({error})") from error
        now = self._clock()
        if self._synced_at is None or now - self._synced_at >= SYNC_SECONDS:
            self._synced_at = now
            with _failing(self.path):
                os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def recorded(path: Path) -> int | None:
    """How many commits a store has at least, as its record says; None where none can be read."""
    try:
        data = Path(f"{path}{ENDING}").read_bytes()[: _SLOTS * _SLOT_BYTES]
    except FileNotFoundError:
        return None
    slots = (data[at : at + _SLOT_BYTES] for at in range(0, len(data), _SLOT_BYTES))
    numbers = [int.from_bytes(slot[:8], "little") for slot in slots if _is_sound(slot)]
    return max(numbers, default=None)


def _slot(number: int) -> bytes:
    return number.to_bytes(8, "little") + checksum("commits-record", number)


def _is_sound(slot: bytes) -> bool:
    return len(slot) == _SLOT_BYTES and _slot(int.from_bytes(slot[:8], "little")) == slot


class _failing:
    """Errors of the file system in our words."""

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
