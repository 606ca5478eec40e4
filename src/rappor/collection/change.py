"""diff: what a change of a collection means, whether it may be made, and what it costs in ε.

Clients and counts rely on what a version says, so what clients send never changes within a version.
Versions that share a memo digest share B': their reports are one joint history. Another digest
gives another B', and ε adds (docs/theory/composition.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rappor.collection.definition import Collection
from rappor.collection.fields import SENSITIVITIES
from rappor.errors import ParamsError
from rappor.privacy import Step, add_up, epsilon_history, epsilon_infinity, epsilon_one
from rappor.privacy.rounding import up

FREE, REVIEW, VERSION = "free", "review", "new version"


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs.

    Attributes:
        field: its name.
        before: its old value.
        after: its new value.
        needs: free, review (someone should agree first) or new version (refused otherwise).
        why: the reason, in one sentence.
    """

    field: str
    before: Any
    after: Any
    needs: str
    why: str


@dataclass(frozen=True, slots=True)
class DefinitionDifference:
    """The differences between two definitions.

    Attributes:
        changes: field by field.
        allowed: whether the new definition may replace the old one.
        refusal: why not, or "".
        cost: what the change costs a client in ε, as a sentence.
        same_memo: whether both share B'.
        epsilon_before: of all reports on one value under the old definition alone.
        epsilon_after: of all reports on one value under both.
    """

    changes: tuple[Change, ...]
    allowed: bool
    refusal: str
    cost: str
    same_memo: bool
    epsilon_before: float
    epsilon_after: float


Rule = Callable[[Any, Any], tuple[str, str]]


def _always(needs: str, why: str) -> Rule:
    return lambda _before, _after: (needs, why)


def _limit(what: str) -> Rule:
    """Lowering a limit is free; raising it breaks a promise to clients."""
    return lambda before, after: (
        (FREE, f"a lower limit on {what}: clients keep what they were promised")
        if after <= before
        else (VERSION, f"more {what} than clients were promised")
    )


def _longer(what: str) -> Rule:
    return lambda before, after: (
        (FREE, f"{what} for a shorter time")
        if before is None or (after is not None and after <= before)
        else (REVIEW, f"{what} longer than was agreed")
    )


def _on_expiry(_before: str, after: str) -> tuple[str, str]:
    if after == "delete":
        return FREE, "counts are deleted at the end"
    return REVIEW, "counts are kept longer than was agreed"


def _sensitivity(before: str, after: str) -> tuple[str, str]:
    if SENSITIVITIES.index(after) > SENSITIVITIES.index(before):
        return FREE, "more care; nothing else changes"
    return REVIEW, "less care than was agreed"


_SENT = _always(VERSION, "it changes what clients send and how it is decoded")
_PROMISE = _always(VERSION, "it changes what clients were promised")
_ASSUMED = _always(REVIEW, "lint relies on it: someone should confirm that it is still true")
RULES: dict[str, Rule] = {
    "params": _SENT,
    "kind": _SENT,
    "dialect": _SENT,
    "categories": _SENT,
    "ranges": _SENT,
    "fields": _SENT,
    "views": _SENT,
    "period": _SENT,
    "schedule": _SENT,
    "dimensions": _always(VERSION, "dimensions are sent in clear, and cells become smaller"),
    "null_reports": _SENT,
    "one_time": _PROMISE,
    "budget": _PROMISE,
    "group": _PROMISE,
    "account_secret": _always(VERSION, "clients with another secret draw another B'"),
    "reports_per_period": _limit("reports in a period"),
    "max_values": _limit("values"),
    "max_epsilon": _limit("ε"),
    "expires": _longer("collected and kept"),
    "on_expiry": _on_expiry,
    "keep_reports_days": _longer("single reports are kept"),
    "owner": _always(REVIEW, "someone else becomes responsible for the data"),
    "upload": _always(REVIEW, "reports go somewhere else"),
    "sensitivity": _sensitivity,
    "platform": _ASSUMED,
    "expected_reports": _ASSUMED,
    "values": _ASSUMED,
    "shared": _ASSUMED,
    "clients_per_person": _ASSUMED,
    "description": _always(FREE, "words only"),
    "reviews": _always(FREE, "words only"),
}


