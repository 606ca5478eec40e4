"""A1 to A4 of the security programme for the JavaScript client, through an adapter.

The audits are those of the Python client (support/audit.py, support/epsilon_audit.py, with their
power); `make test` runs them with fewer clients than `make test-long`. Each planted bug is one
change of the real sources, found by the check that is there for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from rappor import Params, bloom_positions
from rappor.mechanism import channel
from support.audit import UNSEEDED_ALPHA, audit
from support.epsilon_audit import ROUNDS, audit_epsilon, averaging_accuracy, cases
from support.javascript_audit import BUGS, Auditor, auditing
from support.javascript_host import hosting, planted

PAPER = Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)
AWKWARD = Params(k=64, h=3, m=4, f=0.1, p=0.123, q=0.877)
long = pytest.mark.long


@pytest.fixture(scope="module")
def javascript() -> Iterator[Auditor]:
    with auditing() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "clients"),
    [
        (PAPER, 400),
        pytest.param(AWKWARD, 400, marks=long),
        pytest.param(PAPER, 8000, marks=long),
        pytest.param(AWKWARD, 4000, marks=long),
    ],
)
def test_the_true_client_passes_the_audit(
    javascript: Auditor, params: Params, clients: int
) -> None:
    assert audit(javascript.make, params, 1, clients, UNSEEDED_ALPHA).failed == []


def test_every_planted_bug_is_another_one() -> None:
    assert len({(bug.file, bug.new) for bug in BUGS.values()}) == len(BUGS) >= 12


QUICK = ("no_memo", "bit_0_not_randomised", "cohort_drawn_again")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "clients"),
    [
        *[(name, BUGS[name].clients) for name in QUICK],
        *[pytest.param(name, BUGS[name].clients, marks=long) for name in BUGS if name not in QUICK],
    ],
)
def test_a_planted_bug_is_caught(tmp_path: Path, name: str, clients: int) -> None:
    bug = BUGS[name]
    with auditing(planted(tmp_path, bug.file, bug.old, bug.new)) as auditor:
        assert bug.check in audit(auditor.make, PAPER, 1, clients, UNSEEDED_ALPHA).failed


# One run in ten million is below the share: 5.2 standard errors below what is usual, which is .42
# of the promise for 5,000 clients, and .62 or more for 20,000. With p = 0 and q = 1, reports are B'
# itself: ε∞.
EPSILON = [
    *[(case, 5000, (5,), 0.25) for case in cases() if case.kind == "boolean"],
    *[pytest.param(case, 20_000, ROUNDS, 0.45, marks=long) for case in cases()],
    *[pytest.param(case, 10_000, (1,), 0.75, marks=long) for case in cases(p=0.0, q=1.0)],
    *[pytest.param(case, 1_000_000, ROUNDS, 0.83, marks=pytest.mark.soak) for case in cases()],
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "clients", "rounds", "share"), EPSILON)
def test_measured_epsilon_is_within_the_promise_and_near_it(
    javascript: Auditor, case, clients: int, rounds: tuple[int, ...], share: float
) -> None:
    """A1: a lower bound on ε_n, from threshold events."""
    found = audit_epsilon(
        case,
        clients,
        1,
        len(cases()),
        rounds=rounds,
        draw=javascript.draw,
        family_alpha=UNSEEDED_ALPHA,
    )
    for n, (lower, promise) in found.items():
        print(f"A1 {case.kind}, {clients:,} clients, n = {n}: {lower:.4f} of {promise:.4f}")
        assert share * promise <= lower <= promise, f"n = {n}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "times"),
    [
        (500, 20),
        pytest.param(8000, 40, marks=long),
        pytest.param(20_000, 40, marks=pytest.mark.soak),
    ],
)
def test_rates_are_exact_and_bits_are_alike(javascript: Auditor, clients: int, times: int) -> None:
    """A3: each bit's rate of ones over clients, and χ² over bits, at 1e-7 each."""
    packed = np.frombuffer(javascript.reports(PAPER, "value", clients, times), np.uint8)
    bits = np.unpackbits(packed.reshape(clients, times, 16), axis=2, bitorder="little")
    ones = bits.sum(axis=1)  # of each client and bit: 0 to times
    signal = np.zeros(128, bool)
    signal[list(bloom_positions("value", 0, PAPER))] = True
    p_star, q_star = map(float, channel(PAPER))
    rate = np.where(signal, q_star, p_star)
    a, p, q = PAPER.f / 2, PAPER.p, PAPER.q
    memo_spread = a * (1 - a) * (q - p) ** 2  # reports of one client share B'
    within = np.where(
        signal, (1 - a) * q * (1 - q) + a * p * (1 - p), a * q * (1 - q) + (1 - a) * p * (1 - p)
    )
    spread = np.sqrt((memo_spread + within / times) / clients)
    scores = (ones.mean(axis=0) / times - rate) / spread
    assert np.abs(scores).max() < stats.norm.isf(UNSEEDED_ALPHA / 2 / 128)
    assert stats.chi2.sf((scores**2).sum(), 128) > UNSEEDED_ALPHA
    wrong = (ones.mean(axis=0) / times - (rate + 6 * spread)) / spread  # the test has power
    assert stats.chi2.sf((wrong**2).sum(), 128) < UNSEEDED_ALPHA


