"""What retention removes is gone from every byte on the disk (R19, R63)."""

import datetime
import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rappor.params import Params
from rappor.store import CellKey, Fold, Store, open_store
from rappor.store.sqlite import store as stores
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.store_samples import DAY, PERIOD, always, cell, collection, token

OLD = "2026-11-01"


def files(folder: Path) -> bytes:
    """Every byte of the store, its log and the log's index."""
    return b"|".join(path.read_bytes() for path in sorted(folder.iterdir()))


def marked(store: Store, seed: int, batches: int = 400) -> tuple[set[bytes], set[bytes]]:
    """Fill a store with reports of 16 random bytes, half of them old: those, and the others."""
    rng = random.Random(seed)
    old: set[bytes] = set()
    new: set[bytes] = set()
    store.save_definition(wide().to_toml(), actor="ann")
    for _ in range(batches):
        is_old = rng.random() < 0.5
        reports = [rng.randbytes(16) for _ in range(rng.choice([1, 1, 2, 5, 30, 300]))]
        (old if is_old else new).update(reports)
        key = CellKey("wide", 1, OLD if is_old else PERIOD)
        ones = np.zeros(128, np.int64)
        part = Fold(key, rng.randrange(8), WIDE.digest, len(reports), ones, b"".join(reports))
        store.add([rng.randbytes(16)], always([part]), DAY)
    return old, new


WIDE = Params(k=128, h=2, m=8, f=0.5, p=0.5, q=0.75)


def wide() -> samples.Collection:
    about = collection(keep_reports_days=7)
    return samples.Collection(
        "wide", 1, WIDE, owner=about.owner, expires=about.expires, keep_reports_days=7
    )


def there(reports: set[bytes], data: bytes) -> int:
    """How many of the reports have either half of them somewhere in the data."""
    halves = np.frombuffer(b"".join(sorted(reports)), "<u8").reshape(-1, 2)
    begins = np.zeros(2**24, bool)  # the first three bytes of a half: few places have them
    begins[halves & np.uint64(0xFFFFFF)] = True
    each = np.frombuffer(data, np.uint8)
    first = each[:-7].astype(np.uint32)
    first |= each[1:-6].astype(np.uint32) << np.uint32(8)
    first |= each[2:-5].astype(np.uint32) << np.uint32(16)
    places = np.flatnonzero(begins[first])
    windows = each[places[:, None] + np.arange(8)].view("<u8").ravel()
    return int(np.isin(halves, windows).any(axis=1).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)]
)
def test_expired_reports_are_gone_from_database_and_log(tmp_path: Path, seed: int) -> None:
    store = open_store(tmp_path)
    old, new = marked(store, seed)
    before = files(tmp_path)
    assert there(old, before) == len(old)  # the search finds what is there
    done = store.retain(DAY)
    assert done.settled
    assert done.reports == len(old) > 1000
    after = files(tmp_path)
    assert there(old, after) == 0
    assert there(new, after) == len(new)
    assert store.check() == []
    store.close()


@pytest.mark.slow
def test_without_secure_delete_the_bytes_would_stay(tmp_path: Path) -> None:
    """The test before this one can fail."""
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    old, _ = marked(store, 1)
    store._session._writer.execute("PRAGMA secure_delete=OFF").fetchall()
    store.retain(DAY)
    assert there(old, files(tmp_path)) > 100
    store.close()


def left_in_unused_parts(folder: Path, seed: int) -> int:
    """Small chunks, many to a page, are moved between pages as they grow: what retention leaves."""
    rng = random.Random(seed)
    store = open_store(folder)
    store.save_definition(wide().to_toml(), actor="ann")
    old: set[bytes] = set()
    for _ in range(40):
        folds = []
        for cohort in range(8):
            period = rng.choice([OLD, PERIOD])
            reports = [rng.randbytes(16) for _ in range(rng.choice([1, 2, 5]))]
            old.update(reports if period == OLD else [])
            ones = np.zeros(128, np.int64)
            key = CellKey("wide", 1, period)
            folds.append(Fold(key, cohort, WIDE.digest, len(reports), ones, b"".join(reports)))
        store.add([rng.randbytes(16)], always(folds), DAY)
    kept = sum(each.kept for each in store.cells())
    assert store.retain(DAY).settled
    assert store.check() == []
    assert sum(each.kept for each in store.cells()) == kept - len(old)
    found = there(old, files(folder))
    store.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stores_made", [3, pytest.param(60, marks=pytest.mark.long)])
