"""The real server of the demo: `rappor serve` on loopback, over a folder of its own.

Its log goes to a file, which says where it listens and why it ended. The server never outlives this
process: it usually gets SIGTERM; if this process is killed, the kernel kills the server (Linux).
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rappor.collector.keys import new_key
from rappor.demo import DemoError
from rappor.demo.folder import DemoFolder
from rappor.host import LOOPBACK, die_with_parent, free_port

HOST = LOOPBACK
START_SECONDS, STOP_SECONDS, PAGES_SECONDS = 60.0, 15.0, 30.0
_TICK_SECONDS = 0.05


class DemoServer:
    """One server; a context that stops it.

    Attributes:
        gateway_key: lets a sender upload batches of many people's reports; new at each start.
    """

    def __init__(self, where: DemoFolder, port: int = 0, dashboard_port: int = 0) -> None:
        """Start the server; ports of 0 are chosen here, so that a restarted part keeps its port."""
        self.port, self.dashboard_port = port or free_port(), dashboard_port or free_port()
        self._where = where
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
                process_group=0,  # Ctrl-C goes to the demo, which then stops the server
            )

    def login_links(self) -> dict[str, str]:
        """For an analyst and an operator, an address that logs one browser in, once."""
        from rappor.dashboard.auth.roles import Role
        from rappor.dashboard.settings import STATE_FILE, login_link
        from rappor.dashboard.state import DashboardState

        file, links = self._where.data / STATE_FILE, {}
        with contextlib.closing(DashboardState(file, self._where.collections)) as state:
            for role in (Role.ANALYST, Role.OPERATOR):
                secret = state.new_link(f"demo-{role.value}", "rappor demo", role)
                links[role.value] = login_link(self.dashboard_url, secret)
        return links

    def wait_for_pages(self, reports: Mapping[str, int]) -> None:
        """Wait until pages show that many reports of each collection, but not for long.

        The dashboard decodes again when no report came for a moment; a page that is opened before
        says that it is out of date.
        """
        from rappor.dashboard.prefetch import is_enabled
        from rappor.dashboard.settings import STATE_FILE
        from rappor.dashboard.state import DashboardState

        jobs = ("decode", "associate")
        until = time.monotonic() + (PAGES_SECONDS if is_enabled() else 0.0)
        file = self._where.data / STATE_FILE
        with contextlib.closing(DashboardState(file, self._where.collections)) as state:
            while time.monotonic() < until:
                metas = [item for job in jobs for item in state.latest_metas(job).items()]
                shown = {name: meta.get("reports") for name, meta in metas}
                if reports.items() <= shown.items():
                    return
                self.check()
                time.sleep(_TICK_SECONDS)

    @property
    def url(self) -> str:
        """The collector's address."""
        return f"http://{HOST}:{self.port}"

    @property
    def dashboard_url(self) -> str:
        """The dashboard's address."""
        return f"http://{HOST}:{self.dashboard_port}"

    def wait(self, port: int) -> None:
        """Return when the server listens on a port; raise DemoError, with the reason, otherwise."""
        until = time.monotonic() + START_SECONDS
        while not self._listens(port):
            self.check()
            reason = self._reason()
            if reason and any(event.get("event") == "ended" for event in self._events()):
                raise DemoError(f"the server did not start: {reason}")
            if time.monotonic() > until:
                raise DemoError(
                    f"the server did not listen on port {port} in {START_SECONDS:.0f} s"
                )
            time.sleep(_TICK_SECONDS)

    def check(self) -> None:
        """Raise DemoError if the server has ended."""
        code = self._process.poll()
        if code is not None:
            how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
            reason = self._reason()
            raise DemoError(f"the server ended {how}" + (f": {reason}" if reason else ""))

    def stop(self) -> None:
        """Stop the server and its processes; waiting batches are committed first."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the kernel then kills its children
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
            str(event.get("event")).endswith("listening") and event.get("port") == port
            for event in self._events()
        )

    def _lines(self) -> list[str]:
        return self._where.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def _events(self) -> list[dict[str, Any]]:
        events = []
        for line in self._lines():
            with contextlib.suppress(ValueError):
                document = json.loads(line)
                events += [document] if isinstance(document, dict) else []
        return events

    def _reason(self) -> str:
        """The last line of the log that is not JSON but for people; "" if there is none."""
        plain = (line for line in self._lines() if line.strip() and not line.startswith("{"))
        return "".join(list(plain)[-1:])
