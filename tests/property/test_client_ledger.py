"""A client under random calls, crashes and clock moves: its ledger never exceeds its limits.

Two processes share one directory. A crash drops all that a process knew, before, within or after
any write. What left is judged against what was agreed, and its true ε against the ledger's.
"""

import functools
from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from rappor.client import forget as forgetting
from rappor.client.accounts import NULL, Ledger
from rappor.client.identity import LEDGER
from rappor.client.ledger_file import FORGOTTEN, load_forgotten, parse_ledger
from rappor.client.outbox import Outbox, parse_batch
from rappor.client.recorder import Recorder
from rappor.client.sender import Sender
from rappor.client.transport import Answer
from rappor.collection import Collection
from rappor.params import Params
from rappor.privacy import Charge, add_up, epsilon_one, spent
from support.client import MONDAY, Crash, FakeClock, FakeTransport, MemoryDisk, recorder_on

NOISY = Params(k=8, h=1, m=2, f=0.5, p=0.25, q=0.75)
PLAIN = Params(k=8, h=1, m=2, f=0.0, p=0.25, q=0.75)
EXPIRES = MONDAY.replace(year=2027)


def collection(name: str, **changes: Any) -> Collection:
    given = {"name": name, "version": 1, "params": NOISY, "max_values": 2, "expires": EXPIRES}
    return Collection(**(given | changes))


COLLECTIONS = (
    collection("strings", group="one"),
    collection("twice", group="one", reports_per_period=2, max_epsilon=9.0),
    collection("nulls", null_reports=True),
    collection("weekly", null_reports=True, period="week", expires=None),
    collection("budget", budget=True, max_epsilon=6.5 * epsilon_one(NOISY), max_values=9),
    collection("few", params=PLAIN, max_epsilon=7.5 * epsilon_one(PLAIN)),
    collection("once", params=PLAIN, one_time=True, max_epsilon=1.01 * epsilon_one(PLAIN)),
    collection("phases", schedule=(("2026-11-20", 0.25, 0.5),), max_epsilon=5.0),
)
names = st.sampled_from([each.name for each in COLLECTIONS])
processes = st.integers(0, 1)


@functools.lru_cache(maxsize=10_000)
def true_epsilon(charges: frozenset[Charge]) -> float:
    """What reports cost in truth, whatever a ledger says."""
    return spent(charges).total