def guessed(javascript: Auditor, clients: int, times: int) -> float:
    """How often the best guess from the mean of all reports of a client is right, of two values."""
    params = Params(k=32, h=2, m=1, f=0.5, p=0.5, q=0.75)
    x, y = "alpha", "beta"
    positions = [bloom_positions(value, 0, params) for value in (x, y)]
    assert not set(positions[0]) & set(positions[1])
    right = 0.0
    for value, own, other in ((x, *positions), (y, *reversed(positions))):
        packed = np.frombuffer(javascript.reports(params, value, clients // 2, times), np.uint8)
        shape = packed.reshape(clients // 2, times, 4)
        ones = np.unpackbits(shape, axis=2, bitorder="little").sum(axis=1, dtype=int)
        lead = ones[:, own].sum(axis=1) - ones[:, other].sum(axis=1)
        right += float((lead > 0).sum() + 0.5 * (lead == 0).sum())
    return right / clients


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "times"), [(600, 60), pytest.param(2500, 200, marks=long)])
def test_averaging_tells_no_more_than_the_memo(
    javascript: Auditor, clients: int, times: int
) -> None:
    """A2: any number of reports tells no more than B' does, and 200 of them almost all of that.

    Within 6 standard errors, .089 for 600 clients: without a memo, 60 reports give .98.
    """
    limit = averaging_accuracy(0.5, 2)
    sigma = np.sqrt(limit * (1 - limit) / clients)
    least = limit - 6 * sigma if times >= 200 else 0.5 + 6 * sigma
    assert least < guessed(javascript, clients, times) < limit + 6 * sigma


@pytest.mark.long
def test_averaging_tells_everything_of_a_client_without_memo(tmp_path: Path) -> None:
    bug = BUGS["memo_drawn_for_every_report"]
    with auditing(planted(tmp_path, bug.file, bug.old, bug.new)) as auditor:
        assert guessed(auditor, 600, 200) >= 0.99


# Bugs of the client around the encoder: the change, and what goes wrong with it.
CLIENT_BUGS = {
    "secret_drawn_again_after_it_was_lost": (
        "identity.js",
        'throw new Stopped("secret-missing");',
        ";",
    ),
    "secret_drawn_again_after_a_storage_error": (
        "identity.js",
        'if (!secret || secret.length < 16) throw new Stopped("secret-damaged");',
        "if (!secret || secret.length < 16) { secret = randomBytes(32); "
        "await storage.write('secret', await seal('secret', `${hex(secret)}\\n`)); }",
    ),
    "report_before_its_charge": (
        "recorder.js",
        "await commit(charged);\n      ledger = charged;",
        "ledger = charged;",
    ),
    "sends_after_opting_out": (
        "consent.js",
        "await outbox.clear();",
        "",
    ),
}


def broken_promise(name: str, sources: Path | None, folder: Path) -> bool:
    """Whether a client made of these sources breaks the promise that a bug is about."""
    with hosting(sources) as host:
        if name == "sends_after_opting_out":
            host.call("answer", {"status": 503})
        host.open(folder)
        host.reported()
        if name == "sends_after_opting_out":
            host.call("optOut")
        host.call("close")
    if name == "report_before_its_charge":
        return not (folder / "ledger").exists()
    secret = (folder / "secret").read_bytes()
    if name == "sends_after_opting_out":
        (folder / "retry").unlink()
    elif name == "secret_drawn_again_after_it_was_lost":
        (folder / "secret").unlink()
    else:
        (folder / "secret").write_bytes(secret[:-9])
    with hosting(sources) as host:
        host.open(folder)
        host.call("optIn")
        host.call("flush", 60_000)
        sent = host.sent()
        host.reported("again")
    if name == "sends_after_opting_out":
        return bool(sent)
    return (folder / "secret").exists() and (folder / "secret").read_bytes() != secret[:-9]


@pytest.mark.parametrize("name", CLIENT_BUGS)
def test_a_bug_of_the_client_breaks_a_promise_that_the_true_one_keeps(
    tmp_path: Path, name: str
) -> None:
    assert not broken_promise(name, None, tmp_path / "true")
    sources = planted(tmp_path / "planted", *CLIENT_BUGS[name])
    assert broken_promise(name, sources, tmp_path / "bug")
