"""Four collectors on PostgreSQL under faults: nothing acknowledged lost, nothing twice (B1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.killing import BUSY
from support.postgres import Server, a_server
from support.postgres_faults import FAULTS, fault_cycles

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_server() as made:
        yield made


@pytest.mark.parametrize(
    ("faults", "seed"),
    [
        (12, 1),
        pytest.param(40, 2, marks=pytest.mark.long),
        pytest.param(1000, 3, marks=pytest.mark.soak),
    ],
)
def test_faults_lose_nothing_and_count_nothing_twice(
    server: Server, tmp_path: Path, faults: int, seed: int
) -> None:
    found = fault_cycles(server, tmp_path, faults, seed=seed, look_every=max(12, faults // 10))
    assert found.reckoning.clean, (found.reckoning, found.done)
    assert found.reckoning.stored == found.reckoning.acknowledged
    assert found.reckoning.acknowledged >= BUSY * faults
    assert set(found.done) == set(FAULTS)


@pytest.mark.long
def test_acknowledging_first_is_caught(server: Server, tmp_path: Path) -> None:
    found = fault_cycles(server, tmp_path, 100, bug="ack-first", look_every=1)
    assert found.reckoning.lost > 0
