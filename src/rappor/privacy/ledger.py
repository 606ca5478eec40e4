"""What one client has spent: charges over values, versions, collections and correlated groups.

docs/theory/composition.md proves the rules: reports that share B' (same collection, memo digest,
value, secret, and in budget mode period) are one joint history, for all versions; everything else
adds. This is the arithmetic only; `rappor.client` keeps the ledger on disk, and its limits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from rappor.errors import LedgerError
from rappor.params import Params, check_params
from rappor.privacy.loss import Step, add_up, epsilon_history, epsilon_infinity
from rappor.typing import Kind


@dataclass(frozen=True, slots=True)
class Charge:
    """Reports of one value under one version of a collection.

    Attributes:
        collection: its name.
        memo: its memo digest, which with the value decides which B' is used.
        value: anything that tells a client's values apart (a keyed fingerprint, a number).
        params: the version's parameters.
        reports: how many reports were, or may be, made.
        kind: the kind of collection.
        group: the name that collections share if their values depend on each other (§6.1).
        period: in budget mode the calendar period, which has its own B'.
        secret: which of a client's secrets was used; each one draws its own B'.
    """

    collection: str
    memo: str
    value: Hashable = field(repr=False)
    params: Params
    reports: int
    kind: Kind = "string"
    group: str | None = None
    period: str | None = None
    secret: Hashable = field(default=None, repr=False)

    @property
    def memoized(self) -> Hashable:
        """What decides which B' was used; charges with the same key are one joint history."""
        value, secret = (type(self.value), self.value), (type(self.secret), self.secret)
        return (self.collection, self.memo, value, self.period, secret)  # 1 and True are two values


@dataclass(frozen=True, slots=True)
class Spent:
    """The ε of everything in the ledger, each sum rounded up.

    Attributes:
        total: over the client's whole ledger: all collections, values and versions.
        ceiling: the same if every value were reported any number of times.
        by_collection: each collection's share of the total.
        by_group: for each correlated group, the ε of what its collections have in common;
            collections without a group are not included.
    """

    total: float
    ceiling: float
    by_collection: Mapping[str, float]
    by_group: Mapping[str, float]


def spent(charges: Iterable[Charge]) -> Spent:
    """Add charges up.

    >>> chrome = Params.preset("chrome")
    >>> five = [Charge(f"c{i}", "memo", v, chrome, 1000) for i in range(5) for v in range(3)]
    >>> round(spent(five).total, 2)
    30.65
    """
    memos: dict[Hashable, list[Charge]] = {}
    groups: dict[str, str | None] = {}
    shapes: dict[tuple[str, str], Charge] = {}
    for charge in charges:
        check_params(charge.params)
        memos.setdefault(charge.memoized, []).append(charge)
        _check_same_shape(shapes.setdefault((charge.collection, charge.memo), charge), charge)
        if groups.setdefault(charge.collection, charge.group) != charge.group:
            raise LedgerError(
                f"collection {charge.collection!r} is charged in two correlated groups"
            )
    now: dict[str, list[float]] = {}
    grouped: dict[str, list[float]] = {}
    ceiling: list[float] = []
    for same_memo in memos.values():
        first = same_memo[0]
        steps = [Step(charge.params.p, charge.params.q, charge.reports) for charge in same_memo]
        loss = epsilon_history(first.params, steps, first.kind)
        now.setdefault(first.collection, []).append(loss)
        if first.group is not None:
            grouped.setdefault(first.group, []).append(loss)
        ceiling.append(epsilon_infinity(first.params, first.kind))
    by_collection = {name: _sum(losses) for name, losses in now.items()}
    return Spent(
        total=_sum(loss for losses in now.values() for loss in losses),
        ceiling=_sum(ceiling),
        by_collection=by_collection,
        by_group={name: _sum(losses) for name, losses in grouped.items()},
    )


def _sum(losses: Iterable[float]) -> float:
    return add_up((loss, 1) for loss in losses)


def _check_same_shape(first: Charge, other: Charge) -> None:
    """Charges under one memo digest must agree on all that shapes B'; p and q alone may differ."""
    shape = [(c.params.k, c.params.h, c.params.m, c.params.f, c.kind) for c in (first, other)]
    if shape[0] != shape[1]:
        raise LedgerError(
            f"collection {first.collection!r}: two charges carry the same memo digest with "
            "different k, h, m, f or kind, which no memo digest allows"
        )
