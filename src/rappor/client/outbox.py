"""Outbox: reports that wait to be sent, and those that were, as the exact bytes (R8, R22).

One report is one file and one request: two reports in one batch would be known to come from one
client, and reports that can be grouped defeat the instantaneous step. A file never changes; a
retry sends the same bytes with the same token, which the collector counts once.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from rappor import formats
from rappor.client.clock import day_of
from rappor.client.folder import Disk
from rappor.client.sealed import seal, unseal
from rappor.collection import days_of
from rappor.errors import ParamsError, WireError
from rappor.wire import Batch, decode_batch, encode_batch
from rappor.wire.protocol import ACCEPTANCE_DAYS

OUTBOX, SENT, COUNTS = "outbox", "sent", "counts"
HOLD = 3600.0  # seconds after a period's end, by when "no value" is in the outbox too
_READY, _HELD, _TRIED, _REFUSED = ".batch", ".held", ".tried", ".refused"
STATES = {
    (OUTBOX, _READY): "waiting",
    (OUTBOX, _HELD): "waiting for the end of the period",
    (OUTBOX, _TRIED): "waiting, tried before: the collector may have seen it",
    (SENT, _READY): "sent",
    (SENT, _TRIED): "tried and given up: the collector may have seen it",
    (SENT, _REFUSED): "sent, and refused",
}


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch in the outbox.

    Attributes:
        name: its file.
        batch: what is in it.
        body: the bytes of the request.
        held: whether it stays until an hour after its period, so that nobody sees whether it was
            made during the period (a value) or after it (none).
    """

    name: str
    batch: Batch
    body: bytes
    held: bool

    def due(self, now: float) -> bool:
        """Whether a collector takes its period now, and whether it is no longer held."""
        first, last = days_of(self.batch.period)
        if self.held:
            return last < day_of(now - HOLD)
        return first <= day_of(now) + datetime.timedelta(days=1)

    def too_old(self, today: datetime.date) -> bool:
        """Whether no collector will take it any more."""
        return days_of(self.batch.period)[1] < today - datetime.timedelta(days=ACCEPTANCE_DAYS)


class Outbox:
    """The folders `outbox` and `sent` of a client's directory, and what was dropped from them."""

    def __init__(self, disk: Disk, limit: int = 100) -> None:
        """Take the directory and the most batches that may wait."""
        self._disk = disk
        self._limit = limit

    def put(self, number: int, batch: Batch, *, held: bool = False) -> None:
        """Write a batch, durably; the oldest make room for it. Call it under the lock."""
        self._write(f"{number:010d}{_HELD if held else _READY}", batch)

    def put_again(self, batch: Batch) -> None:
        """Write a batch that may be there already, under a name that it always has."""
        self._write(f"once-{batch.token.hex()[:16]}{_READY}", batch)

    def _write(self, file: str, batch: Batch) -> None:
        name = f"{OUTBOX}/{file}"
        names = self._disk.names(OUTBOX)
        surplus = names[: max(0, len(names) + 1 - self._limit)]
        for old in surplus:
            self._take_out(old)
        self._disk.replace(name, seal("batch", encode_batch(batch)))
        self.count("dropped: outbox full", len(surplus))

    def names(self) -> list[str]:
        """The files that wait, oldest first."""
        return self._disk.names(OUTBOX)

    def read(self, name: str) -> WaitingBatch | None:
        """A batch that waits; None if it is gone, or damaged and therefore dropped."""
        data = self._disk.read(name)
        if data is None:
            return None
        found = parse_batch(data)
        if found is None:
            self._disk.remove(name)
            self.count("dropped: damaged")
            return None
        return WaitingBatch(name, found[0], found[1], name.endswith(_HELD))

    def trying(self, name: str) -> str:
        """Note, before a batch leaves, that it may have left; its name from then on."""
        tried = _renamed(name, OUTBOX, _TRIED)
        if tried != name:
            self._disk.move(name, tried)
        return tried

    def drop(self, name: str, why: str) -> None:
        """Take out a batch, and count why; what may have left is kept among what was sent."""
        self._take_out(name)
        self.count(f"dropped: {why}")

    def refused(self, name: str, why: str) -> None:
        """Move a batch that the collector has seen and never takes to those that were sent."""
        self._keep(name, _REFUSED)
        self.count(f"dropped: refused ({why})")

    def sent(self, name: str) -> None:
        """Move a batch to those that were sent; the oldest of them make room."""
        self._keep(name, _READY)
        self.count("sent")

    def _take_out(self, name: str) -> None:
        if name.endswith(_TRIED):
            self._keep(name, _TRIED)
        else:
            self._disk.remove(name)

    def _keep(self, name: str, end: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # cleared, or another process sent it as well
            self._disk.move(name, _renamed(name, SENT, end))
        for old in self._disk.names(SENT)[: -self._limit]:
            self._disk.remove(old)

    def clear(self) -> None:
        """Take out all that waits."""
        for name in self.names():
            self.drop(name, "opted out")

    def count(self, what: str, times: int = 1) -> None:
        """Remember how often something happened; losing such a count does no harm."""
        if times:
            with contextlib.suppress(OSError):
                counts = dict(self.counts())
                counts[what] = counts.get(what, 0) + times
                text = formats.format_json(dict(sorted(counts.items())))
                self._disk.replace(COUNTS, seal(COUNTS, text.encode("ascii")))

    def counts(self) -> Mapping[str, int]:
        """What happened to batches, and how often."""
        body = unseal(COUNTS, self._disk.read(COUNTS) or b"")
        try:
            return {str(k): int(v) for k, v in formats.parse_json((body or b"{}").decode()).items()}
        except (ParamsError, ValueError, TypeError, AttributeError):
            return {}


def _renamed(name: str, folder: str, end: str) -> str:
    return f"{folder}/{name.rpartition('/')[2].rpartition('.')[0]}{end}"


def state_of(name: str) -> str:
    """What a file's name says about its batch."""
    folder, _, file = name.rpartition("/")
    return STATES.get((folder, f".{file.rpartition('.')[2]}"), "waiting")


def newest(disk: Disk) -> int:
    """The highest number of a batch that waits or was sent; 0 if there is none."""
    names = (name for folder in (OUTBOX, SENT) for name in disk.names(folder))
    numbers = (name.rpartition("/")[2].partition(".")[0] for name in names)
    return max((int(each) for each in numbers if each.isascii() and each.isdigit()), default=0)


def parse_batch(data: bytes) -> tuple[Batch, bytes] | None:
    """The batch in a file, and the bytes that are sent; None where they are damaged."""
    body = unseal("batch", data)
    if body is None:
        return None
    try:
        batch = decode_batch(body)
        days_of(batch.period)
    except (WireError, ParamsError):
        return None
    return batch, body