def diff(old: Collection, new: Collection) -> DefinitionDifference:
    """Compare two definitions of one collection.

    >>> from dataclasses import replace
    >>> from rappor.params import Params
    >>> old = Collection("homepage", 1, Params.preset("windows"))
    >>> new = replace(old, params=replace(old.params, q=0.7))
    >>> diff(old, new).refusal
    'params changed: give it version 2'
    """
    if old.name != new.name:
        raise ParamsError(
            f"{old.name} and {new.name} are two collections, not two versions of one; compare "
            "files of the same name"
        )
    changes = tuple(_changes(old, new))
    refusal = _refusal(old, new, changes)
    same_memo = old.memo_digest == new.memo_digest and old.account_secret == new.account_secret
    cost, before, after = _cost(old, new, same_memo)
    if new.max_epsilon > old.max_epsilon:
        cost += (
            f" Over all values a client may spend ε = {up(new.max_epsilon)} instead of "
            f"{up(old.max_epsilon)}."
        )
    return DefinitionDifference(changes, not refusal, refusal, cost, same_memo, before, after)


def _changes(old: Collection, new: Collection) -> list[Change]:
    found = []
    for name, rule in RULES.items():
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            found.append(Change(name, before, after, *rule(before, after)))
    return found


def _refusal(old: Collection, new: Collection, changes: tuple[Change, ...]) -> str:
    if new.version < old.version:
        return f"version {new.version} is older than {old.version}: versions only go up"
    held = [change.field for change in changes if change.needs == VERSION]
    if new.version == old.version and held:
        return f"{', '.join(held)} changed: give it version {old.version + 1}"
    return ""


def _cost(old: Collection, new: Collection, same_memo: bool) -> tuple[str, float, float]:
    before = old.epsilon_infinity
    if old.one_time and new.one_time:
        return _one_time_cost(old, new, same_memo)
    if old.budget or new.budget or old.one_time or new.one_time:
        after = add_up([(before, 1), (new.epsilon_infinity, 1)])
        return (
            "The ε of both versions adds up: one report under each costs "
            f"ε = {up(add_up([(old.epsilon_one, 1), (new.epsilon_one, 1)]))}.",
            before,
            after,
        )
    if not same_memo:
        after = add_up([(before, 1), (epsilon_infinity(new.params, new.kind), 1)])
        return (
            "The new version has its own B', so ε adds: for a client that reported one value under "
            f"both, {up(before)} becomes {up(after)}.",
            before,
            after,
        )
    if _noise(old) == _noise(new):
        return "B', p and q stay the same: one value costs no more ε than before.", before, before
    steps = [_costliest(definition) for definition in (old, new)]
    both = epsilon_history(old.params, steps, old.kind)
    return (
        "B' stays, so both versions are one history: one report under each costs "
        f"ε = {up(both)} together (the old alone {up(old.epsilon_one)}); all reports on one "
        f"value still cost at most {up(before)}.",
        before,
        before,
    )


def _one_time_cost(old: Collection, new: Collection, same_memo: bool) -> tuple[str, float, float]:
    before = old.epsilon_one
    if same_memo and old.params.f > 0:
        return "A one-time report of B' is the same under both: no ε.", before, before
    after = add_up([(before, 1), (epsilon_one(new.params, new.kind), 1)])
    return (
        f"A client that reports once more spends ε again: {up(before)} becomes {up(after)}.",
        before,
        after,
    )


def _costliest(collection: Collection) -> Step:
    """One report in the most expensive phase of the schedule."""
    first = [None, *(phase.first_period for phase in collection.schedule)]
    params = max(
        map(collection.params_for, first),
        key=lambda params: epsilon_one(params, collection.kind),
    )
    return Step(params.p, params.q)


def _noise(collection: Collection) -> tuple[Any, ...]:
    return collection.params.p, collection.params.q, collection.schedule
