"""Nothing in a store tells the order in which reports came (R19)."""

import os
from pathlib import Path

import pytest

from rappor.store import open_store
from rappor.store.sqlite import chunks, session
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.store_samples import DAY, PERIOD, always, cell, collection, fold, token

OLD = "2026-11-01"


@pytest.mark.slow
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
