"""Nothing in a store tells the order in which reports came (R19)."""

import os
import random
import re
from pathlib import Path

import pytest

from rappor.store import open_store, report_order
from rappor.store.checksums import checksum, xor
from rappor.store.sqlite import cell_rows, page_layout, report_chunks, session
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
    big = fold(cell(), 0, [7] * report_order.FULL, keep=True)
    store.add([token(100)], always([big]), DAY)
    store.add([token(101)], always([fold(cell(), 0, [8], keep=True)]), DAY)
    sizes = sorted(row[0] for row in writer.execute("SELECT size FROM reports"))
    assert sizes == [31, report_order.FULL]
    store.close()


def pages_with_reports(folder: Path, seed: int) -> set[int]:
    """The kinds of pages that kept reports are on: 13 is a page of rows, 0 an overflow page."""
    rng = random.Random(seed)
    store = open_store(folder)
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    sent: set[int] = set()
    for number in range(60):
        reports = [rng.getrandbits(16) << 4 | 9 for _ in range(rng.choice([1, 2, 30, 400]))]
        sent.update(reports)
        folds = [fold(cell(), cohort, reports, keep=True) for cohort in range(4)]
        store.add([token(number)], always(folds), DAY)
    store.close()
    data = (folder / "store.sqlite").read_bytes()
    runs = re.compile(rb"(?:..[\x00-\x0f]){8}", re.DOTALL)  # 24 bytes that look like reports
    found = set()
    for start in range(4096, len(data), 4096):
        page = data[start : start + 4096]
        for run in runs.finditer(page):
            numbers = [int.from_bytes(run[0][at : at + 3], "little") for at in range(0, 24, 3)]
            if sent.issuperset(numbers):
                found.add(page[0])
    return found


@pytest.mark.slow
def test_kept_reports_are_on_pages_that_sqlite_never_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows move between pages, and leave copies of how they were then: nothing of a report is on
    such a page."""
    assert pages_with_reports(tmp_path / "padded", 1) == {0}
    monkeypatch.setattr(page_layout, "padded", lambda data: data)
    assert 13 in pages_with_reports(tmp_path / "plain", 1)


def test_kept_reports_of_an_older_store_are_mixed_when_it_is_opened(tmp_path: Path) -> None:
    """Chunks as they were once: the first full of early reports, the second of any size."""
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    early, late = list(range(1, 1025)), list(range(2000, 4000))
    store.add([token(1)], always([fold(cell(), 0, early + late, keep=True)]), DAY)
    with store._session.writing() as connection:
        found = cell_rows.find(connection, cell())
        assert found is not None
        report_chunks.remove(connection, found)
        for number, reports in enumerate((early, late)):
            fields = (number + 10**9, found.slot(0), len(reports), samples.packed(reports))
            seal = checksum("reports", *fields)
            connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?)", (*fields, seal))
            found.chunk_parity = xor(found.chunk_parity, seal)
        found.kept, found.chunks = len(early + late), 2
        found.save(connection)
        connection.execute("PRAGMA user_version=4")
    before = samples.everything(store)
    store.close()
    again = open_store(tmp_path)
    assert isinstance(again, SqliteStore)
    assert again.check() == []
    assert samples.everything(again) == before
    stored = again._session._writer.execute("SELECT size, data FROM reports").fetchall()
    assert sorted(size for size, _ in stored) == [3024 - 2048, 1024, 1024]
    for size, data in stored:
        body = data[page_layout.HIDDEN : page_layout.HIDDEN + size * 3]
        numbers = [int.from_bytes(body[at : at + 3], "little") for at in range(0, len(body), 3)]
        assert 0 < sum(number < 2000 for number in numbers) < size
    again.close()


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
