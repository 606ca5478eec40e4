"""Sender: uploads the batches of the outbox, at random moments, until they are stored.

After each failure it waits longer, with jitter. It obeys `Retry-After`, across processes. Batches
that the collector refuses permanently, or that are too old, are dropped and counted. Before a batch
is sent, this is noted on disk, so that the list of sent batches is complete. Consent is checked
last: after the connection is made, before the first byte (see `consent`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rappor import formats
from rappor.client.clock import Clock, day_of
from rappor.client.consent import LOCK, SENDING_LOCK, UPLOAD_LOCK, clearing_requested, opted_out
from rappor.client.folder import Busy, Disk, seal, unseal
from rappor.client.outbox import Outbox, WaitingBatch
from rappor.client.problems import PROBLEMS, reason_text
from rappor.client.randomness import random_bytes, shuffled, uniform
from rappor.client.transport import LONGEST_WAIT, Aborted, Answer, Transport, connect
from rappor.errors import EntropyError, ParamsError

RETRY = "retry"
FIRST_WAIT, MAX_WAIT = 30.0, 6 * 3600.0
TIMEOUT = 10.0
_PATIENT = 3  # after this many failures in a row, a short Retry-After is not enough
_log = logging.getLogger("rappor.client")


class Withdrawn(Exception):
    """The batch is no longer in the outbox, or must not be sent."""


class NoAnswer(Exception):
    """The network or the transport failed; the text is the type of the error."""


class Retry(NamedTuple):
    """What is known about failed uploads, over all processes.

    Attributes:
        after: the time before which nothing is tried.
        failures: how many there were in a row.
        reasons: why reports wait, by collection; "" for all of them. A reason is a code of
            `rappor.wire.PROBLEMS`, an HTTP status, or a sentence if there was no answer.
    """

    after: float = 0.0
    failures: int = 0
    reasons: Mapping[str, str] = {}


class Sender:
    """Uploads what is due. One process sends at a time; the others do nothing meanwhile."""

    def __init__(
        self, disk: Disk, clock: Clock, outbox: Outbox, transport: Transport, jitter: float
    ) -> None:
        """Take the outbox, the transport, and the longest random delay of a batch in seconds."""
        self._disk = disk
        self._clock = clock
        self._outbox = outbox
        self._transport = transport
        self._jitter = jitter
        self._moments: dict[str, float] = {}
        self._postponed: dict[str, float] = {}
        self._failed = Retry()  # the same as on disk, in case the disk cannot be written
        self.error: str | None = None
        self.problem: str | None = None  # a code of `PROBLEMS`, if nothing can be sent
        self.busy_since: float | None = None
        self.stop = threading.Event()

    def after_fork(self) -> None:
        """In the child: make a new event."""
        stopped = self.stop.is_set()
        self.stop = threading.Event()
        if stopped:
            self.stop.set()
        self.busy_since = None

    def send(self, *, until: float, now: bool = False) -> bool:
        """Send what is due; True if nothing that is due is left.

        Args:
            until: the monotonic time at which to stop.
            now: do not wait for the random moment of each batch.
        """
        try:
            if self.problem is not None:
                random_bytes(1)  # is there randomness again?
                self.problem = None
            names = self._outbox.names()
            for times in (self._moments, self._postponed):
                for name in times.keys() - set(names):
                    del times[name]
            if not names:
                return True
            wait = until - self._clock.monotonic() if now else 0.0
            with self._disk.lock(UPLOAD_LOCK, wait):
                return self._send(until, now)
        except EntropyError:
            self.stuck("no-entropy")
            return False
        except Busy:
            return False
        except OSError as error:
            self._back_off(f"the outbox cannot be used: {error.strerror}", None)
            return False

    def _send(self, until: float, now: bool) -> bool:
        done = True
        for name in shuffled(self._outbox.names()):
            today = day_of(self._clock.time())
            waiting = self._outbox.read(name)
            if waiting is None:
                continue
            if waiting.too_old(today):
                self._outbox.drop(name, "too old")
                continue
            if not waiting.due(self._clock.time()):
                continue
            left = until - self._clock.monotonic()
            if left <= 0 or self.waits() > 0 or self._sending_forbidden():
                return False
            moment = self._moments.setdefault(name, self._moment())
            if now:
                moment = 0.0
            if self._clock.monotonic() < max(moment, self._postponed.get(name, 0.0)):
                done = False
                continue
            done = self._post(waiting, min(left, TIMEOUT)) and done
        return done

    def _sending_forbidden(self) -> bool:
        """Whether the person opted out, or the outbox has to be cleared first."""
        return self.stop.is_set() or opted_out(self._disk) or clearing_requested(self._disk)

    def _post(self, waiting: WaitingBatch, timeout: float) -> bool:
        self.busy_since = self._clock.monotonic()
        try:
            return self._exchange(waiting, timeout)
        except Withdrawn:
            return False
        except NoAnswer as error:
            if not self.stop.is_set():
                self._back_off(f"no answer ({error})", None)
            return False
        finally:
            self.busy_since = None

    def _exchange(self, waiting: WaitingBatch, timeout: float) -> bool:
        until = self._clock.monotonic() + timeout
        with _network():
            made = connect(self._transport, timeout)
        with contextlib.closing(made) as connection:
            left = until - self._clock.monotonic()
            # The connection ends before the lock is released: opting out waits for that.
            with self._disk.lock(SENDING_LOCK, left), contextlib.closing(connection):
                left = until - self._clock.monotonic()
                tried = self._claim(waiting.name, waiting.body, left)
                with _network():
                    answer = connection.send(waiting.body)
                return self._answered(tried, waiting.batch.collection, answer)

    def _claim(self, name: str, body: bytes, wait: float) -> str:
        """Mark this batch as tried, and return its new name; Withdrawn if it must not be sent now.

        It holds the lock, and so does clearing the outbox, so that neither interrupts the other.
        forget() restarts the numbers of batches: the bytes are compared, not only the name.
        """
        with self._disk.lock(LOCK, wait):
            if self._sending_forbidden():
                raise Withdrawn
            waiting = self._outbox.read(name)
            if waiting is None or waiting.body != body:
                raise Withdrawn
            return self._outbox.trying(name)  # a batch that cannot be marked is not sent

    def _answered(self, name: str, collection: str, answer: Answer) -> bool:
        """Act on an answer; whether the batch is finished."""
        if answer.stored:
            self._outbox.sent(name)
            self._clear(collection)
            return True
        reason = answer.code or str(answer.status)
        if answer.permanent:
            self._fail(reason)
            self._outbox.refused(name, reason)
            return True
        if answer.about_collection:  # batches of other collections need not wait
            asked = answer.retry_after or 0.0
            wait = max(asked, MAX_WAIT) * (0.5 + _spread())
            self._postponed[name] = self._clock.monotonic() + wait
            self._fail(reason)
            retry = self.retry()
            self._write(retry._replace(reasons={**retry.reasons, collection: reason}))
        else:
            self._back_off(reason, answer.retry_after)
        return False

    def waits(self) -> float:
        """Seconds until the next attempt after a failure; 0 if it is allowed now."""
        left = self.retry().after - self._clock.time()
        return left if 0 < left <= LONGEST_WAIT else 0.0  # more than that: the clock was set back

    def next_moment(self) -> float:
        """Seconds until there may be something to do."""
        now = self._clock.monotonic()
        moments = [
            max(moment, self._postponed.get(name, 0.0)) for name, moment in self._moments.items()
        ]
        # At moments that have passed `send` has tried; what stopped it takes longer to end.
        ahead = [moment - now for moment in moments if moment > now]
        return max(self.waits(), min(ahead, default=60.0), 0.05)

    def _back_off(self, reason: str, asked: float | None) -> None:
        self._fail(reason)
        retry = self.retry()
        failures = min(retry.failures + 1, 30)
        wait = min(FIRST_WAIT * 2.0 ** (failures - 1), MAX_WAIT) * (0.5 + _spread())
        if asked is not None:
            least = wait if asked == 0 or failures > _PATIENT else 0.0
            wait = max(least, asked * (1 + 0.1 * _spread()))
        self._moments.clear()  # draw new moments, or all waiting batches would be sent at once
        after = self._clock.time() + min(wait, LONGEST_WAIT)
        self._write(Retry(after, failures, {**retry.reasons, "": reason}))

    def _clear(self, collection: str) -> None:
        """A report of a collection was stored: the collector is there, and takes its reports."""
        self.error = None
        others = dict(self.retry().reasons)
        others.pop("", None)
        others.pop(collection, None)
        self._failed = Retry()
        if others:
            self._write(Retry(reasons=others))
        elif self._disk.read(RETRY) is not None:
            self._disk.remove(RETRY)

    def retry(self) -> Retry:
        """When to try again, the number of failures in a row, and why reports wait."""
        try:
            body = unseal(RETRY, self._disk.read(RETRY) or b"")
            found = formats.parse_json((body or b"").decode("ascii"))
            reasons = {str(name): str(why) for name, why in dict(found.get("reasons", {})).items()}
            known = Retry(float(found["after"]), int(found["failures"]), reasons)
            return max(known, self._failed, key=lambda retry: retry[:2])
        except (ParamsError, OSError, ValueError, TypeError, KeyError, OverflowError):
            return self._failed

    def _write(self, retry: Retry) -> None:
        self._failed = retry
        text = json.dumps(retry._replace(after=round(retry.after))._asdict())
        with contextlib.suppress(OSError):
            self._disk.replace(RETRY, seal(RETRY, text.encode("ascii")))

    def _moment(self) -> float:
        """A random moment for a batch that has become due."""
        return self._clock.monotonic() + self._jitter * uniform()

    def stuck(self, problem: str) -> None:
        """Note that nothing can be sent for now; the code says why."""
        if problem != self.problem:
            _log.warning("nothing is sent: %s", PROBLEMS[problem])
        self.problem = problem

    def _fail(self, reason: str) -> None:
        error = reason_text(reason)
        if error != self.error:
            _log.info("not uploaded: %s", error)
        self.error = error


@contextlib.contextmanager
def _network() -> Iterator[None]:
    """Turn every error of the network or the transport into NoAnswer or Withdrawn."""
    try:
        yield
    except Aborted:
        raise Withdrawn from None
    except Exception as error:
        raise NoAnswer(type(error).__name__) from error


def _spread() -> float:
    """A random number in [0, 1), to spread retries; 1 if there is no randomness."""
    try:
        return uniform()
    except EntropyError:
        return 1.0
