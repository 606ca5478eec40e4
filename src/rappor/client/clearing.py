"""Clearing: the outbox emptied for good, even if a crash or a held lock comes in between.

The wish is on disk before the deed: while its marker is there nothing is sent, and whoever has the
lock next does what was left undone.
"""

from __future__ import annotations

from typing import Protocol

from rappor.client.folder import Disk
from rappor.client.once import spoil
from rappor.client.outbox import Outbox
from rappor.client.processes import AT_EXIT

CLEARING, LOCK, UPLOAD_LOCK = "clearing", "lock", "upload.lock"


class Busy(Protocol):
    """Something of this process that uploads."""

    busy_since: float | None


def wish(disk: Disk) -> None:
    """Let nothing that waits now ever be sent; durable when this returns."""
    disk.replace(CLEARING, b"")


def wished(disk: Disk) -> bool:
    """Whether something still has to be cleared before anything is sent."""
    return disk.read(CLEARING) is not None


def clear(disk: Disk, outbox: Outbox) -> None:
    """Do it, if it was wished for. Call it under the lock."""
    if wished(disk):
        outbox.clear()
        spoil(disk)
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


def is_quiet(disk: Disk, sender: Busy | None) -> bool:
    """Whether no process is sending any more; what this one was sending has been cut off."""
    try:
        with disk.lock(UPLOAD_LOCK, AT_EXIT):
            return True
    except OSError:
        return sender is not None and sender.busy_since is not None
