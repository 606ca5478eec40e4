"""Consent on disk: markers whose being there is what counts, so that damage cannot undo them."""

from __future__ import annotations

import os

from rappor.client.folder import Disk

OPTED_OUT = "opted-out"  # by opt_out(): stays until opt_in()
PAUSED = "paused"  # opened without consent: the time without it is never reported on


def opted_out(disk: Disk) -> bool:
    """Whether the person opted out, in this process or another."""
    return disk.read(OPTED_OUT) is not None


def do_not_track() -> bool:
    """Whether the environment asks for it: DO_NOT_TRACK set to anything but 0, false or nothing."""
    return os.environ.get("DO_NOT_TRACK", "").strip().lower() not in ("", "0", "false", "no")
