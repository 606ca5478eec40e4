"""Outbox: reports that wait to be sent, and those that were sent, as exact bytes.

Each report is one file and one request. Two reports in one batch would reveal that they come from
one client, and reports that can be grouped defeat the instantaneous response (§2, step 3). A file
never changes; a retry sends the same bytes with the same token, which the collector counts once.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from rappor import formats
from rappor.client.clock import day_of
from rappor.client.folder import Disk, seal, unseal
from rappor.collection import days_of
from rappor.errors import ParamsError, WireError
from rappor.wire import Batch, decode_batch, encode_batch
from rappor.wire.protocol import ACCEPTANCE_DAYS

OUTBOX, SENT, COUNTS = "outbox", "sent", "counts"
HOLD = 3600.0  # seconds after the end of a period; by then null reports are in the outbox too
_READY, _HELD, _TRIED, _REFUSED = ".batch", ".held", ".tried", ".refused"
STATES = {
    (OUTBOX, _READY): "waiting",
    (OUTBOX, _HELD): "waiting for the end of the period",
    (OUTBOX, _TRIED): "waiting, tried before: the collector may have seen it",
    (SENT, _READY): "sent",
    (SENT, _TRIED): "tried, then dropped: the collector may have seen it",
    (SENT, _REFUSED): "sent, and refused",
}


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch in the outbox.

    Attributes:
        name: its file.
        batch: what is in it.
        body: the bytes of the request.
        held: whether it stays until an hour after its period. Then nobody sees whether it was made
            during the period (it has a value) or after it (a null report).
    """

    name: str
    batch: Batch
    body: bytes
    held: bool

    def due(self, now: float) -> bool:
        """Whether it is no longer held, and a collector accepts its period now."""
        first, last = days_of(self.batch.period)
        if self.held:
            return last < day_of(now - HOLD)
        return first <= day_of(now) + datetime.timedelta(days=1)

    def too_old(self, today: datetime.date) -> bool:
        """Whether no collector accepts it any more."""
        return days_of(self.batch.period)[1] < today - datetime.timedelta(days=ACCEPTANCE_DAYS)


class Outbox:
    """The folders `outbox` and `sent` of a client's directory, and what was dropped from them."""

    def __init__(self, disk: Disk, limit: int = 100) -> None:
        """Take the directory, and how many batches may wait."""
        self._disk = disk
        self._limit = limit

    def put(self, number: int, batch: Batch, *, held: bool = False) -> None:
        """Write a batch, durably; drop the oldest to make room. Call it while holding the lock."""
        self._write(f"{number:010d}{_HELD if held else _READY}", batch)

    def put_again(self, batch: Batch) -> None:
        """Write a batch under a name that depends on its token only: a second copy replaces it."""
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
        """The files of waiting batches, oldest first."""
        return self._disk.names(OUTBOX)

    def read(self, name: str) -> WaitingBatch | None:
        """A waiting batch; None if it is gone, or was damaged and is dropped now."""
        data = self._disk.read(name)
        if data is None:
            return None
        found = parse_batch(data)
        if found is None:
            self._disk.remove(name)
            self.count("dropped: damaged")
            return None
        return WaitingBatch(name, found[0], found[1], name.endswith(_HELD))

    def periods(self) -> list[tuple[str, str]]:
        """The collection and the period of each batch that waits; changes nothing."""
        found = (parse_batch(self._disk.read(name) or b"") for name in self.names())
        return [(each[0].collection, each[0].period) for each in found if each is not None]

    def trying(self, name: str) -> str:
        """Mark a batch as tried before it is sent; return its new name."""
        tried = _renamed(name, OUTBOX, _TRIED)
        if tried != name:
            self._disk.move(name, tried)
        return tried

    def drop(self, name: str, why: str) -> None:
        """Remove a batch and count why; one that was tried is kept with the sent ones."""
        self._take_out(name)
        self.count(f"dropped: {why}")

    def refused(self, name: str, why: str) -> None:
        """Move a batch that the collector refused permanently to the sent ones."""
        self._keep(name, _REFUSED)
        self.count(f"dropped: refused ({why})")

    def sent(self, name: str) -> None:
        """Move a batch to the sent ones; drop the oldest of them to make room."""
        self._keep(name, _READY)
        self.count("sent")

    def _take_out(self, name: str) -> None:
        if name.endswith(_TRIED):
            self._keep(name, _TRIED)
        else:
            self._disk.remove(name)

    def _keep(self, name: str, end: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # cleared, or sent by another process too
            self._disk.move(name, _renamed(name, SENT, end))
        for old in self._disk.names(SENT)[: -self._limit]:
            self._disk.remove(old)

    def clear(self) -> None:
        """Drop everything that waits."""
        for name in self.names():
            self.drop(name, "opted out")

    def count(self, what: str, times: int = 1) -> None:
        """Count an event; losing a count does no harm."""
        if times:
            with contextlib.suppress(OSError):
                counts = dict(self.counts())
                counts[what] = counts.get(what, 0) + times
                text = formats.format_json(dict(sorted(counts.items())))
                self._disk.replace(COUNTS, seal(COUNTS, text.encode("ascii")))

    def counts(self) -> Mapping[str, int]:
        """The counted events."""
        body = unseal(COUNTS, self._disk.read(COUNTS) or b"")
        try:
            return {str(k): int(v) for k, v in formats.parse_json((body or b"{}").decode()).items()}
        except (ParamsError, ValueError, TypeError, AttributeError):
            return {}


def _renamed(name: str, folder: str, end: str) -> str:
    return f"{folder}/{name.rpartition('/')[2].rpartition('.')[0]}{end}"


def state_of(name: str) -> str:
    """The state of a batch, from the name of its file."""
    folder, _, file = name.rpartition("/")
    return STATES.get((folder, f".{file.rpartition('.')[2]}"), "waiting")


def newest(disk: Disk) -> int:
    """The highest number of a waiting or sent batch; 0 if there is none."""
    names = (name for folder in (OUTBOX, SENT) for name in disk.names(folder))
    numbers = (name.rpartition("/")[2].partition(".")[0] for name in names)
    return max(
        (int(number) for number in numbers if number.isascii() and number.isdigit()), default=0
    )


def parse_batch(data: bytes) -> tuple[Batch, bytes] | None:
    """The batch in a file, and the bytes that are sent; None if the file is damaged."""
    body = unseal("batch", data)
    if body is None:
        return None
    try:
        batch = decode_batch(body)
        days_of(batch.period)
    except (WireError, ParamsError):
        return None
    return batch, body
