"""Status: the state of a client in words and numbers; never a value or a secret."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rappor.checks import plural
from rappor.client.accounts import Ledger
from rappor.client.charging import group_limits, used_up
from rappor.client.clock import day_of
from rappor.client.consent import EPOCH, OPTED_OUT, PAUSED, opted_out
from rappor.client.folder import Disk
from rappor.client.identity import LEDGER, ONCE, SECRET, USED, parse_secret, was_used
from rappor.client.ledger_file import FORGOTTEN, find_ledger, load_forgotten
from rappor.client.outbox import COUNTS, OUTBOX, SENT, Outbox
from rappor.client.problems import PROBLEMS, REFUSALS, Stopped, reason_text
from rappor.collection import Collection, days_of, period_of
from rappor.privacy.rounding import up, up_sum
from rappor.wire.protocol import ACCEPTANCE_DAYS

STATES = {
    "on": "values are reported",
    "no consent": "opened with consent=False: nothing is recorded or sent",
    "do not track": "DO_NOT_TRACK is set: nothing is recorded or sent",
    "opted out": "the person opted out: nothing is recorded or sent until opt_in()",
    "stopped": "there is a problem (see `problem`): nothing is reported",
    "forgotten": "forget() deleted everything: open the client again",
    "closed": "close() was called",
}
_MAX_NAMED = 3  # collections in one sentence


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One collection of a client.

    Attributes:
        name: of the collection.
        version: of the collection.
        period: the current one.
        reports: how many were made in the current period.
        values: how many distinct values were reported so far.
        max_values: the limit on `values`.
        epsilon: charged so far, rounded up.
        epsilon_group: charged so far to all collections of its group; None without a group.
        max_epsilon: the limit on ε; in a group, the smallest limit of its collections.
        state: "on"; "made" (all reports of the period are made); "values at the limit" (only
            values that were reported before are reported); "expired".
        at_limit: what is sent in place of further values: "null reports" or "silence".
    """

    name: str
    version: int
    period: str
    reports: int
    values: int
    max_values: int
    epsilon: float
    epsilon_group: float | None
    max_epsilon: float
    state: str
    at_limit: str


@dataclass(frozen=True, slots=True)
class WaitingReports:
    """The reports of one collection that wait to be sent.

    Attributes:
        collection: its name.
        reports: how many wait.
        since: the earliest of their periods; no other time is kept.
        until: the last day (UTC) on which a collector takes the earliest; then it is dropped.
        reason: why they were not sent: a code of `rappor.wire.PROBLEMS`, an HTTP status, or a
            sentence if there was no answer. None if nothing failed and their moment has not come.
    """

    collection: str
    reports: int
    since: str
    until: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """A client at one moment. Print it for a table.

    Attributes:
        state: one of `STATES`.
        problem: a code of `rappor.client.problems.PROBLEMS`, or None.
        explanation: state and problem in a sentence.
        collections: one for each collection.
        epsilon: charged so far over all collections, past ones included; rounded up.
        calls: the outcomes of calls to `report()` in this process, with their numbers.
        waiting: batches in the outbox.
        batches: the outcomes of batches, over all processes: sent, or dropped and why.
        waiting_reports: what waits and why, by collection.
        upload: why reports wait, what waits and what to do about it, in sentences; else the error
            of the last upload, or None.
        next_attempt: seconds until the next attempt after a failed upload.
    """

    state: str
    problem: str | None
    explanation: str
    collections: tuple[CollectionStatus, ...]
    epsilon: float
    calls: Mapping[str, int]
    waiting: int
    batches: Mapping[str, int]
    waiting_reports: tuple[WaitingReports, ...]
    upload: str | None
    next_attempt: float

    def __str__(self) -> str:
        lines = [f"{self.state}: {self.explanation}"]
        if self.problem is not None and self.state != "stopped":
            lines.append(f"problem: {self.problem}: {PROBLEMS[self.problem]}")
        if self.upload is not None:
            lines.append(f"upload: {self.upload}")
        if self.next_attempt > 0:
            lines.append(f"next attempt: in about {_duration(self.next_attempt)}")
        lines += ["", *_table(self.collections)] if self.collections else []
        lines += ["", f"ε of all collections together: {self._together()}"]
        outcomes = {"waiting": self.waiting, **self.batches}
        lines.append(f"reports: {_counted(outcomes)}")
        lines.append(f"calls of report() in this process: {_counted(self.calls) or 'none'}")
        return "\n".join(lines)

    def _together(self) -> str:
        """ε of all collections as the table above it adds up; past collections are one more."""
        parts = [one.epsilon for one in self.collections]
        past = self.epsilon - sum(parts) if math.isfinite(self.epsilon) else math.inf
        return up_sum([*parts, past] if past > _ROUNDING else parts)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON; ∞ as the text "inf"."""
        found: dict[str, Any] = _plain(asdict(self))
        return found


_ROUNDING = 1e-9  # of sums of floats
COLLECTION_STATES = {  # of `CollectionStatus.state`, for people
    "on": "reports are made",
    "made": "the reports of this period are made",
    "values at the limit": "only values that were reported before are reported",
    "expired": "the collection has ended",
}


def _table(collections: Iterable[CollectionStatus]) -> list[str]:
    """The collections, one a line."""
    rows = [("collection", "period", "reports", "values", "ε", "at most", "state")]
    rows += [
        (
            f"{one.name} v{one.version}",
            one.period,
            str(one.reports),
            f"{one.values} of {one.max_values}",
            up(one.epsilon if one.epsilon_group is None else one.epsilon_group),
            up(one.max_epsilon),
            COLLECTION_STATES[one.state],
        )
        for one in collections
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in (2, 3, 4, 5) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _counted(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in numbers.items())


def _duration(seconds: float) -> str:
    """A time in words; about, because moments are random.

    >>> _duration(40), _duration(3600), _duration(6 * 3600)
    ('40 s', '60 min', '6 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.0f} h"


def _plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _plain(item) for name, item in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(item) for item in found]
    return "inf" if found == float("inf") else found


