"""Recorder: from a value to a report in the outbox; each step is durable before the next.

It holds the lock of the directory. It checks consent, reads secret and ledger, and stores the
charge; only then it draws the report and writes it to the outbox. A crash between two steps loses a
report, never a charge.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from rappor.client.accounts import NULL, Ledger
from rappor.client.charging import Caps, ChargeDecision, decide, group_limits, used_up
from rappor.client.clock import Clock, day_of, start_of
from rappor.client.consent import (
    LOCK,
    PAUSED,
    clearing_requested,
    epoch,
    finish_clearing,
    opted_out,
)
from rappor.client.folder import Busy, Disk
from rappor.client.identity import check_of, load_secret, mark_used
from rappor.client.ledger_file import fingerprints, load_ledger, save_ledger
from rappor.client.one_time_slot import DiskSlot
from rappor.client.outbox import Outbox
from rappor.client.problems import PROBLEMS, Stopped
from rappor.client.randomness import random_bytes
from rappor.collection import Collection, days_of, period_of
from rappor.errors import EncodeError, EntropyError, LedgerError
from rappor.mechanism.entropy import Entropy
from rappor.mechanism.memo import derive_cohort
from rappor.mechanism.onetime import OneTime
from rappor.mechanism.report import Report
from rappor.wire import Batch
from rappor.wire.dimensions import Cell
from rappor.wire.protocol import ACCEPTANCE_DAYS

_WAIT = 10.0  # seconds for the lock, in the background
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_log = logging.getLogger("rappor.client")


class Recorder:
    """Makes the reports of one client. Raises only for bugs in rappor itself."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        collections: Mapping[str, Collection],
        *,
        outbox: Outbox,
        dimensions: Mapping[str, object],
        account_secret: bytes | None,
        caps: Caps,
        entropy: Entropy = os.urandom,
    ) -> None:
        """Take what every report needs."""
        self._disk = disk
        self._clock = clock
        self._collections = collections
        self._cells: dict[str, Cell] = {
            name: collection.cell(dimensions) for name, collection in collections.items()
        }
        self._outbox = outbox
        self._account_secret = account_secret
        self._caps = replace(caps, groups=group_limits(collections.values()))
        self._entropy = entropy
        self._known: tuple[str, int] | None = None  # secret's check value, batches
        self.epoch = 0  # of consent, as last read from disk; each call carries the current one
        self.stopped = False  # no report is made any more, even for calls that wait for the lock
        self.problem: str | None = None
        self.counts: dict[str, int] = {}
        # collection -> (from, to): no report is possible in this time
        self.closed: dict[str, tuple[float, float]] = {}

    @property
    def has_account_secret(self) -> bool:
        """Whether the secret belongs to an account, and is not in the directory."""
        return self._account_secret is not None

    def read_epoch(self) -> None:
        """Read the current epoch of consent; calls from now on belong to it."""
        with contextlib.suppress(OSError):  # then calls belong to an older epoch and are discarded
            self.epoch = epoch(self._disk)

    def record(self, name: str, value: object, when: float, called_in: int | None = None) -> bool:
        """Make the report of one call to `report()`, if it is allowed; whether one was made.

        Args:
            name: the collection.
            value: what was reported.
            when: the time of the call.
            called_in: the epoch of consent at the time of the call; None: the current one.
        """
        try:
            collection = self._collections.get(name)
        except TypeError:
            collection = None
        if collection is None:
            self._count("unknown collection")
            return False
        closed = self.closed.get(name)
        if closed is not None and closed[0] <= when < closed[1]:
            self._count(ChargeDecision.FULL.value)
            return False
        made = self.counts.get(ChargeDecision.YES.value, 0)
        self._guarded(lambda: self._count(self._record(collection, value, day_of(when), called_in)))
        if self.problem is not None:
            self._count("not made")
        return self.counts.get(ChargeDecision.YES.value, 0) > made

    def tick(self) -> None:
        """Make null reports for past periods, and queue one-time reports that a crash held up."""
        self.read_epoch()
        if self.problem == "no-entropy":
            self._guarded(_probe)
        waiting = [
            collection for collection in self._collections.values() if collection.null_reports
        ]
        once = [collection for collection in self._collections.values() if collection.one_time]
        with contextlib.suppress(OSError):  # an unusable directory is said when there is a call
            if waiting or once or clearing_requested(self._disk):
                self._guarded(lambda: self._tick(waiting, once))

    def _record(
        self, collection: Collection, value: object, day: datetime.date, called_in: int | None
    ) -> str:
        with self._disk.lock(LOCK, _WAIT):
            if opted_out(self._disk):
                return "opted out"
            if self.stopped:
                return "not made"
            finish_clearing(self._disk, self._outbox)
            self.epoch = epoch(self._disk)
            if called_in not in (None, self.epoch):  # the person may have opted out since the call
                return "opted out"
            _probe()  # before anything is charged
            secret, ledger = self._open()
            mark = self._fingerprint(collection, secret, value)
            answer, charged = decide(ledger, collection, day, mark, self._caps)
            if answer is ChargeDecision.YES:
                self._commit(charged, secret)
                self._make(
                    collection, secret, period_of(collection.period, day), value, charged.batches
                )
                ledger = charged
            self._close(ledger, collection, day)
            return answer.value

    def _tick(self, waiting: list[Collection], once: list[Collection]) -> None:
        today = day_of(self._clock.time())
        with self._disk.lock(LOCK, _WAIT):
            if self.stopped or opted_out(self._disk):
                return
            finish_clearing(self._disk, self._outbox)
            if waiting:
                secret, ledger = self._open()
                ledger = self._since(ledger, secret, today)
                for collection in waiting:
                    ledger = self._fill(ledger, collection, secret, today)
            for collection in once:
                slot = DiskSlot(self._disk, collection, "", ())
                batch = None if slot.queued else slot.batch()
                if batch is not None:
                    self._outbox.put_again(batch)
                    slot.mark_queued()

    def _open(self) -> tuple[bytes, Ledger]:
        """Secret and ledger; Stopped if they are not those, or older than those, seen before."""
        secret = load_secret(self._disk, self._account_secret, first=self._known is None)
        ledger = load_ledger(self._disk, secret)
        known = self._known or (check_of(secret), 0)
        if known[0] != check_of(secret):
            raise Stopped("secret-changed")
        if ledger.batches < known[1]:
            raise Stopped("ledger-outdated")
        self._known = (known[0], ledger.batches)
        return secret, ledger

    def _since(self, ledger: Ledger, secret: bytes, today: datetime.date) -> Ledger:
        """The ledger with the day from which periods without a value get null reports."""
        paused = self._disk.exists(PAUSED)
        if ledger.since is not None and not paused:
            return ledger
        started = replace(ledger, since=today.isoformat())
        self._commit(started, secret)
        self._disk.remove(PAUSED)
        return started

    def _fill(
        self, ledger: Ledger, collection: Collection, secret: bytes, today: datetime.date
    ) -> Ledger:
        """Make the null reports that past periods lack, if a collector still accepts them.

        Each period gets the number of reports that a client with values would have sent: neither
        silence nor their number tells anything.
        """
        first = max(
            datetime.date.fromisoformat(ledger.since or today.isoformat()),
            today - datetime.timedelta(days=ACCEPTANCE_DAYS),
        )
        day = first
        while days_of(period_of(collection.period, day))[1] < today:
            period = period_of(collection.period, day)
            for _ in range(collection.reports_per_period):
                answer, charged = decide(ledger, collection, day, NULL, self._caps)
                if answer is not ChargeDecision.YES:
                    break
                self._commit(charged, secret)
                encoder = collection.encoder(secret, period, self._entropy)
                self._put(collection, period, encoder.encode_null(), charged.batches)
                self._count("null")
                ledger = charged
            day = days_of(period)[1] + datetime.timedelta(days=1)
        return ledger

    def _commit(self, ledger: Ledger, secret: bytes) -> None:
        save_ledger(self._disk, ledger)
        self._known = (check_of(secret), ledger.batches)
        mark_used(self._disk, secret)

    def _make(
        self, collection: Collection, secret: bytes, period: str, value: object, number: int
    ) -> None:
        encoder = collection.encoder(secret, period, self._entropy)
        if not collection.one_time:
            self._put(collection, period, encoder.encode(value), number)
            return
        slot = DiskSlot(self._disk, collection, period, self._cells[collection.name])
        OneTime(encoder, slot).report(value)
        batch = slot.batch()
        if batch is not None:
            self._outbox.put_again(batch)
            slot.mark_queued()

    def _put(self, collection: Collection, period: str, report: Report, number: int) -> None:
        batch = Batch.of(
            [report],
            token=random_bytes(16),
            collection=collection.name,
            version=collection.version,
            period=period,
            dimensions=self._cells[collection.name],
            k=collection.params.k,
        )
        self._outbox.put(number, batch, held=collection.null_reports)

    def _fingerprint(self, collection: Collection, secret: bytes, value: object) -> str:
        keyed = fingerprints(secret, collection.name, collection.memo_digest)
        cohort = derive_cohort(secret, collection.name, collection.params.m)
        _, memo = collection.signal(cohort)(value)
        return keyed(memo)

    def _close(self, ledger: Ledger, collection: Collection, day: datetime.date) -> None:
        """Tell `report()` if further calls in this period change nothing."""
        if used_up(ledger, collection, period_of(collection.period, day)):
            first, last = days_of(period_of(collection.period, day))
            self.closed[collection.name] = (
                start_of(first),
                start_of(last + datetime.timedelta(days=1)),
            )

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run an action; a failure becomes a problem in the status and one line in the log."""
        try:
            action()
        except EncodeError as error:
            self._count("value refused")
            if self.counts["value refused"] == 1:
                _log.warning("a value was refused: %s", error)
            self._set(None)
        except (Stopped, LedgerError) as error:
            self._set(error.code if isinstance(error, Stopped) else "slot-damaged")
        except EntropyError:
            self._set("no-entropy")
        except Busy:
            self._set("directory-busy")
        except OSError as error:
            self._set("disk-full" if error.errno in _NO_ROOM else "directory-unusable")
        except Exception as error:
            _log.warning("not reported: %s", type(error).__name__)  # its text may hold the value
            self._set("internal")
        else:
            self._set(None)

    def failed(self, error: BaseException) -> None:
        """Note an unexpected exception."""
        self._set("no-entropy" if isinstance(error, EntropyError) else "internal")

    def _set(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            _log.warning("nothing is reported: %s", PROBLEMS[problem])
        self.problem = problem


def _probe() -> None:
    """Raise EntropyError if there is no randomness right now."""
    random_bytes(1)
