"""B1: kill -9 of the collector at random moments: nothing acknowledged lost, nothing twice."""

from pathlib import Path

import pytest

from support.killing import kill_cycles

CYCLES = 100


def test_a_hundred_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    found = kill_cycles(tmp_path, CYCLES)
    assert found.clean, found
    assert found.stored == found.acknowledged  # in the end every client had its answer
    assert found.acknowledged > 10 * CYCLES  # it was busy when it was killed


@pytest.mark.soak
def test_a_thousand_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    found = kill_cycles(tmp_path, 1000, seed=2, look_every=100)
    assert found.clean, found
    assert found.stored == found.acknowledged


def test_acknowledging_first_is_caught(tmp_path: Path) -> None:
    found = kill_cycles(tmp_path, 40, bug="ack-first", look_every=1)
    assert found.lost > 0


def test_a_token_in_another_transaction_is_caught(tmp_path: Path) -> None:
    found = kill_cycles(tmp_path, 40, bug="two-transactions", look_every=1)
    assert found.double > 0
    assert found.lost == 0


def test_kills_while_tokens_are_moved_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    """The latest tokens follow into their table with each commit, instead of after thousands."""
    found = kill_cycles(tmp_path, 30, bug="small-fresh", seed=3)
    assert found.clean, found
    assert found.stored == found.acknowledged


def test_tokens_that_are_moved_in_two_transactions_are_caught(tmp_path: Path) -> None:
    """Tokens that are gone let replays in; tokens without their counts lose these."""
    found = kill_cycles(tmp_path, 40, bug="moves-in-two", look_every=1)
    assert found.double + found.lost > 0
