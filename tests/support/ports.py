"""Ports of this machine that nobody else is given while a test needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from rappor.host import LOOPBACK, bound


class HeldPort:
    """A port that is bound without listening until it is closed: connections to it are refused.

    The system gives it to nobody who asks for any free port. A server that is told its number may
    listen on it, also again after a restart, if it sets SO_REUSEADDR, as servers do.
    """

    def __init__(self) -> None:
        self._holder = bound(LOOPBACK, 0)
        self.number: int = self._holder.getsockname()[1]

    def close(self) -> None:
        self._holder.close()


@contextmanager
def held_port() -> Iterator[int]:
    """A port for a block: of a server, or one where nobody listens."""
    holder = HeldPort()
    try:
        yield holder.number
    finally:
        holder.close()
