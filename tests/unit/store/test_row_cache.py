"""The cached rows of a process are those in the store, even if others write."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from pathlib import Path

import pytest

from rappor.errors import StoreError
from rappor.store import open_store
from rappor.store.sqlite import row_cache
from rappor.store.sqlite.row_cache import RowCache
from rappor.store.sqlite.store import SqliteStore
from support.store_samples import DAY, PERIOD, always, cell, collection, fold

COUNTRIES = ("NZ", "CH", "other")


def totals(store: SqliteStore) -> Counter[tuple[str, int]]:
    """How many reports each cell and cohort has; the ones, which follow from them, are checked."""
    found: Counter[tuple[str, int]] = Counter()
    for each in store.counts("homepage"):
        for cohort, number in enumerate(each.totals):
            if number:
                found[each.cell.dimensions, cohort] += int(number)
    return found


def live(folder: Path, seed: int, steps: int = 80) -> None:
    """Two writers in turns, imports, failures, retention; both agree with the model all along."""
    rng = random.Random(seed)
    one = open_store(folder)
    assert isinstance(one, SqliteStore)
    one.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    other = open_store(folder)
    assert isinstance(other, SqliteStore)
    model: Counter[tuple[str, int]] = Counter()
    for number in range(steps):
        store = rng.choice((one, one, one, other))
        place = cell(PERIOD, rng.choice(COUNTRIES))
        folds = [
            fold(place, cohort, [number] * rng.randint(1, 3), keep=rng.random() < 0.5)
            for cohort in rng.sample(range(4), rng.randint(1, 4))
        ]
        match rng.choice(("add", "add", "add", "file", "fail", "retain", "settle")):
            case "add":
                assert store.add([rng.randbytes(16)], always(folds), DAY) == [True]
            case "file":
                assert store.add_file(rng.randbytes(32), folds, actor="ann", detail="a file")
            case "fail":
                bad = fold(cell(PERIOD, "NZ"), 4, [1])  # there is no such cohort
                with pytest.raises(StoreError, match="cohort must be"):
                    store.add([rng.randbytes(16)], always([*folds, bad]), DAY)
                continue
            case "retain":
                store.retain(DAY + datetime.timedelta(days=rng.choice((0, 10))))
                continue
            case "settle":
                store.settle()
                continue
        for each in folds:
            model[place.dimensions, each.cohort] += each.total
        assert totals(one) == totals(other) == model
    assert one.check() == other.check() == []
    one.close()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]
)
@pytest.mark.parametrize("most", [0, 300, row_cache.MAX_BYTES], ids="{} bytes".format)
def test_what_is_remembered_is_what_is_there(
    tmp_path: Path, seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_cache, "MAX_BYTES", most)
    live(tmp_path, seed)


def test_a_store_that_does_not_forget_what_others_change_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowCache, "forget", lambda self: None)
    with pytest.raises((AssertionError, StoreError)):
        live(tmp_path, 1)


def test_what_is_remembered_is_not_read_again(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    store.save_definition(collection().to_toml(), actor="ann")
    folds = always([fold(cell(), cohort, [1, 2]) for cohort in range(4)])
    store.add([bytes(16)], folds, DAY)
    asked: list[str] = []
    store._session._writer.set_trace_callback(asked.append)  # type: ignore[attr-defined]
    store.add([b"1" * 16], folds, DAY)
    assert [
        each
        for each in asked
        if each.startswith("SELECT") and ("FROM cells" in each or "FROM counts" in each)
    ] == []
    assert any("INTO counts" in each for each in asked)
    store.close()
