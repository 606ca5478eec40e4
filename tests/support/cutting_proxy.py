"""A proxy between collectors and their database that cuts connections at a byte of its choice."""

import contextlib
import random
import socket
import threading
from dataclasses import dataclass

from rappor.host import LOOPBACK

# What ends a transaction: the statement, or the tokens of rappor.add_batches, which is a whole
# transaction (the head of an array of bytes: one dimension, no NULL, type bytea).
COMMITS = (b"COMMIT", bytes.fromhex("00000001 00000000 00000011"))
_PIECE = 65536


@dataclass
class Cut:
    """Where to cut: after some more bytes in a direction, or at a COMMIT.

    Attributes:
        to_server: whether bytes to the server are counted, else those to the collector.
        bytes: how many more pass.
        commit: cut when a COMMIT passes; `bytes` of its message still reach the server.
    """

    to_server: bool
    bytes: int
    commit: bool = False


class CuttingProxy:
    """Forwards to a port of this machine until it is told to cut.

    Attributes:
        port: where it listens.
        cuts: the number of connections that it has cut.
        swallowing: whether it drops all bytes and keeps connections open, as a server that hangs.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.cuts = 0
        self.swallowing = False
        self._armed: Cut | None = None
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut) -> None:
        """Cut the connection on which this happens first."""
        with self._lock:
            self._armed = cut

    @property
    def is_armed(self) -> bool:
        return self._armed is not None

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((LOOPBACK, self.target))
            except OSError:
                near.close()
                continue
            self._sockets |= {near, far}
            for source, sink, to_server in ((near, far, True), (far, near, False)):
                threading.Thread(
                    target=self._forward, args=(source, sink, to_server), daemon=True
                ).start()

    def _forward(self, source: socket.socket, sink: socket.socket, to_server: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                if self.swallowing:
                    continue
                passed = self._passing(data, to_server)
                sink.sendall(data[:passed])
                if passed < len(data) or passed == 0:
                    break
        self._close(source, sink)

    def _passing(self, data: bytes, to_server: bool) -> int:
        """How many bytes pass; fewer than all if the connection is to be cut here."""
        with self._lock:
            cut = self._armed
            if cut is None or cut.to_server is not to_server:
                return len(data)
            if cut.commit:
                found = [at for commit in COMMITS if (at := data.find(commit)) >= 0]
                if not found:
                    return len(data)
                at = min(found)
                self._armed, self.cuts = None, self.cuts + 1
                passed = min(at + cut.bytes, len(data))
                # All of it may pass: then what is cut is the answer.
                return passed if passed < len(data) else self._all_then_cut(data)
            if cut.bytes >= len(data):
                cut.bytes -= len(data)
                return len(data)
            self._armed, self.cuts = None, self.cuts + 1
            return cut.bytes

    def _all_then_cut(self, data: bytes) -> int:
        """Let everything pass, and cut before any answer does."""
        self._armed = Cut(to_server=False, bytes=0)
        self.cuts -= 1
        return len(data)

    def _close(self, *sockets: socket.socket) -> None:
        for each in sockets:
            self._sockets.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._close(*list(self._sockets))


def random_cut(dice: random.Random) -> Cut:
    """A cut at any byte of a transaction; half of them at its COMMIT."""
    if dice.random() < 0.5:
        return Cut(to_server=True, bytes=dice.choice([0, 3, 6, 7, 12, 1_000_000]), commit=True)
    return Cut(to_server=dice.random() < 0.5, bytes=dice.randrange(6_000))
