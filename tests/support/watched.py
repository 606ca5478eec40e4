"""A collector that knows what had left at a given moment, and that can keep a client waiting.

It reads without ever blocking. `mark()` reads all that any connection holds by then: on one
machine what a client has written is there at once, so that what is read later left later.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
from typing import Literal

from rappor.wire import decode_batch

Hold = Literal["nothing", "handshake", "answer"]


class Watched:
    """Takes batches over TCP, or over TLS with a certificate."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._lock = threading.RLock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listening.setblocking(False)
        self._open: dict[socket.socket, bytearray] = {}
        self._shaken: set[socket.socket] = set()
        self._over = threading.Event()
        self.hold: Hold = "nothing"
        self.arrived: list[str] = []  # the collection of each batch, as soon as it is whole
        self.accepted = 0
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mark(self) -> int:
        """How many batches have left their clients by now."""
        with self._lock:
            self._look()
            return len(self.arrived)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        with self._lock:
            for each in [*self._open, self._listening]:
                each.close()

    def _run(self) -> None:
        while not self._over.is_set():
            with self._lock:
                self._look()
                waiting = [self._listening, *self._open]
            with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
                for each in waiting:
                    selector.register(each, selectors.EVENT_READ)
                selector.select(0.002 if self._open else 0.01)

    def _look(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted, _ = self._listening.accept()
                accepted.setblocking(False)
                self.accepted += 1
                if self._context is not None:
                    accepted = self._context.wrap_socket(
                        accepted, server_side=True, do_handshake_on_connect=False
                    )
                self._open[accepted] = bytearray()
        for each in list(self._open):
            try:
                self._read(each)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            except OSError:
                self._drop(each)

    def _read(self, connected: socket.socket) -> None:
        if isinstance(connected, ssl.SSLSocket) and connected not in self._shaken:
            if self.hold == "handshake":
                return
            connected.do_handshake()
            self._shaken.add(connected)
        data = self._open[connected]
        whole = _body(data)
        while whole is None:
            part = connected.recv(65_536)
            if not part:
                self._drop(connected)
                return
            data += part
            whole = _body(data)
            if whole is not None:
                self.arrived.append(decode_batch(whole).collection)
        if self.hold != "answer":
            connected.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            self._drop(connected)

    def _drop(self, connected: socket.socket) -> None:
        self._shaken.discard(connected)
        del self._open[connected]
        connected.close()


def _body(data: bytearray) -> bytes | None:
    """The body of a request, once all of it is there."""
    head, end, body = bytes(data).partition(b"\r\n\r\n")
    if not end:
        return None
    sizes = [
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    return body if sizes and len(body) >= sizes[0] else None
