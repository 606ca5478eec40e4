"""One dashboard process: its parts, its signals, and its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from rappor.dashboard import templating
from rappor.dashboard.app import build
from rappor.dashboard.assets import Assets
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.context import Context
from rappor.dashboard.ingest.watch import Watch
from rappor.dashboard.jobs import Jobs
from rappor.dashboard.limits import no_core_dumps
from rappor.dashboard.prefetch import Prefetcher, is_enabled
from rappor.dashboard.results.serialization import prepare as prepare_tables
from rappor.dashboard.settings import DashboardSettings
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.database import text_of
from rappor.dashboard.timeouts import MAX_CONNECTIONS, PatientProtocol
from rappor.host import bound

CACHE = "dashboard-cache"
_STOP_SECONDS = 5
_SWITCH_SECONDS = 0.001  # a page gets the interpreter back soon while a snapshot is made
_GC = (50_000, 20, 100)  # a snapshot has many small objects and no reference cycles
_LOG = logging.getLogger("rappor.dashboard")


class _Lines(logging.Formatter):
    """One JSON object a line, like the collector's log."""

    def format(self, record: logging.LogRecord) -> str:
        when = text_of(datetime.fromtimestamp(record.created, UTC))
        said = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        said |= getattr(record, "fields", {})
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said)


def set_up_log(level: str = "info") -> None:
    """Log to standard error, one JSON object a line, without an access log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)


class DashboardServer(uvicorn.Server):
    """uvicorn's server; it logs its address, and exits with 0 when it is told to stop."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then log the address."""
        await super().startup(sockets)
        gc.freeze()  # objects that exist now stay
        gc.set_threshold(*_GC)
        for server in self.servers:
            host, port = server.sockets[0].getsockname()[:2]
            _LOG.info("dashboard-listening", extra={"fields": {"host": host, "port": port}})

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; ignore SIGHUP."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        yield

    def _stop(self) -> None:
        """Begin to stop; the second time, without waiting for requests."""
        self.force_exit = self.should_exit
        self.should_exit = True


def run(settings: DashboardSettings, log_level: str = "info") -> int:
    """Serve until stopped.

    Raises:
        StoreError: state that cannot be opened.
        OSError: an address that cannot be listened on.
    """
    no_core_dumps()
    set_up_log(log_level)
    sys.setswitchinterval(_SWITCH_SECONDS)
    address = bound(settings.host, settings.port)
    settings = settings.listening(address.getsockname()[1])
    context = context_of(settings)
    context.state.address = settings.address
    context.catalogue.prepare()
    templating.prepare()
    context.assets.prepare()
    threading.Thread(target=prepare_tables, daemon=True).start()
    context.watch.start()
    prefetcher = Prefetcher(context)
    if is_enabled():
        prefetcher.start()
    config = uvicorn.Config(
        build(context),
        http=PatientProtocol,
        limit_concurrency=MAX_CONNECTIONS,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    try:
        DashboardServer(config).run(sockets=[address])
    finally:
        prefetcher.close()
        context.watch.close()
        context.jobs.close()
        context.state.close()
    return 0


def context_of(settings: DashboardSettings) -> Context:
    """The parts of one dashboard."""
    state = DashboardState(settings.state_file, settings.collections)
    state.save_first_lists()
    return Context(
        settings=settings,
        catalogue=Catalogue(settings.data, settings.collections, stored=state.keep_results_of),
        state=state,
        jobs=Jobs(state),
        assets=Assets(Path(settings.data) / CACHE),
        watch=Watch(settings.collector),
    )