def collection_status(
    ledger: Ledger, collection: Collection, now: float, max_epsilon: float
) -> CollectionStatus:
    """The state of one collection, by the ledger."""
    day = day_of(now)
    period = period_of(collection.period, day)
    account = ledger.find(collection.name, collection.memo_digest)
    distinct = account.distinct if account else 0
    state = "on"
    if collection.expires is not None and day >= collection.expires:
        state = "expired"
    elif used_up(ledger, collection, period):
        state = "made"
    elif distinct >= collection.max_values:
        state = "values at the limit"
    group = collection.group
    return CollectionStatus(
        collection.name,
        collection.version,
        period,
        ledger.used.get(collection.name, {}).get(period, 0),
        distinct,
        collection.max_values,
        ledger.epsilon([collection.name]),
        None if group is None else ledger.epsilon(ledger.group(group) | {collection.name}),
        max_epsilon,
        state,
        "null reports" if collection.null_reports else "silence",
    )


def waiting_reports(
    periods: Iterable[tuple[str, str]], reasons: Mapping[str, str]
) -> tuple[WaitingReports, ...]:
    """What waits and why, from the collection and period of each report that waits.

    Args:
        periods: (collection, period) of each report.
        reasons: as in `Retry.reasons`.
    """
    found: dict[str, list[str]] = {}
    for collection, period in periods:
        found.setdefault(collection, []).append(period)
    grace = datetime.timedelta(days=ACCEPTANCE_DAYS)
    groups = []
    for collection, waiting in sorted(found.items()):
        since = min(waiting, key=days_of)
        until = str(days_of(since)[1] + grace)
        reason = reasons.get(collection, reasons.get(""))
        groups.append(WaitingReports(collection, len(waiting), since, until, reason))
    return tuple(groups)


def upload_text(waiting: Iterable[WaitingReports]) -> str | None:
    """Why reports wait, what waits, until when, and what to do; None if nothing failed.

    >>> waiting = WaitingReports("theme", 2, "2026-11-16", "2026-11-30", "overloaded")
    >>> print(upload_text([waiting]).partition(" They are")[0])
    the collector answered 503 overloaded: 2 reports wait (theme), the oldest from 2026-11-16.
    """
    by_reason: dict[str, list[WaitingReports]] = {}
    for group in waiting:
        if group.reason is not None:
            by_reason.setdefault(group.reason, []).append(group)
    return " ".join(_sentences(reason, groups) for reason, groups in by_reason.items()) or None


