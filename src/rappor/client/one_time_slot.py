"""Once: the one report of a One-time collection, kept on disk before it is sent (R11)."""

from __future__ import annotations

from rappor.client.folder import Disk
from rappor.client.identity import ONCE
from rappor.client.outbox import parse_batch
from rappor.client.problems import Stopped
from rappor.client.randomness import random_bytes
from rappor.client.sealed import seal
from rappor.collection import Collection
from rappor.mechanism.report import Report
from rappor.wire import Batch, encode_batch, unpack
from rappor.wire.dimensions import Cell

_QUEUED = ".queued"


class DiskSlot:
    """A durable place for one collection's one report (`rappor.mechanism.Slot`).

    It holds the whole batch, token included: sent again after a crash, it is counted once.
    """

    def __init__(self, disk: Disk, collection: Collection, period: str, cell: Cell) -> None:
        """Take what a batch made now would carry."""
        self._disk = disk
        self._collection = collection
        self._period = period
        self._cell = cell
        self._name = f"{ONCE}/{collection.name}-{collection.memo_digest[:16]}"

    def load(self) -> Report | None:
        """The report that was kept, or None if there was never one."""
        batch = self.batch()
        if batch is None:
            return None
        return Report(int.from_bytes(batch.cohorts, "little"), unpack(batch.reports, batch.k))

    def keep(self, report: Report) -> None:
        """Make the report durable, unless one is kept already."""
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
        """The batch that was kept; Stopped if it is damaged: another is never drawn."""
        data = self._disk.read(self._name)
        if data is None:
            return None
        found = parse_batch(data)
        if found is None:
            raise Stopped("slot-damaged")
        return found[0]

    @property
    def queued(self) -> bool:
        """Whether the batch went to the outbox."""
        return self._disk.read(self._name + _QUEUED) is not None

    def mark_queued(self) -> None:
        """Remember that the batch went to the outbox, or must not go there any more."""
        self._disk.replace(self._name + _QUEUED, b"")


def spoil(disk: Disk) -> None:
    """See to it that One-time reports which were made but not sent never are, of any collection."""
    names = set(disk.names(ONCE))
    for name in names:
        if not name.endswith(_QUEUED) and name + _QUEUED not in names:
            disk.replace(name + _QUEUED, b"")
