"""Processes: what the clients of a process do when it forks and when it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Protocol

AT_EXIT = 2.0  # seconds that the end of a process may wait, for all clients together


class Lives(Protocol):
    """What is told of a fork and of the end."""

    def after_fork(self) -> None:
        """In the child: own queues, own threads when needed, no lock and no socket."""

    def close(self, timeout: float) -> bool:
        """Keep what was reported, send what is due, stop."""


_living: set[Lives] = set()  # held here until closed: a host may let go of its client


def begin(client: Lives) -> None:
    """Tell this client of forks and of the end."""
    _living.add(client)


def end(client: Lives) -> None:
    """Tell it no more."""
    _living.discard(client)


def _at_exit() -> None:
    until = time.monotonic() + AT_EXIT
    for client in list(_living):
        with contextlib.suppress(Exception):
            client.close(until - time.monotonic())


def _after_fork_in_child() -> None:
    for client in list(_living):
        with contextlib.suppress(Exception):
            client.after_fork()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
