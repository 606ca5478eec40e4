"""Client: report values from an application without disturbing it.

`report()` puts the call into a queue and returns; two background threads do the rest. Only `open()`
and `forget()` raise; `open()` raises only for wrong arguments. `status()` tells what failed.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType

from rappor.checks import whole
from rappor.client import forget as forgetting
from rappor.client import processes
from rappor.client.arguments import (
    check_address,
    check_dimensions,
    check_directory,
    check_file,
    check_key,
    check_methods,
    check_secret,
    gather,
    number,
    truth,
)
from rappor.client.charging import Caps
from rappor.client.clock import Clock, SystemClock, day_of
from rappor.client.consent import (
    LOCK,
    OPTED_OUT,
    PAUSED,
    SENDING_LOCK,
    clear_outbox,
    clearing_requested,
    delete_waiting,
    do_not_track,
    mark,
    nothing_is_sending,
    opted_out,
    request_clearing,
)
from rappor.client.folder import Folder
from rappor.client.forget import Forgotten
from rappor.client.identity import LEDGER, was_used
from rappor.client.outbox import Outbox
from rappor.client.preview import Preview, headers, next_reports, read_batches
from rappor.client.processes import AT_EXIT
from rappor.client.recorder import Recorder
from rappor.client.sender import Sender
from rappor.client.status import Status, inspect_folder, make_status
from rappor.client.transport import HttpTransport, Transport
from rappor.client.workers import BackgroundWorkers
from rappor.collection import Collection
from rappor.mechanism.views import MAX_FIELDS

QUEUE_LIMIT = 1000
MAX_VALUE_SIZE = 1 << 20  # characters, bytes or bits of a value; encoding more would take long
_SIZED = (str, bytes, bytearray, list, tuple)
_log = logging.getLogger("rappor.client")


class Client:
    """One client, in one directory. Make it with `Client.open`."""

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
        self._refusal: str | None = None  # one of `STATES` other than "on"
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
        """Open a client's directory; the first use creates it. docs/client.md tells more.

        Args:
            directory: where secret, ledger and outbox are kept; each person has their own.
            collections: Collections, definition files (TOML, or the JSON that `rappor collection
                export` writes), or folders of TOML files.
            consent: whether the person agreed. Without it nothing is recorded or sent.
            upload_to: the collector's address; None keeps reports in the outbox.
            dimensions: values of the declared dimensions; sent in clear.
            ingest_key: the collector's public key for this application.
            account_secret: at least 16 random bytes that the devices of an account share.
            max_epsilon: the largest ε over all collections together.
            outbox_limit: how many batches may wait; beyond that the oldest are dropped.
            jitter: each report is sent at a random moment within this many seconds.
            ca_file: certificates to trust instead of the system's.
            clock: for tests.
            transport: for tests.

        Raises:
            ParamsError: an argument is wrong. A directory that cannot be used, or a damaged file,
                raises nothing: it is in `status()`.
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
        """Report a value. Returns at once and never raises.

        A period has a limited number of reports; calls beyond it change nothing.
        """
        try:
            epoch = self._recorder.epoch  # read first: a later opt-out then discards this call
            if self._refusal is not None:
                return
            when = self._clock.time()
            closed = self._recorder.closed.get(collection)
            if closed is not None and closed[0] <= when < closed[1]:
                self._count("the reports of this period are made")
                return
            if _too_large(value):
                self._count("value refused")
                return
            workers = self._workers
            if workers.calls.qsize() >= QUEUE_LIMIT:
                self._count("queue full")
                return
            workers.calls.put((collection, _snapshot(value), when, epoch))
            workers.start()
        except Exception:
            self._count("not made")

    def status(self) -> Status:
        """The state of the client. Reads the directory; never raises."""
        seen = inspect_folder(self._folder, self._recorder.has_account_secret)
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
            error=None if sender is None else sender.error,
            reasons={} if sender is None else sender.retry().reasons,
            next_attempt=0.0 if sender is None else sender.waits(),
        )

    def flush(self, timeout: float = 2.0) -> bool:
        """Record all calls and send what is due; False if that took too long."""
        if self._refusal is not None:
            return False
        return self._workers.flush(timeout)

    def preview(self) -> Preview:
        """Exactly what was sent and what will be sent, to show to the person."""
        try:
            sent, waiting = read_batches(self._folder)
        except OSError:
            sent, waiting = (), ()
        parts = self._parts
        upcoming = next_reports(self._collections.values(), parts.dimensions)
        return Preview(parts.upload_to, headers(parts.with_key), sent, waiting, upcoming)

    def opt_out(self) -> bool:
        """Stop at once and clear the outbox; the secret stays.

        True if nothing recorded before can be sent any more, by any process. False if the directory
        cannot be written, or if another process holds its lock or is sending a report right now.
        """
        self._halt("opted out")
        try:
            mark(self._folder, OPTED_OUT)
        except OSError:
            _log.warning("opted out in this process only: the directory cannot be written")
            delete_waiting(self._folder, self._outbox)  # or the next process would send it
            return False
        return clear_outbox(self._folder, self._outbox) and nothing_is_sending(self._folder)

    def opt_in(self) -> bool:
        """Report again, from now on; False if that is not possible."""
        if self._refusal in ("closed", "forgotten", "stopped") or do_not_track():
            return False
        try:
            folder = self._folder
            if self._refusal is None and not (opted_out(folder) or clearing_requested(folder)):
                self._recorder.read_epoch()  # another process may have opted out and in again
                return True
            # First: nothing that was recorded before the opt-out is ever sent.
            request_clearing(self._folder)
            mark(self._folder, PAUSED)
            self._folder.remove(OPTED_OUT)
        except OSError:
            return False
        clear_outbox(self._folder, self._outbox)
        self._recorder.read_epoch()  # calls made before belong to an earlier epoch
        self._resume()
        return True

    def forget(self) -> Forgotten:
        """Delete secret, ledger and reports, and say what that costs; the client ends.

        Raises:
            OSError: the directory cannot be written, or another process is sending a report;
                then nothing, or not everything, was deleted.
        """
        self._halt("stopped")
        with self._folder.lock(SENDING_LOCK, AT_EXIT), self._folder.lock(LOCK, AT_EXIT):
            done = forgetting.forget(self._folder, self._collections, day_of(self._clock.time()))
            self._folder.sweep(older_than=-math.inf)  # unfinished files may hold the secret too
            self._refusal = "forgotten"
            return done

    def close(self, timeout: float = AT_EXIT) -> bool:
        """Record all calls, send what is due, and stop; False if that took too long."""
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
        """The collections and the state; never a value or the secret."""
        return f"Client({', '.join(self._collections)}; {self._refusal or 'on'})"

    def _begin(self, agreed: bool) -> None:
        """Start in the state that consent, environment and directory require."""
        self._recorder.read_epoch()
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
                request_clearing(self._folder)  # nothing recorded before is ever sent
                mark(self._folder, PAUSED)
                clear_outbox(self._folder, self._outbox)

    def _halt(self, state: str) -> None:
        """Stop recording and sending in this process."""
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
        """In the child: start with new queues and threads, without locks and sockets."""
        self._folder.after_fork()
        self._workers.reset()
        if isinstance(self._transport, HttpTransport):
            self._transport.after_fork()
        if self._sender is not None:
            self._sender.after_fork()
        if self._refusal is not None and self._transport is not None:
            self._transport.abort()


