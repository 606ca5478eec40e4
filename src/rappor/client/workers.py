"""Workers: the two background threads of a client, one for the disk and one for the network.

The application's threads only put items into a queue. Both background threads are daemons: they
never keep a process alive. After a fork, the child starts its own.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable

from rappor.client.recorder import Recorder
from rappor.client.sender import TIMEOUT, Sender
from rappor.client.transport import Transport

Call = tuple[str, object, float, int]  # collection, value, time, epoch of consent
TICK = 30.0  # seconds between checks for periods that have ended
_SEND_FOR = 60.0
_STUCK = 6 * TIMEOUT
_REST = 0.02
_PAUSE = 1.0  # seconds that a thread waits after an error of its own
_log = logging.getLogger("rappor.client")


class WorkRequest:
    """A request to a thread, which it handles in turn, and the outcome."""

    def __init__(self, until: float, stop: bool = False) -> None:
        self.until = until
        self.stop = stop
        self.ok = False
        self.done = threading.Event()


class BackgroundWorkers:
    """Starts the threads when there is work, and passes requests to them."""

    def __init__(
        self, recorder: Recorder, sender: Sender | None, transport: Transport | None
    ) -> None:
        """Take what the threads run; they are not started yet."""
        self._recorder = recorder
        self._sender = sender
        self._transport = transport
        self.reset()

    def reset(self) -> None:
        """Start with new queues, and no threads; after a fork, those of before are the parent's."""
        self.calls: queue.SimpleQueue[Call | WorkRequest] = queue.SimpleQueue()
        self._sends: queue.SimpleQueue[WorkRequest | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._started = False
        self._stopped = False

    def start(self) -> None:
        """Start the threads unless they run. Returns at once; any thread may call it."""
        if self._started or self._stopped or not self._starting.acquire(blocking=False):
            return
        try:
            if not self._started:
                # Not threading.Thread: its start() waits and takes a lock, and a signal handler
                # that reports while the application starts a thread would wait for it forever.
                _thread.start_new_thread(_quiet(self._record), ())
                if self._sender is not None:
                    _thread.start_new_thread(_quiet(self._send), ())
                self._started = True
        finally:
            self._starting.release()

    def flush(self, timeout: float, stop: bool = False) -> bool:
        """Record all calls and send what is due; False if that took too long."""
        until = time.monotonic() + max(timeout, 0.0)
        if not self._started:
            if self._stopped or (stop and self.calls.empty()):
                self._stopped = self._stopped or stop
                return True
            self.start()
        self._stopped = self._stopped or stop
        recorded = WorkRequest(until, stop)
        self.calls.put(recorded)
        ok = recorded.done.wait(max(0.0, until - time.monotonic())) and recorded.ok
        if self._sender is not None:
            sent = WorkRequest(until, stop)
            self._sends.put(sent)
            ok = sent.done.wait(max(0.0, until - time.monotonic())) and sent.ok and ok
        return ok

    def drain(self) -> None:
        """Discard the calls that were not recorded yet."""
        with contextlib.suppress(queue.Empty):
            while True:
                item = self.calls.get_nowait()
                if isinstance(item, WorkRequest):
                    item.done.set()

    def _record(self) -> None:
        """The first thread; no exception ends it."""
        calls, next_tick, going = self.calls, 0.0, True
        while going:
            try:
                left = next_tick - time.monotonic()
                if left <= 0:  # even if calls never stop
                    next_tick = time.monotonic() + TICK
                    self._tick()
                    self._watch()
                    if self._recorder.problem == "no-entropy":
                        next_tick = min(next_tick, time.monotonic() + _PAUSE)
                    continue
                try:
                    item = calls.get(timeout=left)
                except queue.Empty:
                    continue
                if isinstance(item, WorkRequest):
                    item.ok = self._recorder.problem is None
                    item.done.set()
                    going = not item.stop
                else:
                    began = time.monotonic()
                    if not self._recorder.record(*item):
                        # Calls without effect must not use up the application's CPU time.
                        time.sleep(min(time.monotonic() - began, _REST))
                    elif self._sender is not None:
                        self._sends.put(None)
            except BaseException as error:
                _survive(error, self._recorder.failed)

    def _tick(self) -> None:
        try:
            self._recorder.tick()
        finally:
            if self._sender is not None:
                self._sends.put(None)

    def _send(self) -> None:
        """The second thread; no exception ends it."""
        sends, sender = self._sends, self._sender
        if sender is None:
            return
        # First wait for the first tick, so that null reports are sent with the others.
        pause, going = TICK, True
        while going:
            request: WorkRequest | None = None
            try:
                with contextlib.suppress(queue.Empty):
                    request = sends.get(timeout=pause)
                pause = _PAUSE
                if request is None:
                    sender.send(until=time.monotonic() + _SEND_FOR)
                elif time.monotonic() < request.until:
                    request.ok = sender.send(until=request.until, now=True)
                if sender.problem is None:
                    pause = min(sender.next_moment(), TICK)
            except BaseException as error:
                _survive(error, lambda _: sender.stuck("internal"))
            finally:
                if request is not None:
                    request.done.set()
                    going = not request.stop

    def _watch(self) -> None:
        """Abort an upload that a server keeps open for too long."""
        sender, transport = self._sender, self._transport
        if sender is None or transport is None or sender.busy_since is None:
            return
        if time.monotonic() - sender.busy_since > _STUCK:
            transport.abort()
            if not sender.stop.is_set():
                transport.resume()


def _survive(error: BaseException, note: Callable[[BaseException], None]) -> None:
    """Note an exception in a thread, and wait a moment."""
    with contextlib.suppress(BaseException):
        _log.warning("a background thread goes on after %s", type(error).__name__)
    with contextlib.suppress(BaseException):
        note(error)
    with contextlib.suppress(BaseException):
        time.sleep(_REST)


def _quiet(target: Callable[[], None]) -> Callable[[], None]:
    """The same function, ending silently: when a process ends, anything may be gone."""

    def run() -> None:
        try:
            target()
        except Exception as error:
            with contextlib.suppress(Exception):
                _log.warning("a background thread ended: %s", type(error).__name__)

    return run
