"""Charging: may this report be made, and what does it cost? Decided before the report exists.

A pure function from ledger to ledger. The caller stores the new ledger before it makes the report:
a crash can lose a report, but never a charge.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from rappor.client.accounts import NULL, ChargeAccount, Ledger, Term, loss_of
from rappor.collection import Collection, days_of, period_of
from rappor.params import Params
from rappor.privacy.loss import add_up

WITHOUT_END = 10**6  # reports if a collection never expires; ε_n is almost ε∞
_KEPT_PERIODS = 128


class ChargeDecision(Enum):
    """Whether a report may be made, and why not."""

    YES = "made"
    FULL = "the reports of this period are made"
    CAPPED = "the limit on values or ε is reached"
    EXPIRED = "the collection has expired"


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits that go beyond a single collection.

    Attributes:
        total: the largest ε over all collections of the client.
        shared: whether the devices of an account share the secret.
        groups: the largest ε of each correlated group: the smallest limit of its collections.
    """

    total: float = float("inf")
    shared: bool = False
    groups: Mapping[str, float] = field(default_factory=dict, hash=False)


def group_limits(collections: Iterable[Collection]) -> dict[str, float]:
    """The largest ε of each group: the smallest limit of its collections (§6.1)."""
    limits: dict[str, float] = {}
    for collection in collections:
        if collection.group is not None:
            limits[collection.group] = min(
                collection.max_epsilon, limits.get(collection.group, float("inf"))
            )
    return limits


def decide(
    ledger: Ledger, collection: Collection, day: datetime.date, value: str, caps: Caps
) -> tuple[ChargeDecision, Ledger]:
    """Whether a report may be made, and the ledger to store before it is made.

    Args:
        ledger: all charges so far.
        collection: the definition in force.
        day: the UTC day of the `report()` call.
        value: its fingerprint, or NULL.
        caps: limits over all collections.
    """
    period = period_of(collection.period, day)
    if collection.expires is not None and day >= collection.expires:
        return ChargeDecision.EXPIRED, ledger
    if used_up(ledger, collection, period):
        return ChargeDecision.FULL, ledger
    account = _account(ledger, collection)
    if value != NULL and value not in account.values and account.distinct >= collection.max_values:
        return ChargeDecision.CAPPED, ledger
    account, number = _term(account, collection, day, caps)
    account = _charge(account, value, number)
    if collection.null_reports:  # charged now, so that null reports are possible at the limit too
        account = _charge(account, NULL, number)
    changed = _with(ledger, account, collection.group)
    if _beyond(changed, collection, caps):
        return ChargeDecision.CAPPED, ledger
    return ChargeDecision.YES, _count(changed, collection.name, period)


def used_up(ledger: Ledger, collection: Collection, period: str) -> bool:
    """Whether all reports of a period were made; setting the clock back does not undo that."""
    used = ledger.used.get(collection.name, {})
    if collection.one_time:
        return bool(used) or collection.name in ledger.floors
    floor = ledger.floors.get(collection.name)
    if floor is not None and _end(period) <= _end(floor):
        return True
    return used.get(period, 0) >= collection.reports_per_period


def latest(periods: Iterable[str]) -> str:
    """The period that ends last; days and weeks may be mixed.

    >>> latest(["2026-11-16", "2026-W46", "2026-11-09"])
    '2026-11-16'
    """
    return max(periods, key=_end)


def _end(period: str) -> datetime.date:
    return days_of(period)[1]


def _account(ledger: Ledger, collection: Collection) -> ChargeAccount:
    found = ledger.find(collection.name, collection.memo_digest)
    if found is None:
        return ChargeAccount(
            collection.name, collection.memo_digest, collection.kind, collection.params
        )
    return found


def _term(
    account: ChargeAccount, collection: Collection, day: datetime.date, caps: Caps
) -> tuple[ChargeAccount, int]:
    """The account with one more report counted, in a term that has room for it."""
    period = period_of(collection.period, day)
    params = collection.params_for(period)
    own = period if collection.budget else None
    times = 1 if collection.one_time else devices(collection, caps)
    fitting = [
        number
        for number, term in enumerate(account.terms)
        if (term.p, term.q, term.period) == (params.p, params.q, own)
        and term.made < term.limit
        and term.charged >= times * term.limit  # else it was charged for fewer devices
    ]
    if fitting:
        number = fitting[0]
        term = account.terms[number]
    else:
        number = len(account.terms)
        limit = _limit(collection, day, params, caps)
        term = Term(params.p, params.q, own, limit, limit * times)
    made = replace(term, made=term.made + 1)
    terms = (*account.terms[:number], made, *account.terms[number + 1 :])
    return replace(account, terms=terms), number


