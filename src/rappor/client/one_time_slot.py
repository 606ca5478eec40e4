"""The one report of a one-time collection (§2.1), stored on disk before it is sent."""

from __future__ import annotations

from rappor.client.folder import Disk, seal
from rappor.client.identity import ONCE
from rappor.client.outbox import parse_batch
from rappor.client.problems import Stopped
from rappor.client.randomness import random_bytes
from rappor.collection import Collection
from rappor.mechanism.report import Report
from rappor.wire import Batch, encode_batch, unpack
from rappor.wire.dimensions import Cell

_QUEUED = ".queued"


class DiskSlot:
    """A durable place for one collection's one report (`rappor.mechanism.Slot`).

    It holds the whole batch with its token, so that a batch sent again after a crash counts once.
    """

    def __init__(self, disk: Disk, collection: Collection, period: str, cell: Cell) -> None:
        """Take what a new batch needs."""
        self._disk = disk
        self._collection = collection
        self._period = period
        self._cell = cell
        self._name = f"{ONCE}/{collection.name}-{collection.memo_digest[:16]}"

    def load(self) -> Report | None:
        """The stored report, or None if there was never one."""
        batch = self.batch()
        if batch is None:
            return None
        return Report(int.from_bytes(batch.cohorts, "little"), unpack(batch.reports, batch.k))

    def keep(self, report: Report) -> None:
        """Store the report durably, unless one is stored already."""
        made = Batch.of(
            [report],
            token=random_bytes(16),
            collection=self._collection.name,
            version=self._collection.version,
            period=self._period,
            dimensions=self._cell,
            k=self._collection.params.k,
        )
        try:
            self._disk.create(self._name, seal("batch", encode_batch(made)))
        except FileExistsError:
            return

    def batch(self) -> Batch | None:
        """The stored batch; Stopped if it is damaged, because a second one is never drawn."""
        data = self._disk.read(self._name)
        if data is None:
            return None
        found = parse_batch(data)
        if found is None:
            raise Stopped("slot-damaged")
        return found[0]

    @property
    def queued(self) -> bool:
        """Whether the batch was put into the outbox."""
        return self._disk.read(self._name + _QUEUED) is not None

    def mark_queued(self) -> None:
        """Record that the batch was put into the outbox, or must not be any more."""
        self._disk.replace(self._name + _QUEUED, b"")


def discard_unsent(disk: Disk) -> None:
    """Make sure that one-time reports that are not in the outbox yet are never sent."""
    names = set(disk.names(ONCE))
    for name in names:
        if not name.endswith(_QUEUED) and name + _QUEUED not in names:
            disk.replace(name + _QUEUED, b"")