def _too_large(value: object) -> bool:
    """Whether a value, or a part of a tuple, takes long to encode."""
    if type(value) is dict:
        return len(value) > MAX_FIELDS or any(map(_is_long, value.values()))
    return _is_long(value)


def _is_long(value: object) -> bool:
    # Exact types only: a subclass could define its own len. mypy does not narrow by `in`.
    return type(value) in _SIZED and len(value) > MAX_VALUE_SIZE  # type: ignore[arg-type]


def _snapshot(value: object) -> object:
    """A copy of what the application could change after the call."""
    if type(value) is dict:
        return {name: _copied(part) for name, part in value.items()}
    return _copied(value)


def _copied(value: object) -> object:
    if type(value) is list:
        return tuple(value)
    return bytes(value) if type(value) is bytearray else value


@dataclass(frozen=True, slots=True)
class Parts:
    """What a client is made of: its directory, what makes reports, what sends them."""

    folder: Folder
    collections: Mapping[str, Collection]
    clock: Clock
    outbox: Outbox
    recorder: Recorder
    transport: Transport | None
    sender: Sender | None
    dimensions: Mapping[str, str]
    upload_to: str | None
    with_key: bool


def assemble(
    directory: str | os.PathLike[str],
    collections: Iterable[Collection | str | os.PathLike[str]],
    *,
    upload_to: str | None,
    dimensions: Mapping[str, str] | None,
    ingest_key: str | None,
    account_secret: bytes | None,
    max_epsilon: float,
    outbox_limit: int,
    jitter: float,
    ca_file: str | None,
    clock: Clock,
    transport: Transport | None,
) -> Parts:
    """Check the arguments of `Client.open`; nothing is written or sent yet."""
    check_methods("clock", clock, "time", "monotonic")
    if transport is not None:
        check_methods("transport", transport, "post", "abort", "resume")
    if ingest_key is not None:
        check_key(ingest_key)
    check_file("ca_file", ca_file)
    folder = Folder(check_directory(directory))
    found = gather(collections)
    given = check_dimensions(dimensions, found)
    outbox = Outbox(folder, whole("outbox_limit", outbox_limit, 1, 100_000))
    pause = number("jitter", jitter, 0, 86_400)
    recorder = Recorder(
        folder,
        clock,
        found,
        outbox=outbox,
        dimensions=given,
        account_secret=check_secret(account_secret),
        caps=Caps(number("max_epsilon", max_epsilon), account_secret is not None),
    )
    if transport is None and upload_to is not None:
        transport = HttpTransport(upload_to, clock=clock, ingest_key=ingest_key, ca_file=ca_file)
    elif upload_to is not None:
        check_address(upload_to)
    if isinstance(transport, HttpTransport):
        upload_to = transport.address
    sender = None if transport is None else Sender(folder, clock, outbox, transport, pause)
    return Parts(
        folder,
        found,
        clock,
        outbox,
        recorder,
        transport,
        sender,
        given,
        upload_to,
        ingest_key is not None,
    )
