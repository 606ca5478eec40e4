"""Resolver: the addresses of a host, within a time limit.

`getaddrinfo` cannot be interrupted, so it runs in its own daemon thread. The caller waits for a
limited time; the thread may run longer. There is at most one such thread.
"""

from __future__ import annotations

import _thread
import socket
import threading
from typing import Any

Address = tuple[int, int, int, str, Any]  # as getaddrinfo gives it


class _Lookup:
    """One call of getaddrinfo, and its result."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.addresses: list[Address] = []
        self.error: Exception | None = None


class Resolver:
    """Looks up one host and port."""

    def __init__(self, host: str, port: int) -> None:
        """Take what to look up; nothing is looked up yet."""
        self._host = host
        self._port = port
        self.after_fork()

    def after_fork(self) -> None:
        """In the child: forget the parent's thread, which does not exist here."""
        self._lookup: _Lookup | None = None

    def addresses(self, timeout: float) -> list[Address]:
        """The addresses of the host.

        Raises:
            OSError: there are none; TimeoutError: the lookup took too long.
        """
        try:
            return self._ask(socket.AI_NUMERICHOST)  # already an address: no lookup
        except (OSError, UnicodeError):
            pass
        lookup = self._lookup
        if lookup is None or lookup.done.is_set():
            lookup = self._lookup = _Lookup()
            try:
                _thread.start_new_thread(self._run, (lookup,))
            except RuntimeError:
                self._lookup = None
                raise OSError("cannot start a thread to look up the collector's name") from None
        if not lookup.done.wait(max(0.0, timeout)):
            raise TimeoutError("looking up the collector's name took too long")
        if lookup.error is not None or not lookup.addresses:
            raise OSError("the collector's name cannot be looked up") from lookup.error
        return lookup.addresses

    def _run(self, lookup: _Lookup) -> None:
        try:
            lookup.addresses = self._ask(0)
        except Exception as error:
            lookup.error = error
        finally:
            lookup.done.set()

    def _ask(self, flags: int) -> list[Address]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        return list(found)
