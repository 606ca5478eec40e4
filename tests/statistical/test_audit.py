"""A1, A1m, A3, A4 of the security programme, sized for the test command: see support/audit.py."""

import pytest

from rappor import Encoder, Params
from support.audit import audit
from support.planted_bugs import BUGS

PAPER = Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)
AWKWARD = Params(k=64, h=3, m=4, f=0.1, p=0.123, q=0.877)


@pytest.mark.parametrize("seed", range(20))
def test_the_true_client_passes(seed):
    assert audit(Encoder, PAPER, seed, clients=2000).failed == []


def test_the_true_client_passes_a_long_audit():
    assert audit(Encoder, PAPER, seed=100, clients=20_000).failed == []


def test_the_true_client_passes_with_awkward_parameters():
    assert audit(Encoder, AWKWARD, seed=200, clients=10_000).failed == []


CAUGHT_BY = {  # the check that is there for the bug
    "no_memo": "B' survives a restart",
    "f_too_low_by_two_hundredths": "B': zeros flipped with f/2",
    "f_too_high_by_two_hundredths": "B': zeros flipped with f/2",
    "p_and_q_swapped": "x1: ones report q*",
    "q_too_high_by_a_hundredth": "x1: zeros report p*",
    "first_bit_not_randomised": "bit 0",
    "last_bit_not_randomised": "bit 127",
    "one_sided_noise": "x1: ones report q*",
    "no_second_randomization": "ε of 1 report(s) is within its bound",
    "no_first_randomization": "ε of 2 report(s) is within its bound",
    "reports_repeat_themselves": "x1 and x2: zeros, both 1",
    "reports_repeat_after_a_restart": "x1 and x3: zeros, both 1",
    "secret_not_used": "ε of 1 report(s) is within its bound",
    "value_not_in_the_memo": "x and y: independent",
    "collection_not_in_the_memo": "collections: independent",
    "f_not_in_the_memo": "f and f': independent",
    "p_in_the_memo": "B' survives a change of p and q",
    "neighbouring_bits_share_a_coin": "bits 1 apart: independent",
    "bits_above_the_signal_left_out": "x1: zeros report p*",
    "cohort_drawn_for_each_report": "reports carry the client's cohort",
    "single_step_with_the_joint_rates": "x1 and x2: zeros, both 1",
}


def test_every_planted_bug_has_its_check():
    assert len(BUGS) >= 12
    assert CAUGHT_BY.keys() == BUGS.keys() - {"f_truncated_to_sevenths_of_a_byte"}


@pytest.mark.parametrize(("name", "check"), CAUGHT_BY.items())
def test_a_planted_bug_is_caught(name, check):
    make, clients = BUGS[name]
    assert check in audit(make, PAPER, seed=1, clients=clients).failed


def test_f_truncated_to_seven_bits_is_caught():
    make, clients = BUGS["f_truncated_to_sevenths_of_a_byte"]
    params = Params(k=512, h=2, m=4, f=0.1, p=0.5, q=0.75)
    assert "B': zeros flipped with f/2" in audit(make, params, seed=1, clients=clients // 2).failed
