"""Tuples in a client: what a change costs in each view, and values that are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.collection import Collection
from rappor.mechanism import Field
from rappor.params import Params
from rappor.testing import MemoryCollector
from rappor.wire import from_text
from support.client import LIMIT, FakeClock
from support.tuple_cases import secret_of

ECHO = Params(k=64, h=2, m=5, f=0.5, p=0.0, q=1.0)  # a report is B' itself
INSTALL = Collection(
    "install",
    1,
    ECHO,
    kind="tuple",
    fields=(
        Field("homepage", "string"),
        Field("channel", "category", categories=("stable", "beta")),
    ),
    max_values=9,
    max_epsilon=99.0,
)
WHOLE, HOMEPAGE = 0, 4  # a cohort of each default view


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=[WHOLE, HOMEPAGE], ids=["whole", "homepage"])
def client(
    tmp_path: Path, clock: FakeClock, request: pytest.FixtureRequest
) -> Iterator[tuple[Client, int]]:
    secret = secret_of(INSTALL, request.param)
    with Client.open(
        tmp_path, [INSTALL], consent=True, clock=clock, account_secret=secret
    ) as opened:
        yield opened, request.param


def reported(client: Client, clock: FakeClock, *values: Any) -> list[int]:
    """The reports of these values, one a day."""
    for value in values:
        client.report("install", value)
        assert client.flush(LIMIT)
        clock.forward(1)
    return [from_text(batch.bits, 64) for batch in client.preview().waiting]


def test_a_change_outside_the_view_costs_nothing_and_changes_nothing(
    client: tuple[Client, int], clock: FakeClock
) -> None:
    opened, cohort = client
    stable, beta, other = (
        {"homepage": "a.org", "channel": "stable"},
        {"homepage": "a.org", "channel": "beta"},
        {"homepage": "b.org", "channel": "beta"},
    )
    first, second, third = reported(opened, clock, stable, beta, other)
    seen = 2 if cohort == HOMEPAGE else 3
    assert len({first, second, third}) == seen
    assert (first == second) == (cohort == HOMEPAGE)
    status = opened.status().collections[0]
    assert status.values == seen
    each = INSTALL.epsilon_infinity
    assert (seen - 1) * each < status.epsilon <= seen * each + 1e-9


@pytest.mark.parametrize(
    "value",
    [
        {"homepage": "a.org"},
        {"homepage": "a.org", "channel": "nightly"},
        {"homepage": "a.org", "channel": "beta", "more": 1},
        {"homepage": 3, "channel": "beta"},
        "a.org",
        None,
        {},
        {str(number): "x" for number in range(100)},
        {"homepage": "x" * 3_000_000, "channel": "beta"},
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_value_that_does_not_fit_is_refused_in_every_view(
    client: tuple[Client, int], value: object
) -> None:
    opened, _ = client
    opened.report("install", value)
    assert opened.flush(LIMIT)
    status = opened.status()
    assert status.calls == {"value refused": 1}
    assert status.collections[0].values == 0


def test_a_mapping_that_raises_is_refused_and_never_shown(
    client: tuple[Client, int], caplog: pytest.LogCaptureFixture
) -> None:
    class Hostile(dict[str, str]):
        def keys(self) -> Any:
            raise RuntimeError("hunter2-marker")

    opened, _ = client
    opened.report("install", Hostile())
    assert opened.flush(LIMIT)
    assert opened.status().calls == {"value refused": 1}
    assert "hunter2" not in caplog.text


def test_a_collector_counts_the_reports_of_tuples(tmp_path: Path) -> None:
    with (
        MemoryCollector([INSTALL]) as collector,
        Client.open(
            tmp_path, [INSTALL], consent=True, upload_to=collector.url, jitter=0.0
        ) as opened,
    ):
        opened.report("install", {"homepage": "a.org", "channel": "beta"})
        assert opened.flush(LIMIT)
        assert collector.count("install") == 1


def test_a_value_that_changes_after_the_call_is_reported_as_it_was(
    tmp_path: Path, clock: FakeClock
) -> None:
    secret = secret_of(INSTALL, WHOLE)
    with Client.open(
        tmp_path, [INSTALL], consent=True, clock=clock, account_secret=secret
    ) as opened:
        with opened._folder.lock("lock", LIMIT):
            page = bytearray(b"a.org")
            value = {"homepage": page, "channel": "beta"}
            opened.report("install", value)
            page[:] = b"b.org"
            value["channel"] = "stable"
        opened.flush(LIMIT)
        clock.forward(1)
        first, second = reported(opened, clock, {"homepage": "a.org", "channel": "beta"})
        assert first == second
