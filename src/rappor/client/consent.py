"""Consent on disk: markers whose being there is what counts, so that damage cannot undo them.

An entry of any kind counts, also one that cannot be read: a link to nothing, a folder.
"""

from __future__ import annotations

import os

from rappor.client.folder import Disk

OPTED_OUT = "opted-out"  # by opt_out(): stays until opt_in()
PAUSED = "paused"  # opened without consent: the time without it is never reported on


def opted_out(disk: Disk) -> bool:
    """Whether the person opted out, in this process or another."""
    return disk.exists(OPTED_OUT)


def mark(disk: Disk, name: str) -> None:
    """Set a marker, durably; an entry that is there and cannot be replaced is one."""
    try:
        disk.replace(name, b"")
    except OSError:
        if not disk.exists(name):
            raise


def do_not_track() -> bool:
    """Whether the environment asks for it: DO_NOT_TRACK set to anything but 0, false or nothing."""
    return os.environ.get("DO_NOT_TRACK", "").strip().lower() not in ("", "0", "false", "no")
