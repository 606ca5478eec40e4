"""What is removed is gone from the disk, and nothing tells the order in which things came (R19)."""

import datetime
import os
import random
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from rappor.store import Store, open_store
from rappor.store.sqlite import chunks, retention, session
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.store_samples import DAY, PERIOD, always, cell, collection, fold, token

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
        key = samples.CellKey("wide", 1, OLD if is_old else PERIOD)
        ones = np.zeros(128, np.int64)
        part = samples.Fold(
            key, rng.randrange(8), WIDE.digest, len(reports), ones, b"".join(reports)
        )
        store.add([rng.randbytes(16)], always([part]), DAY)
    return old, new


WIDE = samples.Params(k=128, h=2, m=8, f=0.5, p=0.5, q=0.75)


def wide() -> samples.Collection:
    about = collection(keep_reports_days=7)
    return samples.Collection(
        "wide", 1, WIDE, owner=about.owner, expires=about.expires, keep_reports_days=7
    )


def there(reports: set[bytes], data: bytes) -> int:
    """How many of the reports have either half of them somewhere in the data."""
    every = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), 8)
    windows = np.ascontiguousarray(every).view(np.uint64).ravel()
    halves = np.frombuffer(b"".join(sorted(reports)), np.uint64).reshape(-1, 2)
    return int(np.isin(halves, windows).any(axis=1).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
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
    """Small chunks, many to a page, are shared out anew as they grow: what retention leaves."""
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
            key = samples.CellKey("wide", 1, period)
            folds.append(
                samples.Fold(key, cohort, WIDE.digest, len(reports), ones, b"".join(reports))
            )
        store.add([rng.randbytes(16)], always(folds), DAY)
    kept = sum(each.kept for each in store.cells())
    assert store.retain(DAY).settled
    assert store.check() == []
    assert sum(each.kept for each in store.cells()) == kept - len(old)
    found = there(old, files(folder))
    store.close()
    return found


def test_no_copy_of_an_expired_report_is_left_in_the_unused_part_of_a_page(tmp_path: Path) -> None:
    assert [left_in_unused_parts(tmp_path / str(seed), seed) for seed in range(4)] == [0] * 4


def test_deleting_rows_alone_would_leave_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test before this one can fail."""
    monkeypatch.setattr(retention, "_rewrite", lambda *_: None)
    assert any(left_in_unused_parts(tmp_path / str(seed), seed) for seed in range(30))


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
        part = samples.Fold(key, number % 4, samples.PARAMS.digest, total, ones)
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


def test_a_reader_in_the_way_is_said_and_the_next_settling_does_it(tmp_path: Path) -> None:
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


# Order.


def test_settling_empties_the_log(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    samples.fill(store)
    log = tmp_path / "store.sqlite-wal"
    assert log.stat().st_size > 0
    store.settle()
    assert log.stat().st_size == 0
    store.close()


def test_the_log_is_emptied_when_it_is_long_or_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LOG_BYTES", 2**20)
    monkeypatch.setattr(session, "LOG_SECONDS", 0.0)
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    log = tmp_path / "store.sqlite-wal"
    store.add([token(1)], always([fold(cell(), 0, [1])]), DAY)
    assert log.stat().st_size == 0
    monkeypatch.setattr(session, "LOG_SECONDS", 1e9)
    most = 0
    for number in range(2, 200):
        store.add([token(number)], always([fold(cell(), 0, [1])]), DAY)
        most = max(most, log.stat().st_size)
    assert 2**19 < most < 2**20 + 2**17
    store.close()


def test_under_load_the_log_keeps_its_length_and_nothing_older_than_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "FOLD_COMMITS", 10)
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    log = tmp_path / "store.sqlite-wal"
    sizes = []
    for number in range(100):
        store.add([token(number)], always([fold(cell(), 0, [1])]), DAY)
        sizes.append(log.stat().st_size)
    assert max(sizes[50:]) == min(sizes[50:]) < 30 * 2**12 * 10
    store.settle()
    assert log.stat().st_size == 0
    store.close()


def test_small_batches_are_mixed_into_one_chunk(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    for number in range(30):
        store.add([token(number)], always([fold(cell(), 0, [number], keep=True)]), DAY)
    writer = store._session._writer
    sizes = [row[0] for row in writer.execute("SELECT size FROM reports")]
    assert sizes == [30]
    big = fold(cell(), 0, [7] * chunks.FULL, keep=True)
    store.add([token(100)], always([big]), DAY)
    store.add([token(101)], always([fold(cell(), 0, [8], keep=True)]), DAY)
    sizes = sorted(row[0] for row in writer.execute("SELECT size FROM reports"))
    assert sizes == [1, 30 + chunks.FULL]
    store.close()


def test_no_table_beside_the_audit_log_counts_upwards(tmp_path: Path) -> None:
    """Numbers of cells are hashes, numbers of chunks random: neither tells who came first."""
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    order = [(period, country) for period in (PERIOD, OLD) for country in ("NZ", "CH", "other")]
    for number, (period, country) in enumerate(order):
        store.add(
            [os.urandom(16)],
            always([fold(cell(period, country), j, [number], keep=True) for j in range(4)]),
            DAY,
        )
    writer = store._session._writer
    schema = " ".join(row[0] or "" for row in writer.execute("SELECT sql FROM sqlite_schema"))
    assert "AUTOINCREMENT" not in schema
    for table in ("cells", "reports"):
        ids = [row[0] for row in writer.execute(f"SELECT id FROM {table}")]
        assert min(ids) > 10**6
    columns = {row[1] for row in writer.execute("PRAGMA table_info(tokens)")}
    assert columns == {"token", "day"}
    store.close()
