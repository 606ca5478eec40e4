"""Consent on disk: the markers of opting out, and the outbox cleared permanently.

A marker counts if an entry of its name exists, of any kind, even one that cannot be read (a broken
link, a folder): damage cannot undo an opt-out.

Clearing is requested on disk before it is done. While the marker of the request exists, nothing is
sent, and the next process that holds the lock finishes what a crash left undone. Each clearing
starts a new epoch: calls to `report()` from an earlier epoch are discarded.

A batch is sent in this order: connect; take `SENDING_LOCK`; check under `LOCK` that the batch is
still waiting; send it; end the connection; release `SENDING_LOCK`. Opting out clears the outbox
under `LOCK` and then takes `SENDING_LOCK` once. By then, every batch that was checked before the
clearing has been sent, and a check after the clearing finds no batch.
"""

from __future__ import annotations

import contextlib
import os

from rappor.client.folder import Disk
from rappor.client.one_time_slot import discard_unsent
from rappor.client.outbox import Outbox
from rappor.client.processes import AT_EXIT

OPTED_OUT = "opted-out"  # set by opt_out(), removed by opt_in()
PAUSED = "paused"  # opened without consent: that time is never reported on
CLEARING, EPOCH = "clearing", "epoch"
LOCK = "lock"  # held for every change of the ledger or the outbox; never during network traffic
UPLOAD_LOCK = "upload.lock"  # one process uploads at a time
SENDING_LOCK = "sending.lock"  # from the last check of a batch until its connection has ended


def opted_out(disk: Disk) -> bool:
    """Whether the person opted out, in this process or another."""
    return disk.exists(OPTED_OUT)


def mark(disk: Disk, name: str) -> None:
    """Set a marker, durably. An existing entry that cannot be replaced counts as set."""
    try:
        disk.replace(name, b"")
    except OSError:
        if not disk.exists(name):
            raise


def do_not_track() -> bool:
    """Whether DO_NOT_TRACK is set in the environment: to anything but 0, false, no or nothing."""
    return os.environ.get("DO_NOT_TRACK", "").strip().lower() not in ("", "0", "false", "no")


def request_clearing(disk: Disk) -> None:
    """Request that nothing waiting now is ever sent; durable when this returns."""
    mark(disk, CLEARING)


def clearing_requested(disk: Disk) -> bool:
    """Whether the outbox still has to be cleared before anything is sent."""
    return disk.exists(CLEARING)


def epoch(disk: Disk) -> int:
    """How many times the outbox was cleared."""
    data = (disk.read(EPOCH) or b"").strip()
    return int(data) if data.isdigit() and len(data) < 20 else 0


def finish_clearing(disk: Disk, outbox: Outbox) -> None:
    """Clear the outbox if that was requested. Call it while holding the lock."""
    if clearing_requested(disk):
        outbox.clear()
        discard_unsent(disk)
        disk.replace(EPOCH, f"{epoch(disk) + 1}\n".encode("ascii"))
        disk.remove(CLEARING)


def clear_outbox(disk: Disk, outbox: Outbox) -> bool:
    """Request clearing and do it. If False, nothing is sent until a later call has done it."""
    try:
        request_clearing(disk)
        with disk.lock(LOCK, AT_EXIT):
            finish_clearing(disk, outbox)
    except OSError:
        return False
    return True


def delete_waiting(disk: Disk, outbox: Outbox) -> None:
    """Delete what waits, if there is no room to request clearing; what fails, stays."""
    with contextlib.suppress(OSError), disk.lock(LOCK, AT_EXIT):
        for name in outbox.names():
            disk.remove(name)


def nothing_is_sending(disk: Disk) -> bool:
    """Whether no process is still sending a batch that it checked before this call."""
    try:
        with disk.lock(SENDING_LOCK, AT_EXIT):
            return True
    except OSError:
        return False
