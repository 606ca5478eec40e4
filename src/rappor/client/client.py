"""Client: report values from an application without ever getting in its way (R6, R8, R22).

`report()` puts the call into a queue and returns; two background threads do the rest. Nothing but
`open()` raises, and that only on programming errors: what fails is in `status()`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterable, Mapping
from types import TracebackType

from rappor.client import forget as forgetting
from rappor.client import processes
from rappor.client.arguments import truth
from rappor.client.clock import Clock, SystemClock, day_of
from rappor.client.consent import OPTED_OUT, PAUSED, do_not_track, mark, opted_out
from rappor.client.forget import Forgotten
from rappor.client.identity import LEDGER, was_used
from rappor.client.inspection import look_at
from rappor.client.outbox_clearing import LOCK, SENDING_LOCK, empty, is_quiet, wish
from rappor.client.parts import Parts, assemble
from rappor.client.preview import Preview, coming, headers, look
from rappor.client.processes import AT_EXIT
from rappor.client.status import Status, make_status
from rappor.client.transport import HttpTransport, Transport
from rappor.client.workers import BackgroundWorkers
from rappor.collection import Collection

QUEUE_LIMIT = 1000
MAX_VALUE_SIZE = 1 << 20  # characters, bytes or bits of a value: to encode more would be felt
_SIZED = (str, bytes, bytearray, list, tuple)
_log = logging.getLogger("rappor.client")


class Client:
    """One client, in one directory; `Client.open` makes it."""

    def __init__(self, parts: Parts) -> None:
        """Take the parts; use `Client.open`."""
        self._parts = parts
        self._folder = parts.folder
        self._collections = parts.collections
        self._clock = parts.clock
        self._recorder = parts.recorder
        self._outbox = parts.outbox
        self._transport = parts.transport
        self._sender = parts.sender
        self._workers = BackgroundWorkers(parts.recorder, parts.sender, parts.transport)
        self._refusal: str | None = None  # a state other than "on"
        self._calls: dict[str, int] = {}
        processes.begin(self)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        collections: Iterable[Collection | str | os.PathLike[str]],
        *,
        consent: bool,
        upload_to: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        ingest_key: str | None = None,
        account_secret: bytes | None = None,
        max_epsilon: float = math.inf,
        outbox_limit: int = 100,
        jitter: float = 300.0,
        ca_file: str | None = None,
        clock: Clock | None = None,
        transport: Transport | None = None,
    ) -> Client:
        """Open a client's directory, made on first use. docs/client.md tells each argument.

        Args:
            directory: where secret, ledger and outbox live; one for each person.
            collections: Collections, files of them, or folders of files.
            consent: whether the person agreed. Without it nothing is recorded or sent.
            upload_to: the collector's address; None keeps reports in the outbox.
            dimensions: what the application knows of the declared dimensions; sent in clear.
            ingest_key: the collector's public key for this application.
            account_secret: at least 16 random bytes that an account's devices share (R59).
            max_epsilon: the most ε over all collections together.
            outbox_limit: the most batches that wait; then the oldest are dropped.
            jitter: a report is sent at a random moment within so many seconds.
            ca_file: certificates to trust instead of the system's.
            clock: for tests.
            transport: for tests.

        Raises:
            ParamsError: an argument is wrong. Nothing else is raised: a directory that cannot be
                used, or a damaged file, is in `status()`.
        """
        agreed = truth("consent", consent)
        client = cls(
            assemble(
                directory,
                collections,
                upload_to=upload_to,
                dimensions=dimensions,
                ingest_key=ingest_key,
                account_secret=account_secret,
                max_epsilon=max_epsilon,
                outbox_limit=outbox_limit,
                jitter=jitter,
                ca_file=ca_file,
                clock=SystemClock() if clock is None else clock,
                transport=transport,
            )
        )
        client._begin(agreed)
        return client

    def report(self, collection: str, value: object) -> None:
        """Report a value. Returns at once and never raises; the first value of a period counts."""
        try:
            epoch = self._recorder.epoch  # first: an opt-out from here on is one after the call
            if self._refusal is not None:
                return
            when = self._clock.time()
            closed = self._recorder.closed.get(collection)
            if closed is not None and closed[0] <= when < closed[1]:
                self._count("the reports of this period are made")
                return
            # Exact types, whose len is Python's own; the checker cannot follow `in`.
            if type(value) in _SIZED and len(value) > MAX_VALUE_SIZE:  # type: ignore[arg-type]
                self._count("value refused")
                return
            workers = self._workers
            if workers.calls.qsize() >= QUEUE_LIMIT:
                self._count("queue full")
                return
            workers.calls.put((collection, _as_it_is(value), when, epoch))
            workers.start()
        except Exception:
            self._count("not made")

    def status(self) -> Status:
        """How the client is doing. Reads the directory; never raises."""
        seen = look_at(self._folder, self._recorder.has_account_secret)
        calls = dict(self._recorder.counts)
        for what, times in list(self._calls.items()):
            calls[what] = calls.get(what, 0) + times
        sender = self._sender
        return make_status(
            seen,
            self._collections.values(),
            now=self._clock.time(),
            refusal=self._refusal,
            problem=self._recorder.problem or (None if sender is None else sender.problem),
            calls=calls,
            upload=None if sender is None else sender.error,
            next_attempt=0.0 if sender is None else sender.waits(),
        )

    def flush(self, timeout: float = 2.0) -> bool:
        """Record all calls and send all that is due; False if that was not done in time."""
        if self._refusal is not None:
            return False
        return self._workers.flush(timeout)

    def preview(self) -> Preview:
        """Exactly what was sent and what would be, for the person to see (R22)."""
        try:
            sent, waiting = look(self._folder)
        except OSError:
            sent, waiting = (), ()
        parts = self._parts
        upcoming = coming(self._collections.values(), parts.dimensions)
        return Preview(parts.upload_to, headers(parts.with_key), sent, waiting, upcoming)

    def opt_out(self) -> bool:
        """Stop at once and clear the outbox; the secret stays.

        True if nothing from before can leave any more, in any process; False if the directory
        cannot be written, or another process holds it or has a report on its way at this moment.
        """
        self._halt("opted out")
        try:
            mark(self._folder, OPTED_OUT)
        except OSError:
            _log.warning("opted out in this process only: the directory cannot be written")
            return False
        return empty(self._folder, self._outbox) and is_quiet(self._folder)

    def opt_in(self) -> bool:
        """Report again, from now on; False if that cannot be."""
        if self._refusal in ("closed", "forgotten", "do not track"):
            return False
        try:
            wish(self._folder)  # before the marker goes: nothing from before is ever sent
            mark(self._folder, PAUSED)
            self._folder.remove(OPTED_OUT)
        except OSError:
            return False
        empty(self._folder, self._outbox)
        self._recorder.look()  # calls of before belong to an earlier epoch
        self._resume()
        return True

    def forget(self) -> Forgotten:
        """Delete secret, ledger and reports, and say what that costs. The client is then done.

        Raises:
            OSError: the directory cannot be written, or another process has a report on its way;
                nothing or not all was deleted.
        """
        self._halt("forgotten")
        with self._folder.lock(SENDING_LOCK, AT_EXIT), self._folder.lock(LOCK, AT_EXIT):
            done = forgetting.forget(self._folder, self._collections, day_of(self._clock.time()))
            self._folder.sweep(older_than=-math.inf)  # halves of files may hold the secret too
            return done

    def close(self, timeout: float = AT_EXIT) -> bool:
        """Record all calls, send what is due, and stop; True if all that was done in time."""
        if self._refusal == "closed":
            return True
        active, self._refusal = self._refusal is None, "closed"
        done = self._workers.flush(timeout if active else 0.0, stop=True)
        processes.end(self)
        return done or not active

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """What the client is for; never a value, never the secret."""
        return f"Client({', '.join(self._collections)}; {self._refusal or 'on'})"

    def _begin(self, agreed: bool) -> None:
        """Start in the state that consent, the environment and the directory ask for."""
        self._recorder.look()
        with contextlib.suppress(OSError):
            if opted_out(self._folder):
                self._halt("opted out")
                return
        if agreed and not do_not_track():
            with contextlib.suppress(OSError):
                self._folder.sweep()
            self._workers.start()
            return
        self._halt("do not track" if agreed else "no consent")
        with contextlib.suppress(OSError):
            if self._folder.read(LEDGER) is not None or was_used(self._folder):
                wish(self._folder)  # nothing of before is ever sent
                mark(self._folder, PAUSED)
                empty(self._folder, self._outbox)

    def _halt(self, state: str) -> None:
        """Let nothing more be recorded or sent by this process."""
        self._refusal = state
        self._recorder.stopped = True
        if self._sender is not None:
            self._sender.stop.set()
        if self._transport is not None:
            self._transport.abort()
        self._workers.drain()
        self._recorder.closed.clear()

    def _resume(self) -> None:
        self._recorder.stopped = False
        if self._sender is not None:
            self._sender.stop.clear()
        if self._transport is not None:
            self._transport.resume()
        self._refusal = None
        self._workers.start()

    def _count(self, what: str) -> None:
        self._calls[what] = self._calls.get(what, 0) + 1

    def after_fork(self) -> None:
        """In the child: own queues, own threads when needed, no lock and no socket."""
        self._folder.after_fork()
        self._workers.reset()
        if isinstance(self._transport, HttpTransport):
            self._transport.after_fork()
        if self._sender is not None:
            self._sender.after_fork()
        if self._refusal is not None and self._transport is not None:
            self._transport.abort()


def _as_it_is(value: object) -> object:
    """What a host may change after the call, as it is now."""
    if type(value) is list:
        return tuple(value)
    return bytes(value) if type(value) is bytearray else value