def devices(collection: Collection, caps: Caps) -> int:
    """How many devices may report with this secret."""
    return collection.clients_per_person if caps.shared else 1


def _limit(collection: Collection, day: datetime.date, params: Params, caps: Caps) -> int:
    """The most reports of a term: all until its last period, or as many as ε allows."""
    if collection.one_time or collection.budget:
        return collection.reports_per_period
    most = min(WITHOUT_END, collection.reports_per_period * _periods_left(collection, day))
    times = collection.max_values + collection.null_reports

    def fits(n: int) -> bool:
        step = (params.p, params.q, n * devices(collection, caps))
        loss = loss_of(collection.params, (step,), collection.kind)
        return add_up([(loss, times)]) <= collection.max_epsilon

    if fits(most):
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _periods_left(collection: Collection, day: datetime.date) -> int:
    """Periods from this day to the end of the phase or collection, the current one included."""
    period = period_of(collection.period, day)
    ends = [] if collection.expires is None else [collection.expires - datetime.timedelta(days=1)]
    ends += [
        days_of(phase.first_period)[0] - datetime.timedelta(days=1)
        for phase in collection.schedule
        if phase.first_period > period
    ]
    if not ends:
        return WITHOUT_END
    first, last = days_of(period)[0], days_of(period_of(collection.period, min(ends)))[0]
    return (last - first).days // (1 if collection.period == "day" else 7) + 1


def _charge(account: ChargeAccount, value: str, number: int) -> ChargeAccount:
    charged = account.values.get(value, ())
    if number in charged:
        return account
    values = {**account.values, value: (*charged, number)}
    # Sorted: their order must not tell which value was reported first.
    return replace(account, values=dict(sorted(values.items())))


def _with(ledger: Ledger, account: ChargeAccount, group: str | None) -> Ledger:
    """The ledger with an account added or replaced; a collection is in one group only."""
    others = [
        other
        for other in ledger.accounts
        if (other.collection, other.memo) != (account.collection, account.memo)
    ]
    ordered = sorted((*others, account), key=lambda other: (other.collection, other.memo))
    groups = dict(ledger.groups)
    groups.pop(account.collection, None)
    if group is not None:
        groups[account.collection] = group
    return replace(ledger, accounts=tuple(ordered), groups=groups)


def _beyond(ledger: Ledger, collection: Collection, caps: Caps) -> bool:
    """Whether a limit is exceeded: of the collection, of its group, or of the client."""
    names, most = {collection.name}, collection.max_epsilon
    if collection.group is not None:
        names |= ledger.group(collection.group)
        most = min(most, caps.groups.get(collection.group, most))
    return ledger.epsilon(names) > most or ledger.epsilon() > caps.total


def _count(ledger: Ledger, name: str, period: str) -> Ledger:
    """Count one more report in a period; periods up to a floor take no more reports."""
    used = dict(ledger.used.get(name, {}))
    used[period] = used.get(period, 0) + 1
    floors = dict(ledger.floors)
    while len(used) > _KEPT_PERIODS:
        oldest = min(used, key=_end)
        del used[oldest]
        floors[name] = latest((floors.get(name, oldest), oldest))
    counted = replace(
        ledger,
        batches=ledger.batches + 1,
        used={**ledger.used, name: dict(sorted(used.items()))},
        floors=floors,
    )
    return _settle(counted, name) if floors != ledger.floors else counted


def _settle(ledger: Ledger, name: str) -> Ledger:
    """Move the ε of closed budget periods into one sum."""
    floor = ledger.floors[name]
    accounts, settled = [], [(ledger.carried.get(name, 0.0), 1)]
    for account in ledger.accounts:
        closed = {
            number
            for number, term in enumerate(account.terms)
            if account.collection == name
            and term.period is not None
            and _end(term.period) <= _end(floor)
        }
        if closed:
            settled += replace(account, values=_only(account.values, closed)).losses()
            account = _without(account, closed)
        accounts.append(account)
    if len(settled) == 1:
        return ledger
    return replace(
        ledger, accounts=tuple(accounts), carried={**ledger.carried, name: add_up(settled)}
    )


def _only(values: Mapping[str, Iterable[int]], kept: set[int]) -> dict[str, tuple[int, ...]]:
    return {
        value: tuple(number for number in numbers if number in kept)
        for value, numbers in values.items()
    }


def _without(account: ChargeAccount, closed: set[int]) -> ChargeAccount:
    left = [number for number in range(len(account.terms)) if number not in closed]
    place = {old: new for new, old in enumerate(left)}
    kept = _only(account.values, set(left))
    return replace(
        account,
        terms=tuple(account.terms[number] for number in left),
        values={value: tuple(place[number] for number in kept[value]) for value in kept},
    )
