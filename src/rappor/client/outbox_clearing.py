"""Clearing: the outbox emptied for good, even if a crash or a held lock comes in between.

The wish is on disk before the deed: while its marker is there nothing is sent, and whoever has the
lock next does what was left undone. Each clearing begins a new epoch: calls to `report()` from an
earlier one come to nothing.

A batch leaves in this order: the connection is made; `SENDING_LOCK` is taken; under `LOCK` it is
checked that the batch still waits; it is sent; the connection ends; `SENDING_LOCK` is released.
Opting out clears under `LOCK` and then takes `SENDING_LOCK` once: what was checked before the
clearing is over by then, and what is checked after it finds no batch.
"""

from __future__ import annotations

from rappor.client.consent import mark
from rappor.client.folder import Disk
from rappor.client.one_time_slot import spoil
from rappor.client.outbox import Outbox
from rappor.client.processes import AT_EXIT

CLEARING, EPOCH = "clearing", "epoch"
LOCK = "lock"  # around every change of the ledger and of what waits; never during network traffic
UPLOAD_LOCK = "upload.lock"  # one process uploads at a time
SENDING_LOCK = "sending.lock"  # from the last check of a batch until its connection has ended


def wish(disk: Disk) -> None:
    """Let nothing that waits now ever be sent; durable when this returns."""
    mark(disk, CLEARING)


def wished(disk: Disk) -> bool:
    """Whether something still has to be cleared before anything is sent."""
    return disk.exists(CLEARING)


def epoch(disk: Disk) -> int:
    """How often what waited was cleared."""
    data = (disk.read(EPOCH) or b"").strip()
    return int(data) if data.isdigit() and len(data) < 20 else 0


def clear(disk: Disk, outbox: Outbox) -> None:
    """Do it, if it was wished for. Call it under the lock."""
    if wished(disk):
        outbox.clear()
        spoil(disk)
        disk.replace(EPOCH, f"{epoch(disk) + 1}\n".encode("ascii"))
        disk.remove(CLEARING)


def empty(disk: Disk, outbox: Outbox) -> bool:
    """Wish for it and do it; where False, nothing is sent until it is done."""
    try:
        wish(disk)
        with disk.lock(LOCK, AT_EXIT):
            clear(disk, outbox)
    except OSError:
        return False
    return True


def is_quiet(disk: Disk) -> bool:
    """Whether nothing that was checked before is still on its way, in any process."""
    try:
        with disk.lock(SENDING_LOCK, AT_EXIT):
            return True
    except OSError:
        return False
