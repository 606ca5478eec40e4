"""Clocks that are two days off, many writers at once, and the two ways to the same counts."""

import datetime
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import rappor
from rappor import Params, Report
from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import MAX_REPORTS, Batch, encode_batch
from support.collecting import (
    PARAMS,
    Client,
    batch,
    client_of,
    collector,
    day,
    gateway,
    planted_command,
    running,
    stored,
    write_collections,
)


def test_clients_with_other_clocks(tmp_path: Path) -> None:
    """The collector's date is set: midnight may pass meanwhile."""
    statuses = {-15: 422, -14: 204, -2: 204, 0: 204, 1: 204, 2: 422}
    with running(planted_command("none", tmp_path)) as process, client_of(process) as client:
        for offset, status in statuses.items():
            answer = client.send(batch(period=day(offset)))
            assert answer.status == status
            assert answer.code == (None if status == 204 else "period-closed")
    taken = [offset for offset, status in statuses.items() if status == 204]
    assert stored(tmp_path) == {(day(offset), ""): 1 for offset in taken}


@pytest.mark.parametrize(
    ("bug", "accepted"), [("clock-ahead", [-12, 0, 3]), ("clock-behind", [-16, -2, -1])]
)
def test_a_collector_with_another_clock(tmp_path: Path, bug: str, accepted: list[int]) -> None:
    offsets = range(-17, 5)
    with running(planted_command(bug, tmp_path)) as process, client_of(process) as client:
        answers = {offset: client.send(batch(period=day(offset))).status for offset in offsets}
    shift = 2 if bug == "clock-ahead" else -2
    assert answers == {offset: 204 if -14 <= offset - shift <= 1 else 422 for offset in offsets}
    assert all(answers[offset] == 204 for offset in accepted)


def test_many_writers_count_as_one_would(tmp_path: Path) -> None:
    write_collections(
        tmp_path, Collection("homepage", 1, PARAMS, dimensions={"os": ("mac", "win")})
    )
    dice = np.random.default_rng(1)
    cells = [(day(-i), (("os", name),)) for i in range(3) for name in ("mac", "other", "win")]
    batches: list[Batch] = []
    expected = {(period, f"os={pairs[0][1]}"): np.zeros((4, 16), int) for period, pairs in cells}
    for number in range(400):
        period, pairs = cells[number % len(cells)]
        rows = [
            Report(int(dice.integers(4)), int(dice.integers(2**16)))
            for _ in range(int(dice.integers(1, MAX_REPORTS + 1)))
        ]
        for cohort, bits in rows:
            expected[period, f"os={pairs[0][1]}"][cohort] += [bits >> i & 1 for i in range(16)]
        batches.append(batch(rows, period=period, dimensions=pairs))

    answers: list[int] = []
    with collector(tmp_path) as process:

        def send(part: list[Batch]) -> None:
            client = Client(process.port)
            for each in [*part, *part[::5]]:  # every fifth twice
                answers.append(client.send(each).status)
            client.close()

        senders = [threading.Thread(target=send, args=(batches[i::8],)) for i in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert answers == [204] * 480
        assert process.end() == 0
    store = open_store(tmp_path / "data", read_only=True)
    found = {
        (each.cell.period, each.cell.dimensions): each.ones for each in store.counts("homepage")
    }
    assert store.check() == []
    store.close()
    assert found.keys() == expected.keys()
    assert all((found[key] == expected[key]).all() for key in expected)


@pytest.mark.parametrize("reports", [200_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_reports_through_http_and_through_memory_are_the_same_counts(
    tmp_path: Path, reports: int
) -> None:
    params = Params.preset("chrome")
    write_collections(tmp_path, Collection("homepage", 1, params))
    packed = np.frombuffer(os.urandom(reports * 16), np.uint8).reshape(-1, 16)
    cohorts = (np.arange(reports) * 7 % params.m).astype("<u2")
    key, options = gateway(tmp_path)
    with collector(tmp_path, *options) as process, client_of(process, key) as client:
        for start in range(0, reports, 10_000):
            part = slice(start, start + 10_000)
            sent = Batch(
                os.urandom(16), "homepage", 1, day(), (), 128,
                cohorts[part].tobytes(), packed[part].tobytes(),
            )  # fmt: skip
            assert client.send(encode_batch(sent)).status == 204
        assert process.end() == 0
    direct = rappor.aggregate.count(packed, cohorts.astype(np.int64), params)
    store = open_store(tmp_path / "data", read_only=True)
    (found,) = store.counts("homepage")
    store.close()
    assert (found.totals == direct.totals).all()
    assert (found.ones == direct.ones).all()
    assert datetime.date.fromisoformat(found.cell.period)


@pytest.mark.parametrize(
    "wrong",
    [
        "clock-weeks-ahead",
        pytest.param("clock-ahead", marks=pytest.mark.long),
        pytest.param("clock-weeks-behind", marks=pytest.mark.long),
    ],
)
def test_a_clock_that_was_wrong_and_is_right_again_counts_nothing_twice(
    tmp_path: Path, wrong: str
) -> None:
    """While it is weeks ahead, retention forgets tokens; a replay of their batches must not count.

    The collector may refuse for a few days what it cannot know, and takes what is newer.
    """
    sent = {offset: batch(period=day(offset)) for offset in (-13, -7, -1, 0, 1)}
    statuses: list[list[int]] = []
    said: list[bool] = []
    for bug in ("none", wrong, "none", wrong):
        with running(planted_command(bug, tmp_path)) as process, client_of(process) as client:
            process.wait_for_event("retention")
            statuses.append([client.send(each).status for each in sent.values()])
            if bug == wrong == "clock-weeks-ahead":
                assert client.send(batch(period=day(20))).status == 204
            assert process.end() == 0
        said.append("clock-went-back" in process.events())
    assert statuses[0] == [204] * 5
    assert {status for each in statuses for status in each} <= {204, 422}
    counted = stored(tmp_path)
    assert {counted[day(offset), ""] for offset in sent} == {1}
    is_ahead = "ahead" in wrong
    assert said == [False, not is_ahead, is_ahead, not is_ahead]