class ClientMachine(RuleBasedStateMachine):
    """Random lives of one client's directory."""

    recorder: ClassVar[type[Recorder]] = Recorder

    def __init__(self) -> None:
        super().__init__()
        self.disk, self.clock = MemoryDisk(), FakeClock()
        self.collections = {each.name: each for each in COLLECTIONS}
        self.running: list[Recorder | None] = [None, None]
        self.collector = FakeTransport()
        self.made: dict[bytes, tuple[Any, ...]] = {}  # token -> what it is, truly
        self.secrets = 0
        self.judged: Any = None

    def process(self, number: int) -> Recorder:
        found = self.running[number]
        if found is None:
            made = self.collections.values()
            found = recorder_on(self.disk, self.clock, *made, kind=self.recorder)
            self.running[number] = found
        return found

    def attempt(self, number: int, action: Any, name: str | None, value: object) -> None:
        """Do something that may crash, and note every report that came of it."""
        try:
            action()
        except Crash:
            self.running[number] = None
        self.disk.crash_in = None
        self.note(name, value)

    def note(self, name: str | None, value: object) -> None:
        for file in self.disk.names("outbox"):
            found = parse_batch(self.disk.files[file])
            assert found is not None
            batch = found[0]
            if batch.token not in self.made:
                truly = value if batch.collection == name else NULL
                definition = self.collections[batch.collection]
                self.made[batch.token] = (definition, truly, batch.period, self.secrets)

    @rule(number=processes, name=names, value=st.sampled_from("abc"))
    def report(self, number: int, name: str, value: str) -> None:
        now = self.clock.now
        self.attempt(number, lambda: self.process(number).record(name, value, now), name, value)

    @rule(
        number=processes,
        name=names,
        value=st.sampled_from("abc"),
        write=st.integers(1, 6),
        how=st.sampled_from(["before", "torn", "after"]),
    )
    def report_and_crash(self, number: int, name: str, value: str, write: int, how: str) -> None:
        self.process(number)
        self.disk.crash_in, self.disk.crash_how = write, how
        self.report(number, name, value)

    @rule(number=processes, write=st.none() | st.integers(1, 9))
    def tick(self, number: int, write: int | None) -> None:
        recorder = self.process(number)
        self.disk.crash_in, self.disk.crash_how = write, "after"
        self.attempt(number, recorder.tick, None, NULL)

    @rule(days=st.sampled_from([-400, -30, -8, -1, 1, 2, 7, 9, 60]))
    def move_the_clock(self, days: int) -> None:
        self.clock.forward(days)

    @rule(number=processes)
    def restart(self, number: int) -> None:
        self.running[number] = None

    @rule(answer=st.sampled_from([204, 503, 400, 0]))
    def send(self, answer: int) -> None:
        self.collector.answers = [Answer(answer) if answer else OSError("lost")]
        sender = Sender(self.disk, self.clock, Outbox(self.disk), self.collector, jitter=0)
        sender.send(until=self.clock.monotonic() + 60, now=True)

    @rule(name=names, q=st.sampled_from([0.5, 0.625, 0.75]))
    def upgrade(self, name: str, q: float) -> None:
        old = self.collections[name]
        self.collections[name] = replace(
            old, version=old.version + 1, params=replace(old.params, q=q)
        )
        self.running = [None, None]

    @rule()
    def forget(self) -> None:
        forgetting.forget(self.disk, self.collections, self.clock.day)
        self.secrets += 1
        self.running = [None, None]

    @invariant()
    def what_was_agreed_holds(self) -> None:
        """Judge again only what has changed: the ledger, what was made, what was agreed."""
        data = self.disk.files.get(LEDGER)
        forgotten = self.disk.files.get(FORGOTTEN)
        now = (data, forgotten, frozenset(self.made), tuple(self.collections.values()))
        if now == self.judged:
            return
        self.judged = now
        ledger = load_forgotten(self.disk) if data is None else parse_ledger(data)
        self.the_ledger_is_within_every_limit(ledger)
        self.what_was_made_is_no_more_than_was_agreed()
        self.what_was_made_costs_no_more_than_the_ledger_says(ledger)

    def the_ledger_is_within_every_limit(self, ledger: Ledger) -> None:
        for each in self.collections.values():
            assert ledger.epsilon([each.name]) <= each.max_epsilon
            account = ledger.find(each.name, each.memo_digest)
            assert account is None or account.distinct <= each.max_values
        one = [each for each in self.collections.values() if each.group == "one"]
        assert ledger.epsilon(e.name for e in one) <= min(e.max_epsilon for e in one)
        for account in ledger.accounts:
            assert all(term.made <= term.limit for term in account.terms)
        assert add_up(
            [(spent(ledger.charges()).total, 1), *((each, 1) for each in ledger.carried.values())]
        ) == pytest.approx(ledger.epsilon())

    def what_was_made_is_no_more_than_was_agreed(self) -> None:
        per_period = Counter(
            (definition.name, period) for definition, _, period, _ in self.made.values()
        )
        for (name, period), count in per_period.items():  # under all secrets together
            assert count <= self.collections[name].reports_per_period, (name, period)
        assert sum(each.one_time for each, _, _, _ in self.made.values()) <= 1

    @invariant()
    def what_left_is_what_was_made(self) -> None:
        sent = {batch.token for batch in self.collector.batches}
        assert sent <= set(self.made)

    def what_was_made_costs_no_more_than_the_ledger_says(self, ledger: Ledger) -> None:
        reports = Counter(
            (
                each.name,
                each.memo_digest,
                value,
                each.params_for(period),
                period if each.budget else None,
                secret,
                each.kind,
            )
            for each, value, period, secret in self.made.values()
        )
        for name in self.collections:
            charges = frozenset(
                Charge(name, memo, value, params, count, kind, None, own, secret)
                for (n, memo, value, params, own, secret, kind), count in reports.items()
                if n == name
            )
            assert true_epsilon(charges) <= ledger.epsilon([name]) * (1 + 1e-12)

    @invariant()
    def closed_periods_have_null_reports_only_after_they_end(self) -> None:
        for file in self.disk.names("outbox"):
            found = parse_batch(self.disk.files[file])
            assert found is not None
            null = self.collections[found[0].collection].null_reports
            assert file.endswith((".held", ".tried") if null else (".batch", ".tried"))


FEW = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lives", "steps"),
    [
        pytest.param(40, 30, marks=pytest.mark.slow),
        pytest.param(300, 60, marks=pytest.mark.long),
        pytest.param(3000, 80, marks=pytest.mark.soak),
    ],
)
def test_no_life_of_a_client_exceeds_its_limits(lives: int, steps: int) -> None:
    """A planted bug below shows in a life of 30 steps with probability above 1/4.

    40 lives miss it with probability 0.75^40 = 1e-5.
    """
    many = settings(FEW, max_examples=lives, stateful_step_count=steps)
    run_state_machine_as_test(ClientMachine, settings=many)


class ReportsFirst(Recorder):
    """Planted: the report is made, and only then charged."""

    def _commit(self, ledger: Any, secret: bytes) -> None:
        self._later = (ledger, secret)

    def _put(self, *given: Any) -> None:
        super()._put(*given)
        super()._commit(*self._later)


class RemembersPeriodsInMemory(Recorder):
    """Planted: which periods were used is known to the process only."""

    def _commit(self, ledger: Any, secret: bytes) -> None:
        super()._commit(replace(ledger, used={}), secret)


class ChargesNothing(Recorder):
    """Planted: values are never charged."""

    def _commit(self, ledger: Any, secret: bytes) -> None:
        super()._commit(replace(ledger, accounts=()), secret)


@pytest.mark.parametrize("bug", [ReportsFirst, RemembersPeriodsInMemory, ChargesNothing])
def test_the_search_finds_a_planted_bug(bug: type[Recorder]) -> None:
    class Broken(ClientMachine):
        recorder = bug

    enough = settings(FEW, max_examples=400, database=None, phases=[Phase.generate])
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        run_state_machine_as_test(Broken, settings=enough)
