"""Released counts: open periods go up in steps, closed ones are exact, none outlives its data."""

import datetime
import os
import random
import sqlite3
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from rappor.errors import StoreError
from rappor.store import CellKey, Store, open_store
from rappor.store.released import FILE_NAME, STEP, ReleasedCounts, is_closed
from support.store_samples import DAY, PERIOD, cell, collection, fold

LAST_OPEN = DAY + datetime.timedelta(days=15)
CLOSED = DAY + datetime.timedelta(days=16)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = open_store(tmp_path)
    found.save_definition(collection().to_toml(), actor="test")
    return found


def arrive(store: Store, key: CellKey, reports: int = 1) -> None:
    rng = random.Random(reports)
    given = [rng.getrandbits(20) for _ in range(reports)]
    store.add([os.urandom(16)], lambda _: [fold(key, rng.randrange(4), given)], DAY)


def shown(folder: Path, store: Store, today: datetime.date = DAY) -> dict[CellKey, int]:
    return {
        each.cell: each.reports
        for each in ReleasedCounts(folder).cells(store, store.cells(), today)
    }


def counted(folder: Path, store: Store, today: datetime.date = DAY) -> dict[CellKey, list[int]]:
    found = ReleasedCounts(folder).counts(store, today, "homepage", 1)
    return {each.cell: [*each.totals.tolist(), *each.ones.ravel().tolist()] for each in found}


def test_arrivals_one_by_one_never_show_a_difference_below_a_step(
    tmp_path: Path, store: Store
) -> None:
    states: dict[CellKey, list[tuple[int, tuple[int, ...]]]] = {}
    rng = random.Random(7)
    keys = [cell(), cell(country="CH")]
    for _ in range(3 * STEP):
        arrive(store, rng.choice(keys))
        summaries, counts = shown(tmp_path, store), counted(tmp_path, store)
        assert set(summaries) == set(counts)
        for key in keys:
            numbers = tuple(counts.get(key, ()))
            assert sum(numbers[:4]) == summaries.get(key, 0)
            states.setdefault(key, []).append((summaries.get(key, 0), numbers))
    for seen in states.values():
        different = set(seen)
        reports = sorted(number for number, _ in different)
        assert len(different) == len(set(reports)) > 1  # a number of reports has one set of counts
        assert all(b - a >= STEP for a, b in pairwise(reports))


def test_a_closed_period_is_exact_and_the_last_open_day_is_not(
    tmp_path: Path, store: Store
) -> None:
    arrive(store, cell(), STEP)
    assert shown(tmp_path, store) == {cell(): STEP}
    arrive(store, cell(), 7)
    arrive(store, cell(country="CH"), 3)
    assert shown(tmp_path, store, LAST_OPEN) == {cell(): STEP}
    assert shown(tmp_path, store, CLOSED) == {cell(): STEP + 7, cell(country="CH"): 3}
    (exact,) = (each for each in store.counts("homepage") if each.cell == cell())
    assert counted(tmp_path, store, CLOSED)[cell()][:4] == exact.totals.tolist()


def test_a_period_stays_open_as_long_as_the_collector_accepts_it() -> None:
    from rappor.collection.acceptance import is_open

    day = datetime.timedelta(days=1)
    for period in (PERIOD, "2026-W47"):
        for number in range(40):
            today = DAY + number * day
            assert not (is_open(period, today) and is_closed(period, today))
    assert not is_closed("no period", DAY)


def test_two_processes_that_release_at_once_agree(tmp_path: Path, store: Store) -> None:
    arrive(store, cell(), STEP + 3)
    found: list[dict[CellKey, int]] = []

    def look() -> None:
        other = open_store(tmp_path, read_only=True)
        live = other.cells()
        arrive(store, cell())
        ReleasedCounts(tmp_path).cells(other, live, DAY)
        found.append(shown(tmp_path, other))
        other.close()

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(found) == 6
    assert len({each[cell()] for each in found}) == 1


def test_retention_deletes_snapshots_with_the_counts(tmp_path: Path, store: Store) -> None:
    other = collection("gone", expires=DAY + datetime.timedelta(days=3))
    store.save_definition(other.to_toml(), actor="test")
    arrive(store, cell(), STEP)
    arrive(store, cell(name="gone"), STEP)
    assert len(shown(tmp_path, store)) == 2
    store.retain(DAY + datetime.timedelta(days=3))
    with sqlite3.connect(tmp_path / FILE_NAME) as file:
        rows = file.execute("SELECT collection FROM released").fetchall()
    file.close()
    assert rows == [("homepage",)]


def test_a_dashboard_deletes_snapshots_of_cells_that_are_gone_or_long_closed(
    tmp_path: Path, store: Store
) -> None:
    arrive(store, cell(), STEP)
    shown(tmp_path, store)
    ReleasedCounts(tmp_path).cells(store, [], DAY)
    assert ReleasedCounts(tmp_path)._saved.reports() == {}
    shown(tmp_path, store)
    shown(tmp_path, store, CLOSED + datetime.timedelta(days=3))
    assert ReleasedCounts(tmp_path)._saved.reports() == {}


def test_a_damaged_snapshot_is_an_error_and_never_a_number(tmp_path: Path, store: Store) -> None:
    arrive(store, cell(), STEP)
    shown(tmp_path, store)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(tmp_path / FILE_NAME) as file:
        file.execute("UPDATE released SET data = zeroblob(length(data))")
    file.close()
    with pytest.raises(StoreError, match="released counts are damaged"):
        counted(tmp_path, store)