def _sentences(reason: str, groups: Sequence[WaitingReports]) -> str:
    names = ", ".join(group.collection for group in groups[:_MAX_NAMED])
    more = f" and {len(groups) - _MAX_NAMED} more" if len(groups) > _MAX_NAMED else ""
    number = sum(group.reports for group in groups)
    oldest = min(groups, key=lambda group: days_of(group.since))
    waits = plural(number, "report waits", "reports wait")
    since = f"{'the oldest ' if number > 1 else ''}from {oldest.since}"
    kept = "They are" if number > 1 else "It is"
    advice = f" {REFUSALS[reason]}." if reason in REFUSALS else ""
    return (
        f"{reason_text(reason)}: {waits} ({names}{more}), {since}. {kept} kept until "
        f"{oldest.until} at the latest.{advice}"
    )


def make_status(
    seen: Inspection,
    collections: Iterable[Collection],
    *,
    now: float,
    refusal: str | None,
    problem: str | None,
    calls: Mapping[str, int],
    error: str | None,
    reasons: Mapping[str, str],
    next_attempt: float,
) -> Status:
    """The status, from what is on disk and what this process knows."""
    waiting = waiting_reports(seen.periods, reasons)
    problem = seen.problem or problem
    state = refusal or ("opted out" if seen.opted_out else "stopped" if problem else "on")
    given = tuple(collections)
    groups = group_limits(given)
    return Status(
        state=state,
        problem=problem,
        explanation=PROBLEMS[problem] if problem and state == "stopped" else STATES[state],
        collections=tuple(
            collection_status(
                seen.ledger,
                collection,
                now,
                groups.get(collection.group or "", collection.max_epsilon),
            )
            for collection in given
        ),
        epsilon=seen.ledger.epsilon(),
        calls=calls,
        waiting=seen.waiting,
        batches=seen.batches,
        waiting_reports=waiting,
        upload=upload_text(waiting) or error,
        next_attempt=next_attempt,
    )


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the files of a directory say at one moment.

    Attributes:
        problem: a code of `PROBLEMS`, or None.
        opted_out: whether the person opted out.
        ledger: an empty one if there is none, or if it cannot be read.
        waiting: batches in the outbox.
        periods: the collection and the period of each of them.
        batches: the outcomes of batches, over all processes.
    """

    problem: str | None
    opted_out: bool
    ledger: Ledger
    waiting: int
    periods: Sequence[tuple[str, str]]
    batches: Mapping[str, int]


_TRACES = (
    *(SECRET, USED, LEDGER, ONCE, FORGOTTEN),
    *(OUTBOX, SENT, COUNTS),
    *(OPTED_OUT, PAUSED, EPOCH),
)


def has_client(disk: Disk) -> bool:
    """Whether a directory holds anything that a client writes, besides locks."""
    return any(disk.exists(name) for name in _TRACES)


def inspect_folder(disk: Disk, account_secret: bool = False) -> Inspection:
    """Read the files of a directory without locking or changing anything. Never raises.

    Args:
        disk: the directory.
        account_secret: whether the secret belongs to an account, so that no file holds it.
    """
    problem, out, ledger, waiting = None, False, Ledger(""), 0
    batches: Mapping[str, int] = {}
    periods: Sequence[tuple[str, str]] = ()
    outbox = Outbox(disk)
    try:
        out = opted_out(disk)
        waiting, batches, periods = len(outbox.names()), outbox.counts(), outbox.periods()
        problem = None if account_secret else _secret_problem(disk)
        ledger = find_ledger(disk) or load_forgotten(disk)
    except Stopped as error:
        problem = problem or error.code
    except OSError:
        problem = "directory-unusable"
    return Inspection(problem, out, ledger, waiting, periods, batches)


def _secret_problem(disk: Disk) -> str | None:
    data = disk.read(SECRET)
    if data is not None:
        parse_secret(data)
        return None
    used = was_used(disk) or disk.read(LEDGER) is not None
    return "secret-missing" if used else None
