"""Sender: takes batches from the outbox to the collector, at random moments, until they are stored.

Failures wait longer each time, with jitter; `Retry-After` is obeyed, by later processes too. What a
collector refuses for good, or would refuse by age, is dropped and counted. That a batch leaves is
on disk before it does, so that what is shown as sent is all that was.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading

from rappor import formats
from rappor.client.clearing import UPLOAD_LOCK, wished
from rappor.client.clock import Clock, day_of
from rappor.client.consent import opted_out
from rappor.client.folder import Busy, Disk
from rappor.client.outbox import Outbox
from rappor.client.sealed import seal, unseal
from rappor.client.transport import LONGEST_WAIT, Transport
from rappor.errors import ParamsError

RETRY = "retry"
FIRST_WAIT, MOST_WAIT = 30.0, 6 * 3600.0
TIMEOUT = 10.0
_PATIENT = 3  # failures in a row after which a short Retry-After is no longer enough
_log = logging.getLogger("rappor.client")


class Sender:
    """Uploads what is due. One process at a time sends; the others leave it to that one."""

    def __init__(
        self, disk: Disk, clock: Clock, outbox: Outbox, transport: Transport, jitter: float
    ) -> None:
        """Take the outbox, the way out, and how long (seconds) a batch may wait at random."""
        self._disk = disk
        self._clock = clock
        self._outbox = outbox
        self._transport = transport
        self._jitter = jitter
        self._moments: dict[str, float] = {}
        self._postponed: dict[str, float] = {}
        self._failed = (0.0, 0)  # as on disk, for a disk that takes nothing
        self.error: str | None = None
        self.busy_since: float | None = None
        self.stop = threading.Event()

    def after_fork(self) -> None:
        """In the child: an event of its own."""
        stopped = self.stop.is_set()
        self.stop = threading.Event()
        if stopped:
            self.stop.set()
        self.busy_since = None

    def send(self, *, until: float, now: bool = False) -> bool:
        """Send what is due; True when nothing that is due is left.

        Args:
            until: the monotonic time at which to stop.
            now: do not wait for the random moment of each batch.
        """
        try:
            if not self._outbox.names():
                return True
            wait = until - self._clock.monotonic() if now else 0.0
            with self._disk.lock(UPLOAD_LOCK, wait):
                return self._send(until, now)
        except Busy:
            return False
        except OSError as error:
            self._fail(f"the outbox cannot be used: {error.strerror}")
            self._back_off(None)
            return False

    def _send(self, until: float, now: bool) -> bool:
        done = True
        names = self._outbox.names()
        for times in (self._moments, self._postponed):
            for name in times.keys() - set(names):
                del times[name]
        for name in _shuffled(names):
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
            if left <= 0 or self.waits() > 0 or self._must_not():
                return False
            moment = self._moments.setdefault(name, self._moment())
            if now:
                moment = 0.0
            if self._clock.monotonic() < max(moment, self._postponed.get(name, 0.0)):
                done = False
                continue
            done = self._post(name, waiting.body, min(left, TIMEOUT)) and done
        return done

    def _must_not(self) -> bool:
        """Whether the person wants nothing sent, or not what waits now."""
        return self.stop.is_set() or opted_out(self._disk) or wished(self._disk)

    def _post(self, name: str, body: bytes, timeout: float) -> bool:
        name = self._outbox.trying(name)
        self.busy_since = self._clock.monotonic()
        try:
            answer = self._transport.post(body, timeout)
        except Exception as error:  # whatever a network or a transport of the host comes up with
            if not self.stop.is_set():
                self._fail(f"no answer ({type(error).__name__})")
                self._back_off(None)
            return False
        finally:
            self.busy_since = None
        if answer.stored:
            self._outbox.sent(name)
            self._clear()
            return True
        said = f"the collector answered {answer.status} {answer.code or ''}".rstrip()
        self._fail(said)
        if answer.permanent:
            self._outbox.refused(name, answer.code or str(answer.status))
            return True
        if answer.about_collection:  # the others need not wait for this one
            asked = answer.retry_after or 0.0
            wait = max(asked, MOST_WAIT) * (0.5 + _uniform())
            self._postponed[name] = self._clock.monotonic() + wait
        else:
            self._back_off(answer.retry_after)
        return False

    def waits(self) -> float:
        """Seconds until a failure allows the next attempt; 0 when it is allowed now."""
        left = self._read()[0] - self._clock.time()
        return left if 0 < left <= LONGEST_WAIT else 0.0  # beyond: the clock was set back

    def next_moment(self) -> float:
        """Seconds until there may be something to do."""
        waits = self.waits()
        moments = [
            max(moment, self._postponed.get(name, 0.0)) - self._clock.monotonic()
            for name, moment in self._moments.items()
        ]
        return max(waits, min([max(moment, 0.0) for moment in moments], default=60.0), 0.05)

    def _back_off(self, asked: float | None) -> None:
        failures = min(self._read()[1] + 1, 30)
        wait = min(FIRST_WAIT * 2.0 ** (failures - 1), MOST_WAIT) * (0.5 + _uniform())
        if asked is not None:
            least = wait if asked == 0 or failures > _PATIENT else 0.0
            wait = max(least, asked * (1 + 0.1 * _uniform()))
        self._moments.clear()  # new ones, or all that waited would leave in one burst
        self._write(self._clock.time() + min(wait, LONGEST_WAIT), failures)

    def _clear(self) -> None:
        self.error = None
        self._failed = (0.0, 0)
        if self._disk.read(RETRY) is not None:
            self._disk.remove(RETRY)

    def _read(self) -> tuple[float, int]:
        """When to try again, and how many failures there were in a row."""
        try:
            body = unseal(RETRY, self._disk.read(RETRY) or b"")
            found = formats.parse_json((body or b"").decode("ascii"))
            return max((float(found["after"]), int(found["failures"])), self._failed)
        except (ParamsError, OSError, ValueError, TypeError, KeyError, OverflowError):
            return self._failed

    def _write(self, after: float, failures: int) -> None:
        self._failed = (after, failures)
        text = json.dumps({"after": round(after), "failures": failures})
        with contextlib.suppress(OSError):
            self._disk.replace(RETRY, seal(RETRY, text.encode("ascii")))

    def _moment(self) -> float:
        """A random moment for a batch that has become due."""
        return self._clock.monotonic() + self._jitter * _uniform()

    def _fail(self, error: str) -> None:
        if error != self.error:
            _log.info("not uploaded: %s", error)
        self.error = error


def _uniform() -> float:
    """A number in [0, 1) from the operating system."""
    return int.from_bytes(os.urandom(6), "big") / 2**48


def _shuffled(names: list[str]) -> list[str]:
    """In random order: which report was made first is nobody's business."""
    return [name for _, name in sorted((os.urandom(8), name) for name in names)]
