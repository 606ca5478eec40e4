"""One collector process: its parts, signals, housekeeping and exit code.

On SIGTERM or SIGINT it stops accepting, commits what waits and exits with 0 within ten seconds. On
SIGHUP it reads collections and keys again. If the store fails it exits with 1, and its parent
restarts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import gc
import logging
import math
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from rappor.collection import (
    Collection,
    ExpiryState,
    Registry,
    announcement,
    diff,
    expiring,
    expiry_state,
    lint_all,
)
from rappor.collector import log
from rappor.collector.admission import Admission, Today, utc_today
from rappor.collector.app import App
from rappor.collector.clock_check import ClockCheck
from rappor.collector.folder_lock import CollectorLock
from rappor.collector.http_protocol import GuardedProtocol, GuardedTls, guarded
from rappor.collector.keys import read_keys
from rappor.collector.metrics import Metrics
from rappor.collector.settings import (
    DRAIN_SECONDS,
    HANDSHAKE_SECONDS,
    IDLE_SECONDS,
    CollectorSettings,
)
from rappor.collector.writer import Writer
from rappor.errors import (
    ParamsError,
    RapporError,
    StoreBroken,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from rappor.host import LOOPBACK, bound
from rappor.store import RetentionResult, Store, open_store
from rappor.store.retention_rules import is_ahead

_TICK_SECONDS = 0.5
_RETRY_SECONDS = 600.0  # after a reader has kept retention from finishing
_LATE_DAYS = 2  # since the latest retention: another process should have run it yesterday
_BY_THE_OWNER = (
    "this role may not delete: run `rappor retain --store URL` every day as the owner of the store"
)
_FIRST_WAIT, _MAX_WAIT = 0.5, 5.0  # seconds between attempts to reach a database at the start
ACTOR = "collector"
RETAINED = "retain-as-of"  # an audit entry: retention is about to run as of this day


class Collector(uvicorn.Server):
    """uvicorn's server with our signals and housekeeping."""

    def __init__(
        self,
        settings: CollectorSettings,
        store: Store,
        registry: Registry,
        today: Today = utc_today,
        writer: Callable[..., Writer] = Writer,
        app: Callable[..., App] = App,
    ) -> None:
        """Put the parts together; `run` serves until it is stopped."""
        self.settings, self.store = settings, store
        self.metrics = Metrics(settings.store)
        self.writer = writer(store, settings, self.metrics, today, self.fail)
        keys = None if settings.keys is None else read_keys(settings.keys)
        admission = Admission(registry, today, last_retention(store))
        if admission.retained is not None and admission.retained > today():
            log.event("clock-went-back", logging.ERROR, retained=admission.retained.isoformat())
        self.app = app(settings, admission, self.writer, self.metrics, keys)
        self.exit_code = 0
        self._clock_check = ClockCheck(today())
        self._retained_on: datetime.date | None = None
        self._retry_at = math.inf
        self._owner_retains = False  # with least privilege: this process is not asked again
        self._probing = False
        self._ticked_at = math.inf
        self._housekeeping: asyncio.Task[None] | None = None
        super().__init__(
            uvicorn.Config(
                self.app,
                http=guarded(self.metrics, settings, self.app.take, self.app.cors),
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=2048,
                timeout_keep_alive=int(IDLE_SECONDS),
                timeout_graceful_shutdown=int(DRAIN_SECONDS),
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the writer, then listen."""
        self.writer.start(asyncio.get_running_loop())
        await self._listen(sockets or [])
        self._housekeeping = asyncio.create_task(self._keep_house())
        gc.freeze()  # objects made so far are permanent: do not scan them in each collection
        gc.set_threshold(50_000, 20, 50)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        log.event("listening", host=host, port=port, tls=self.settings.tls_cert is not None)

    async def _listen(self, sockets: list[socket.socket]) -> None:
        """What uvicorn does, with limits on TLS handshakes."""
        config, loop = self.config, asyncio.get_running_loop()

        def connection() -> asyncio.BaseProtocol:
            make: Any = config.http_protocol_class
            protocol: GuardedProtocol = make(
                config=config, server_state=self.server_state, app_state={}
            )
            if config.ssl is None:
                return protocol
            return GuardedTls(protocol, config.ssl, HANDSHAKE_SECONDS)

        self.servers = [
            await loop.create_server(connection, sock=sock, backlog=config.backlog)
            for sock in sockets
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, finish requests, commit what waits."""
        await super().shutdown(sockets)
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(None, self.writer.stop, 1.0):
            self.exit_code = 1
        await asyncio.sleep(0)  # the last answers

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle our signals while serving, if this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        actions = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGHUP: self.reload}
        for number, action in actions.items():
            loop.add_signal_handler(number, action)
        try:
            yield
        finally:
            for number in actions:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Begin to stop; the second call does not wait for open requests."""
        self.force_exit = self.should_exit
        if not self.should_exit:
            log.event("stopping")
        self.should_exit = True

    def fail(self) -> None:
        """Stop because the store failed."""
        self.exit_code = 1
        self.should_exit = True

    def reload(self) -> None:
        """Read collections and keys again; if they are wrong, keep the old ones."""
        try:
            registry = Registry.open(self.settings.collections)
            keys = None if self.settings.keys is None else read_keys(self.settings.keys)
        except (RapporError, OSError) as error:
            _reload_failed(error)
            return

        def adopt(store: Store) -> None:
            try:
                save_definitions(store, registry)
            except ParamsError as error:
                _reload_failed(error)
                return
            before = self.app.admission
            self.app.admission = Admission(registry, before.today, before.retained)
            if _expired(registry, before.today()) - _expired(before.registry, before.today()):
                self._retained_on = None  # do not wait until tomorrow to delete what has ended
            self.app.keys = keys
            log.event("reloaded", collections=len(registry.all()))
            warn_of(registry, self.app.admission.today())

        self.writer.ask("reload", adopt)

    async def _keep_house(self) -> None:
        while True:
            try:
                self._tick()
            except Exception as error:
                log.failure("housekeeping-failed", error)
            await asyncio.sleep(_TICK_SECONDS)

    def _tick(self) -> None:
        self._check_connections(asyncio.get_running_loop().time())
        log.report_left_out()
        self.writer.expire()
        if not self.writer.alive and not self.should_exit:  # for any reason
            self.writer.give_up([])
        if self.writer.alive and not self.store.in_place:
            self.writer.ask("folder", _check_in_place)
        today = self.app.admission.today()
        if self._retained_on != today or time.monotonic() > self._retry_at:
            self._retained_on, self._retry_at = today, math.inf
            if self._clock_check.leaps(today):  # deletion by a wrong date cannot be undone
                log.event("clock-leapt", logging.ERROR)
            else:
                self.writer.ask("retention", self._retain)
        if self.store.retained is not None:  # another process may have done it
            self.app.admission.retain(self.store.retained)
            self.app.last_retention = max(
                self.store.retained, self.app.last_retention or self.store.retained
            )
        if (self.writer.full or self.writer.unreachable) and not self._probing:
            self._probing = True
            self.writer.ask("probe", self._probe)

    def _check_connections(self, now: float) -> None:
        """Close late connections; do not count time in which this process did not run."""
        slept = now - self._ticked_at - _TICK_SECONDS
        self._ticked_at = now
        for connection in list(self.server_state.connections):
            if isinstance(connection, GuardedProtocol):
                if slept > _TICK_SECONDS:
                    connection.forgive(slept)
                connection.check_time(now)

    def _retain(self, store: Store) -> None:
        self._retry_at = time.monotonic() + _RETRY_SECONDS  # unless it succeeds
        today, admission = self.app.admission.today(), self.app.admission
        if is_ahead(today, store.server_day()):
            log.event("clock-leapt", logging.ERROR)
            return
        try:
            removed = self._try_to_retain(store, today)
        except StoreBusy:  # another collector does it, or its lock is taken: later
            return
        if removed is None:
            self._retry_at = math.inf
            self._leave_retention_to_the_owner(store, today)
            return
        self.app.last_retention = today
        if removed.settled:  # else a reader blocks it, and the bytes are still in the log
            self._retry_at = math.inf
        log.event(
            "retention",
            reports=removed.reports,
            cells=len(removed.count_cells),
            tokens=removed.tokens,
        )
        for collection in expiring(admission.registry, today):
            log.event("expires-soon", logging.WARNING, text=announcement(collection, today))

    def _try_to_retain(self, store: Store, today: datetime.date) -> RetentionResult | None:
        """Delete; None if the role may not. A role that may not even write that it will may not."""
        admission = self.app.admission
        if admission.retained is None or today > admission.retained:
            try:  # first, because deleted tokens cannot be restored
                store.audit(ACTOR, RETAINED, today.isoformat())
            except StoreRefused:
                self._owner_retains = True
            admission.retain(today)
        if not self._owner_retains:
            try:
                return store.retain(today, admission.registry)
            except StoreRefused:
                self._owner_retains = True
        return None

    def _leave_retention_to_the_owner(self, store: Store, today: datetime.date) -> None:
        """With least privilege, the owner runs `rappor retain`: warn if nobody has."""
        with contextlib.suppress(StoreError):
            store.probe()  # it reads the day of the latest retention, also without traffic
        last = store.retained
        late = last is None or (today - last).days > _LATE_DAYS
        log.event(
            "retention-not-permitted",
            logging.WARNING if late else logging.INFO,
            last="never" if last is None else last.isoformat(),
            text=_BY_THE_OWNER,
        )

    def _probe(self, store: Store) -> None:
        """Try to write, so that the health check recovers without traffic."""
        self._probing = False
        with contextlib.suppress(StoreError):
            store.probe()
            self.writer.recovered()


def _check_in_place(store: Store) -> None:
    """End the writer if its files were deleted: what it writes would be lost."""
    if not store.in_place:
        log.event("folder-gone", logging.ERROR)
        raise StoreBroken("the store's files were deleted or replaced")


def last_retention(store: Store) -> datetime.date | None:
    """The latest day of retention, by the clock of that time; None if there was none."""
    try:
        entries = store.audit_log()
    except StoreRefused:
        return store.retained
    except StoreError as error:  # `rappor status` says more; go on collecting
        log.failure("audit-damaged", error)
        return None
    days = [entry.when[:10] for entry in entries if entry.action == "retain"]
    days += [entry.detail for entry in entries if entry.action == RETAINED]
    known = [*map(datetime.date.fromisoformat, days), *filter(None, [store.retained])]
    return max(known, default=None)


def save_definitions(store: Store, registry: Registry) -> None:
    """Save each definition with its counts, which cannot be decoded without it.

    Raises:
        ParamsError: a file changes the meaning of a saved version; nothing is saved then.
    """
    saved = {(known.collection, known.version): known.toml for known in store.definitions()}
    for collection in registry.all():
        toml = saved.get((collection.name, collection.version))
        refusal = "" if toml is None else diff(Collection.from_toml(toml), collection).refusal
        if refusal:  # exit code 3: a restart would not help
            raise ParamsError(
                f"{collection.name} v{collection.version} is in use with another definition: "
                f"{refusal}"
            )
    for collection in registry.all():
        store.save_definition(collection.to_toml(), actor=ACTOR)


def _expired(registry: Registry, today: datetime.date) -> set[tuple[str, int]]:
    """The names and versions that have expired."""
    return {
        (collection.name, collection.version)
        for collection in registry
        if expiry_state(collection, today) is ExpiryState.EXPIRED
    }


def warn_of(registry: Registry, today: datetime.date) -> None:
    """Log lint errors. The collections are served anyway: clients may have them already."""
    if not registry:
        log.event("no-collections", logging.WARNING)
    for finding in lint_all(registry.all(), today):
        if finding.severity == "error":
            log.event("lint", logging.WARNING, code=finding.code, text=finding.text)


def _reload_failed(error: Exception) -> None:
    """Log the reason: it is about the operator's files, and no client can influence it."""
    log.event("reload-failed", logging.ERROR, reason=str(error))


def _opened_when_reachable(
    settings: CollectorSettings, opened: Callable[[str | Path], Store]
) -> Store | None:
    """Open the store; wait for a database that cannot be reached. None if told to stop meanwhile.

    A collector that ended instead would be started again at once, or, by what starts it, ever more
    slowly (CrashLoopBackOff), or not at all (the start limit of systemd).
    """
    if settings.store is None:
        return opened(settings.data or "")
    with _stop_signals() as stopping:
        pause, said = _FIRST_WAIT, False
        while not stopping.is_set():
            try:
                return opened(settings.store)
            except StoreUnavailable as error:
                if not said:
                    log.event("store-unreachable", logging.ERROR, text=str(error))
                    said = True
            stopping.wait(pause)
            pause = min(2 * pause, _MAX_WAIT)
    return None


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, if this is the main thread."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    before = {
        number: signal.signal(number, lambda *_: stopping.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stopping
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def run(
    settings: CollectorSettings,
    *,
    opened: Callable[[str | Path], Store] = open_store,
    today: Today = utc_today,
    writer: Callable[..., Writer] = Writer,
    app: Callable[..., App] = App,
) -> int:
    """Serve until stopped; return 0, or 1 after a failure.

    Args:
        settings: the collector's settings.
        opened: opens the store.
        today: returns the date.
        writer: makes the writer.
        app: makes the application.

    Raises:
        ParamsError: collections or keys cannot be read, or contradict saved definitions.
        StoreError: the store cannot be opened.
    """
    log.set_up(settings.log_level)
    registry = Registry.open(settings.collections)
    warn_of(registry, today())
    lock = None
    if settings.store is None and settings.data is not None:
        lock = CollectorLock(settings.data)
    store = _opened_when_reachable(settings, opened)
    if store is None:
        log.event("stopped", code=0)
        return 0
    save_definitions(store, registry)
    collector = Collector(settings, store, registry, today, writer, app)
    addresses = [bound(settings.host, settings.port, shared=settings.share_port)]
    if settings.metrics_port is not None:
        addresses.append(bound(LOOPBACK, settings.metrics_port))
    collector.run(sockets=addresses)
    if collector.exit_code == 0:
        store.close()
        if lock is not None:
            lock.close()  # after a failure it is held until the process ends
    log.event("stopped", code=collector.exit_code)
    return collector.exit_code