def test_no_copy_of_an_expired_report_is_left_in_the_unused_part_of_a_page(
    tmp_path: Path, stores_made: int
) -> None:
    """That they could is shown by test_arrival_order.py: rows are written onto other pages."""
    seeds = range(stores_made)
    assert [left_in_unused_parts(tmp_path / str(seed), seed) for seed in seeds] == [0] * len(seeds)


def test_an_expired_collection_leaves_its_definition_and_nothing_else(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    soon = DAY + datetime.timedelta(days=1)
    store.save_definition(collection("brief", expires=soon).to_toml(), actor="ann")
    rng = random.Random(1)
    totals = set()
    for number in range(40):
        total = rng.getrandbits(60)
        totals.add(total.to_bytes(8, "little"))
        ones = np.full(20, total // 3)
        key = cell(country=["NZ", "CH", "other"][number % 3], name="brief")
        part = Fold(key, number % 4, samples.PARAMS.digest, total, ones)
        if number < 12:  # a cohort each: its total stands there as it is
            store.add([token(number)], always([part]), DAY)
    store.settle()
    assert sum(each in files(tmp_path) for each in totals) == 12
    done = store.retain(soon)
    assert len(done.count_cells) == 3
    assert sum(each in files(tmp_path) for each in totals) == 0
    assert [each.collection for each in store.definitions()] == ["brief"]
    assert store.check() == []
    store.close()


def test_counts_that_are_to_stay_after_the_end_stay_and_single_reports_go(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    soon = DAY + datetime.timedelta(days=1)
    about = collection("brief", expires=soon, on_expiry="keep-counts", keep_reports_days=300)
    store.save_definition(about.to_toml(), actor="ann")
    fold = samples.fold(cell(name="brief"), 1, [5, 6, 7], keep=True)
    store.add([token(1)], always([fold]), DAY)
    before = store.counts("brief")[0].ones.tolist()
    assert store.retain(DAY).reports == 0
    done = store.retain(soon)
    assert (done.reports, done.counted, done.count_cells) == (3, 0, ())
    assert [(each.reports, each.kept) for each in store.cells()] == [(3, 0)]
    assert store.counts("brief")[0].ones.tolist() == before
    assert store.check() == []
    store.close()


@pytest.mark.slow
def test_forgotten_tokens_are_gone(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    rng = random.Random(1)
    tokens = [rng.randbytes(16) for _ in range(500)]
    store.add(tokens, lambda _: [], DAY)
    store.settle()
    assert all(each in files(tmp_path) for each in tokens)
    assert store.retain(DAY + datetime.timedelta(days=19)).tokens == 500
    assert not any(each in files(tmp_path) for each in tokens)
    store.close()


def test_a_reader_in_the_way_is_said_and_the_next_settling_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_PATIENCE_MS", 1)  # the reader stays, however long one waits
    store = open_store(tmp_path)
    old, _ = marked(store, 1, batches=40)
    reader = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM cells").fetchone()
    assert not store.retain(DAY).settled
    reader.close()
    store.settle()
    assert there(old, files(tmp_path)) == 0
    store.close()


def test_a_planted_report_is_in_no_file_after_its_days(tmp_path: Path) -> None:
    """Sixteen bytes that stand out, in a chunk that is mixed again and again, over two periods."""
    params = Params(k=128, h=2, m=2, f=0.5, p=0.5, q=0.75)
    made = replace(collection(keep_reports_days=1, dimensions={}), params=params)
    pattern = bytes.fromhex("deadbeefcafef00d0123456789abcdef")
    store = open_store(tmp_path)
    store.save_definition(made.to_toml(), actor="ann")
    rng = random.Random(3)
    for number in range(60):
        period = "2026-11-10" if number < 50 else "2026-11-16"
        reports = [rng.randbytes(16) for _ in range(rng.choice([1, 40, 900]))]
        if number % 7 == 0 and number < 50:
            reports.append(pattern)
        bits = np.unpackbits(
            np.frombuffer(b"".join(reports), np.uint8).reshape(-1, 16), axis=1, bitorder="little"
        )
        key = CellKey(made.name, made.version, period)
        one = Fold(
            key,
            number % 2,
            params.digest,
            len(reports),
            bits.sum(axis=0, dtype=np.int64),
            b"".join(reports),
        )
        store.add([rng.randbytes(16)], always([one]), DAY)
        if number % 9 == 0:
            store.settle()

    def hits() -> list[str]:
        return [file.name for file in tmp_path.iterdir() if pattern in file.read_bytes()]

    assert hits()
    done = store.retain(DAY)
    assert done.settled
    assert done.reports > 0
    assert hits() == []
    assert sum(each.kept for each in store.cells()) > 0
    store.close()
    assert hits() == []
