"""A1 and A2: ε of the real client, measured from its reports.

Sized down for the test command: at 10,000 clients a case the bound must reach half of ε_n (n = 1
is the noisiest); `make soak` runs 1,000,000 clients and .90 ε_n, as SECURITY.md asks.
"""

import os

import numpy as np
import pytest

from rappor import Encoder, Params, bloom_positions
from rappor.mechanism.prr import permanent_response
from rappor.privacy import epsilon_infinity
from rappor.testing import SeededEntropy
from support.audit import bits_of
from support.epsilon_audit import audit_epsilon, averaging_accuracy, cases

CASES = cases()
IDS = [f"{case.kind} {case.x} to {case.y}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_measured_epsilon_is_within_the_promise_and_near_it(case):
    for n, (lower, promise) in audit_epsilon(case, 10_000, 1, len(CASES)).items():
        assert 0.5 * promise <= lower <= promise, f"n = {n}"


FOR_EVER = cases(p=0.0, q=1.0)  # reports are B' itself, which is what endless reports reveal


@pytest.mark.parametrize("case", FOR_EVER, ids=IDS)
def test_measured_epsilon_for_ever_is_within_the_promise_and_near_it(case):
    found = audit_epsilon(case, 10_000, 3, len(CASES), rounds=(1,))
    lower, promise = found[1]
    assert promise == epsilon_infinity(case.params, case.kind)
    assert 0.75 * promise <= lower <= promise


@pytest.mark.soak
@pytest.mark.parametrize("case", FOR_EVER, ids=IDS)
def test_measured_epsilon_for_ever_reaches_nine_tenths_of_the_promise(case):
    found = audit_epsilon(case, 1_000_000, 4, len(CASES), entropy=lambda _: os.urandom, rounds=(1,))
    lower, promise = found[1]
    assert 0.9 * promise <= lower <= promise


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_measured_epsilon_reaches_nine_tenths_of_the_promise(case):
    found = audit_epsilon(case, 1_000_000, 2, len(CASES), entropy=lambda _: os.urandom)
    for n, (lower, promise) in found.items():
        assert 0.9 * promise <= lower <= promise, f"n = {n}"


def guess_right(clients: int, reports: int, memo: bool) -> float:
    """The averaging attack: how often the likelier of two values is the true one."""
    params = Params(128, 2, 1, 0.5, 0.5, 0.75)
    values = ("alpha", "beta")
    places = [np.array(bloom_positions(value, 0, params)) for value in values]
    assert not set(places[0]) & set(places[1])
    entropy = SeededEntropy(f"averaging {memo}")
    right = 0.0
    for client in range(clients):
        truth = client % 2
        encoder = Encoder(params, secret=entropy(32), collection="a", cohort=0, entropy=entropy)
        if not memo:
            signal = encoder._signal(values[truth])
            encoder._permanent = lambda _value, s=signal: permanent_response(params, entropy(64))(
                s, b""
            )
        drawn = bits_of([encoder.encode(values[truth]).bits for _ in range(reports)], 128)
        share = drawn.mean(axis=0)
        # With a memo, a bit's share is near p or q and tells its B'; without one, p* or q*: its B.
        seen = share > 0.625  # halfway, either way
        score = seen[places[0]].sum() - seen[places[1]].sum()
        right += (score > 0) == (truth == 0) if score else 0.5
    return right / clients


def test_averaging_reaches_what_the_memo_allows_and_no_more():
    clients = 20_000
    bound = averaging_accuracy(0.5, 2)
    assert bound == pytest.approx(0.84375)
    accuracy = guess_right(clients, reports=200, memo=True)
    spread = (bound * (1 - bound) / clients) ** 0.5
    assert bound - 4 * spread <= accuracy <= bound + 4 * spread


def test_averaging_without_a_memo_learns_the_value():
    assert guess_right(300, reports=200, memo=False) >= 0.99


@pytest.mark.soak
def test_averaging_ten_thousand_reports_of_twenty_thousand_clients():
    bound = averaging_accuracy(0.5, 2)
    assert guess_right(20_000, reports=10_000, memo=True) <= bound + 4 * 0.0026
    assert guess_right(2000, reports=10_000, memo=False) >= 0.99
