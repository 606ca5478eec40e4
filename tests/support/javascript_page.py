"""A web server for the sources of the JavaScript client, one that records reports, and a browser.

Pages have a strict Content-Security-Policy. The browser is a process of its own, with a profile on
disk, so that it can be killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rappor.wire import Batch, decode_batch
from support.javascript import PACKAGE
from support.waiting import wait_for

POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src http://127.0.0.1:*; "
    "base-uri 'none'; form-action 'none'"
)
_TYPES = {".js": "text/javascript", ".html": "text/html", ".json": "application/json"}


class SourceServer:
    """Serves `clients/js` on a loopback address, which browsers take for a secure context."""

    def __init__(self) -> None:
        """Start on a free port."""
        self.violations: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = (PACKAGE / self.path.split("?")[0].lstrip("/")).resolve()
                found = path.is_file() and PACKAGE in path.parents
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", _TYPES.get(path.suffix, "text/plain"))
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("Set-Cookie", "marker=cookie-of-the-page; Path=/")
                self.end_headers()
                if found:
                    self.wfile.write(path.read_bytes())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def page(self) -> str:
        """The address of the page."""
        return f"{self.origin}/tests/page.html"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


class RecordingCollector:
    """Answers like a collector that lets every origin in, and keeps what it was sent.

    A batch that comes again, because a busy machine answered too late, is kept once.
    """

    def __init__(self) -> None:
        """Start on a free port."""
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.hold = threading.Event()  # while it is clear, no request is answered
        self.hold.set()
        self.arrived = 0
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_OPTIONS(self) -> None:
                self._answer(
                    ("Access-Control-Allow-Methods", "POST"),
                    ("Access-Control-Allow-Headers", "content-type, authorization"),
                )

            def do_POST(self) -> None:
                recorder.arrived += 1
                recorder.hold.wait()
                try:
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    if body not in (known for _, known in recorder.requests):
                        recorder.requests.append((headers, body))
                    self._answer()
                except OSError:
                    pass  # the browser is gone

            def _answer(self, *headers: tuple[str, str]) -> None:
                self.send_response(204)
                for name, value in (("Access-Control-Allow-Origin", "*"), *headers):
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def batches(self) -> list[Batch]:
        """What was sent, in order."""
        return [decode_batch(body) for _, body in self.requests]

    def close(self) -> None:
        """Stop."""
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()


class BrowserProcess:
    """Chromium with a profile on disk, which a test may kill."""

    def __init__(self, chromium: str, profile: Path) -> None:
        """Start it and wait until it can be driven."""
        active = profile / "DevToolsActivePort"
        active.unlink(missing_ok=True)
        options = ["--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run"]
        self.process = subprocess.Popen(
            [chromium, *options, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for(lambda: active.exists() and active.read_text().count("\n"), "a browser")
        self.address = f"http://127.0.0.1:{active.read_text().splitlines()[0]}"

    def kill(self) -> None:
        """End all its processes at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def serving() -> Iterator[SourceServer]:
    """The server for the length of a block."""
    server = SourceServer()
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def recording() -> Iterator[RecordingCollector]:
    """The recording collector for the length of a block."""
    collector = RecordingCollector()
    try:
        yield collector
    finally:
        collector.close()
