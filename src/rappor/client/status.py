"""Status: the state of a client in words and numbers; never a value or a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rappor.client.accounts import Ledger
from rappor.client.charging import group_limits, used_up
from rappor.client.clock import day_of
from rappor.client.consent import EPOCH, OPTED_OUT, PAUSED, opted_out
from rappor.client.folder import Disk
from rappor.client.identity import LEDGER, ONCE, SECRET, USED, parse_secret, was_used
from rappor.client.ledger_file import FORGOTTEN, find_ledger, load_forgotten
from rappor.client.outbox import COUNTS, OUTBOX, SENT, Outbox
from rappor.client.problems import PROBLEMS, Stopped
from rappor.collection import Collection, period_of

STATES = {
    "on": "values are reported",
    "no consent": "opened with consent=False: nothing is recorded or sent",
    "do not track": "DO_NOT_TRACK is set: nothing is recorded or sent",
    "opted out": "the person opted out: nothing is recorded or sent until opt_in()",
    "stopped": "there is a problem (see `problem`): nothing is reported",
    "forgotten": "forget() deleted everything: open the client again",
    "closed": "close() was called",
}


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
class Status:
    """A client at one moment.

    Attributes:
        state: one of `STATES`.
        problem: a code of `rappor.client.problems.PROBLEMS`, or None.
        explanation: state and problem in a sentence.
        collections: one for each collection.
        epsilon: charged so far over all collections, past ones included; rounded up.
        calls: the outcomes of calls to `report()` in this process, with their numbers.
        waiting: batches in the outbox.
        batches: the outcomes of batches, over all processes: sent, or dropped and why.
        upload: the error of the last upload, or None.
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
    upload: str | None
    next_attempt: float

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON; ∞ as the text "inf"."""
        found: dict[str, Any] = _plain(asdict(self))
        return found


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
    """The status, from what is on disk and what this process knows."""
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
        upload=upload,
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
        batches: the outcomes of batches, over all processes.
    """

    problem: str | None
    opted_out: bool
    ledger: Ledger
    waiting: int
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
    outbox = Outbox(disk)
    try:
        out = opted_out(disk)
        waiting, batches = len(outbox.names()), outbox.counts()
        problem = None if account_secret else _secret_problem(disk)
        ledger = find_ledger(disk) or load_forgotten(disk)
    except Stopped as error:
        problem = problem or error.code
    except OSError:
        problem = "directory-unusable"
    return Inspection(problem, out, ledger, waiting, batches)


def _secret_problem(disk: Disk) -> str | None:
    data = disk.read(SECRET)
    if data is not None:
        parse_secret(data)
        return None
    used = was_used(disk) or disk.read(LEDGER) is not None
    return "secret-missing" if used else None
