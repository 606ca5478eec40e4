"""Processes: what happens to the clients of a process when it forks and when it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Protocol

AT_EXIT = 2.0  # seconds that all clients together may delay the end of a process


class LivingClient(Protocol):
    """A client that needs to know of forks and of the end of the process."""

    def after_fork(self) -> None:
        """In the child: start with new queues and threads, without locks and sockets."""

    def close(self, timeout: float) -> bool:
        """Record all calls, send what is due, and stop."""


_living: set[LivingClient] = set()  # kept until closed, even if the application drops them


def begin(client: LivingClient) -> None:
    """Register a client."""
    _living.add(client)


def end(client: LivingClient) -> None:
    """Remove a client."""
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
