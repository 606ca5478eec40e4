"""The real server of the demo: `rappor serve` on loopback, over a folder of its own.

Its log goes to a file, which says where it listens and why it ended. It ends with this process,
however that one ends: on SIGTERM in the usual case, by the kernel where this one was killed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from types import TracebackType
from typing import Any

from rappor.collector.keys import new_key
from rappor.demo.errors import DemoError
from rappor.demo.folder import DemoFolder
from rappor.host import LOOPBACK, die_with_parent, free_port

HOST = LOOPBACK
START_SECONDS, STOP_SECONDS = 60.0, 15.0
_TICK_SECONDS = 0.05


class DemoServer:
    """One server; a context that stops it.

    Attributes:
        gateway_key: sends batches of many people's reports; each start has a new one.
    """

    def __init__(self, where: DemoFolder, port: int = 0, dashboard_port: int = 0) -> None:
        """Start it; ports of 0 are chosen here, so that a part that restarts has the same one."""
        self.port, self.dashboard_port = port or free_port(), dashboard_port or free_port()
        self._log = where.log
        options = ["--data", str(where.data), "--collections", str(where.collections)]
        options += ["--host", HOST, "--port", str(self.port)]
        where.keys.unlink(missing_ok=True)  # of an earlier demo in the same folder
        self.gateway_key = new_key(where.keys, "crowd", role="gateway")
        options += ["--keys", str(where.keys), "--keys-optional"]
        options += ["--dashboard-port", str(self.dashboard_port), "--simulated"]
        with where.log.open("wb") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "rappor", "serve", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                preexec_fn=die_with_parent,
                process_group=0,  # Ctrl-C is for the demo, which then stops the server
            )

    @property
    def url(self) -> str:
        """The collector's address."""
        return f"http://{HOST}:{self.port}"

    @property
    def dashboard_url(self) -> str:
        """The dashboard's address."""
        return f"http://{HOST}:{self.dashboard_port}"

    def wait(self, port: int) -> None:
        """Return when a port is listened on; DemoError, with the reason, where it never is."""
        until = time.monotonic() + START_SECONDS
        while not self._listens(port):
            self.check()
            reason = self._reason()
            if reason and any(each.get("event") == "ended" for each in self._events()):
                raise DemoError(f"the server did not start: {reason}")
            if time.monotonic() > until:
                raise DemoError(
                    f"the server did not listen on port {port} in {START_SECONDS:.0f} s"
                )
            time.sleep(_TICK_SECONDS)

    def check(self) -> None:
        """DemoError where the server has ended."""
        code = self._process.poll()
        if code is not None:
            how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
            reason = self._reason()
            raise DemoError(f"the server ended {how}" + (f": {reason}" if reason else ""))

    def stop(self) -> None:
        """End it, with all that it started; what waits is committed first."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the kernel then ends its children
            self._process.wait()

    def __enter__(self) -> DemoServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _listens(self, port: int) -> bool:
        return any(
            str(each.get("event")).endswith("listening") and each.get("port") == port
            for each in self._events()
        )

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()

    def _events(self) -> list[dict[str, Any]]:
        found = []
        for line in self._lines():
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                found += [said] if isinstance(said, dict) else []
        return found

    def _reason(self) -> str:
        """The last line for people in its log, "" where there is none: it logs JSON."""
        plain = (line for line in self._lines() if line.strip() and not line.startswith("{"))
        return "".join(list(plain)[-1:])
