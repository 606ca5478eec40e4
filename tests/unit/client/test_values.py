"""Values: huge ones, odd ones, and those that change after the call."""

from pathlib import Path

import pytest

from rappor.client import Client
from rappor.params import Params
from support.client import LIMIT, FakeClock, homepage


@pytest.mark.parametrize(
    "value",
    ["x" * 3_000_000, b"x" * 3_000_000, [True] * 3_000_000, (True,) * 3_000_000],
    ids=["text", "bytes", "list", "tuple"],
)
def test_a_huge_value_is_refused_at_once_and_not_kept(tmp_path: Path, value: object) -> None:
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.flush(LIMIT)
        for _ in range(100):
            client.report("homepage", value)
        assert client._calls == {"value refused": 100}  # by report() itself
        assert client._workers.calls.empty()
        assert client.status().calls == {"value refused": 100}


def test_bytes_that_change_after_the_call_are_reported_as_they_were(tmp_path: Path) -> None:
    params = Params(64, 2, 4, 0.5, 0.0, 1.0)
    collection, clock = homepage(params=params), FakeClock()
    with Client.open(tmp_path, [collection], consent=True, clock=clock) as client:
        with client._folder.lock("lock", LIMIT):
            value = bytearray(b"a.org")
            client.report("homepage", value)
            value[:] = b"b.org"
        client.flush(LIMIT)
        clock.forward(1)
        client.report("homepage", b"a.org")
        client.flush(LIMIT)
        assert client.status().collections[0].values == 1


@pytest.mark.parametrize("value", ["", b"", "\0", "\U0010ffff", "x" * 100_000])
def test_odd_strings_are_values_like_any_other(tmp_path: Path, value: object) -> None:
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.report("homepage", value)
        assert client.flush(LIMIT)
        assert client.status().calls == {"made": 1}
