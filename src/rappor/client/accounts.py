"""Accounts: what a client has been charged, and the ε that adds up to (§3, §6.1).

The rules are those of docs/theory/composition.md (`rappor.privacy.spent`): terms that share B' are
one joint history; everything else adds. A value is charged for a whole term at once, not report by
report: ε_n, where n is the number of reports that the client allows in the term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rappor.params import Params
from rappor.privacy.ledger import Charge
from rappor.privacy.loss import Step, add_up, epsilon_history
from rappor.typing import Kind

NULL = "null"  # in the place of a fingerprint: a null report


@dataclass(frozen=True, slots=True)
class Term:
    """Consecutive periods with the same p and q.

    Attributes:
        p: of the instantaneous response.
        q: of the instantaneous response.
        period: in budget mode the period, which has its own B'; else None.
        limit: how many reports the client may make in this term.
        charged: the n of ε_n: the limit, times the number of devices that share the secret.
        made: the reports made so far, of all values together.
    """

    p: float
    q: float
    period: str | None
    limit: int
    charged: int
    made: int = 0


@dataclass(frozen=True, slots=True)
class ChargeAccount:
    """All charges under one memo digest of a collection.

    Attributes:
        collection: its name.
        memo: its memo digest.
        kind: the kind of collection.
        params: gives k, h, m and f; p and q are not used.
        terms: in the order in which they were opened.
        values: fingerprint, or NULL, -> the numbers of the terms that it is charged for.
    """

    collection: str
    memo: str
    kind: Kind
    params: Params
    terms: tuple[Term, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @property
    def distinct(self) -> int:
        """How many distinct values were reported, without null reports."""
        return len(self.values) - (NULL in self.values)

    def losses(self) -> Iterator[tuple[float, int]]:
        """Each ε that was charged, and how many times it was."""
        counted = Counter(
            tuple(self.terms[number] for number in same)
            for numbers in self.values.values()
            for same in self._by_memo(numbers)
        )
        for terms, times in counted.items():
            steps = tuple((term.p, term.q, term.charged) for term in terms)
            yield loss_of(self.params, steps, self.kind), times

    def charges(self, group: str | None) -> Iterator[Charge]:
        """The same as `Charge`s, for `rappor.privacy.spent`."""
        for value, numbers in self.values.items():
            for term in (self.terms[number] for number in numbers):
                params = Params(
                    self.params.k, self.params.h, self.params.m, self.params.f, term.p, term.q
                )
                yield Charge(
                    self.collection,
                    self.memo,
                    value,
                    params,
                    term.charged,
                    self.kind,
                    group,
                    term.period,
                )

    def _by_memo(self, numbers: Iterable[int]) -> Iterable[list[int]]:
        """The terms of one value, grouped by the B' that they share."""
        shared: dict[str | None, list[int]] = {}
        for number in numbers:
            shared.setdefault(self.terms[number].period, []).append(number)
        return shared.values()


@lru_cache(maxsize=4096)
def loss_of(params: Params, steps: tuple[tuple[float, float, int], ...], kind: Kind) -> float:
    """`epsilon_history` of steps (p, q, reports), cached."""
    return epsilon_history(params, [Step(*step) for step in steps], kind)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that a client remembers.

    Attributes:
        secret: the check value of the secret that the ledger belongs to.
        since: the day (ISO) from which periods without a value get null reports.
        batches: how many reports were made in all; the files of the outbox have these numbers.
        carried: collection -> ε of forgotten secrets and of periods that are closed.
        accounts: one for each collection and memo digest.
        used: collection -> period -> reports made in it.
        groups: collection -> the correlated group that it was last declared in.
        floors: collection -> a period; up to it, nothing more is reported.
    """

    secret: str
    since: str | None = None
    batches: int = 0
    carried: Mapping[str, float] = field(default_factory=dict)
    accounts: tuple[ChargeAccount, ...] = ()
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    floors: Mapping[str, str] = field(default_factory=dict)

    def find(self, collection: str, memo: str) -> ChargeAccount | None:
        """The account of a collection under a memo digest."""
        for account in self.accounts:
            if (account.collection, account.memo) == (collection, memo):
                return account
        return None

    def epsilon(self, names: Iterable[str] | None = None) -> float:
        """ε over the named collections, or over all of them; never below the true sum."""
        wanted = None if names is None else set(names)
        losses = [
            loss
            for account in self.accounts
            if wanted is None or account.collection in wanted
            for loss in account.losses()
        ]
        losses += [(e, 1) for name, e in self.carried.items() if wanted is None or name in wanted]
        return add_up(losses)

    def group(self, name: str) -> set[str]:
        """The collections that were declared in a correlated group."""
        return {collection for collection, group in self.groups.items() if group == name}

    def charges(self) -> Iterator[Charge]:
        """All charges, for `rappor.privacy.spent`; without what was carried."""
        for account in self.accounts:
            yield from account.charges(self.groups.get(account.collection))
