"""Status: how a client is doing, in words and numbers for people; never a value, never a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rappor.client.accounts import Ledger
from rappor.client.charging import group_limits, used_up
from rappor.client.clock import day_of
from rappor.client.inspection import Inspection
from rappor.client.problems import PROBLEMS
from rappor.collection import Collection, period_of

STATES = {
    "on": "values are reported",
    "no consent": "opened with consent=False: nothing is recorded or sent",
    "do not track": "DO_NOT_TRACK is set: nothing is recorded or sent",
    "opted out": "the person opted out: nothing is recorded or sent until opt_in()",
    "stopped": "something is wrong (see `problem`): nothing is reported",
    "forgotten": "forget() deleted everything: open the client anew",
    "closed": "close() was called",
}


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One collection of a client.

    Attributes:
        name: of the collection.
        version: of the collection.
        period: the current one.
        reports: made in the current period.
        values: distinct values reported so far.
        max_values: the limit on them.
        epsilon: charged so far, rounded up; with its group, if it has one, `epsilon_group`.
        epsilon_group: what its correlated group was charged together, or None.
        max_epsilon: the limit on both: in a group, the smallest of its collections'.
        state: "on"; "made" (the period's reports are made); "values at the limit" (only values
            reported before are reported); "expired".
        at_limit: what happens to further values: "null reports" or "silence".
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
class Status:
    """A client at one moment.

    Attributes:
        state: one of `STATES`.
        problem: a code of `rappor.client.problems.PROBLEMS`, or None.
        explanation: both in a sentence.
        collections: one for each collection.
        epsilon: charged over all collections this directory ever reported to, rounded up.
        calls: what became of calls to `report()` in this process.
        waiting: batches in the outbox.
        batches: what became of batches, over all processes: sent, dropped and why.
        upload: the last failure of an upload, or None.
        next_attempt: seconds until a failure allows the next upload.
    """

    state: str
    problem: str | None
    explanation: str
    collections: tuple[CollectionStatus, ...]
    epsilon: float
    calls: Mapping[str, int]
    waiting: int
    batches: Mapping[str, int]
    upload: str | None
    next_attempt: float

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON; ∞ as the text "inf"."""
        found: dict[str, Any] = _plain(asdict(self))
        return found


def _plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _plain(each) for name, each in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(each) for each in found]
    return "inf" if found == float("inf") else found


def collection_status(
    ledger: Ledger, collection: Collection, now: float, max_epsilon: float
) -> CollectionStatus:
    """How one collection is doing, by the ledger."""
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


def make_status(
    seen: Inspection,
    collections: Iterable[Collection],
    *,
    now: float,
    refusal: str | None,
    problem: str | None,
    calls: Mapping[str, int],
    upload: str | None,
    next_attempt: float,
) -> Status:
    """The status from what lies on disk and what this process knows."""
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
                seen.ledger, each, now, groups.get(each.group or "", each.max_epsilon)
            )
            for each in given
        ),
        epsilon=seen.ledger.epsilon(),
        calls=calls,
        waiting=seen.waiting,
        batches=seen.batches,
        upload=upload,
        next_attempt=next_attempt,
    )
