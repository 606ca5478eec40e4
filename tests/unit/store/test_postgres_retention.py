"""Retention in a database: erased for certain, by one process at a time, never by a wrong clock."""

import datetime
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rappor.errors import StoreBroken, StoreBusy, StoreError
from rappor.store import open_store, retention_rules
from rappor.store.cell_key import COHORT_BITS, cell_id
from rappor.store.postgres import connection, locks, report_chunks, retention, token_rows
from rappor.store.postgres.connection import Connection
from rappor.store.postgres.schema import MIGRATIONS, PostgresMigration
from rappor.store.postgres.store import PostgresStore
from rappor.store.sqlite.contents import contents_of
from support.postgres import Server
from support.store_samples import DAY, always, cell, collection, fold, token

pytestmark = pytest.mark.slow
LATER = DAY + datetime.timedelta(days=60)
MAX_DAYS_AHEAD = retention_rules.MAX_DAYS_AHEAD
BREAKING = PostgresMigration(
    ("ALTER TABLE rappor.state ADD COLUMN note text",), oldest=len(MIGRATIONS) + 1
)


@pytest.fixture
def url(postgres: Server) -> str:
    """A store with kept reports."""
    made = postgres.new_store()
    with closing(open_store(made)) as store:
        store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
        folds = always([fold(cell(), 0, [1, 2, 3], keep=True)])
        assert store.add([token(1)], folds, DAY) == [True]
    return made


class Files:
    """The files of tables: a table that is written again gets another one."""

    def __init__(self, server: Server, url: str, *tables: str) -> None:
        self.server, self.database = server, url.rpartition("/")[2]
        self.tables = tables
        self.before = self._now()

    def _now(self) -> dict[str, object]:
        query = "SELECT pg_relation_filenode('rappor.{}')"
        return {
            table: self.server.sql(query.format(table), self.database)[0][0]
            for table in self.tables
        }

    @property
    def written_again(self) -> set[str]:
        return {table for table, file in self._now().items() if file != self.before[table]}


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_a_killed_retention_did_not_erase_is_erased_by_the_next(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(postgres, url, "reports", "counts", "cells")
    with closing(open_store(url)) as store, monkeypatch.context() as patch:
        patch.setattr(retention, "rewrite", killed)  # after the commit
        with pytest.raises(KeyboardInterrupt):
            store.retain(LATER)
        assert [each.kept for each in store.cells()] == [0]
    assert files.written_again == set()
    with closing(open_store(url)) as store:
        done = store.retain(LATER)
    assert (done.reports, done.settled) == (0, True)  # nothing was left to plan
    assert files.written_again == {"reports"}


def test_a_reader_in_the_way_is_said_until_the_bytes_are_gone(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection._SETTINGS, "lock_timeout", "50ms")
    files = Files(postgres, url, "reports")
    with (
        closing(open_store(url)) as store,
        closing(open_store(url, read_only=True)) as reader,
    ):
        with reader._session.reading() as blocking:  # type: ignore[attr-defined]
            blocking.execute("SELECT count(*) FROM rappor.reports")
            assert not store.retain(LATER).settled
            assert not store.retain(LATER).settled
        assert files.written_again == set()
        assert store.retain(LATER).settled
    assert files.written_again == {"reports"}


def test_retention_runs_in_one_process_at_a_time(url: str) -> None:
    with closing(open_store(url)) as store, closing(open_store(url)) as other:
        with other._session.maintaining() as holding:  # type: ignore[attr-defined]
            holding.execute(f"SELECT pg_advisory_lock({locks.RETENTION})")
        with pytest.raises(StoreBusy, match="another process runs retention"):
            store.retain(LATER)
        assert [each.kept for each in store.cells()] == [3]
        with other._session.maintaining() as holding:  # type: ignore[attr-defined]
            holding.execute(f"SELECT pg_advisory_unlock({locks.RETENTION})")
        assert store.retain(LATER).reports == 3
        assert other.retain(LATER).reports == 0  # the lock was given back


def test_the_tokens_of_a_busy_day_are_estimated(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 20_000
    with closing(open_store(url)) as store:
        store.add([token(10 + each) for each in range(number)], always([]), DAY)
        assert store.retain(LATER, dry_run=True).tokens == number + 1
        monkeypatch.setattr(token_rows, "_EXACT_PAGES", 0)
        assert store.retain(LATER, dry_run=True).tokens == pytest.approx(number, rel=0.02)


ROWS = 5_000  # of other cells


@pytest.mark.parametrize("table", ["released_counts", "reports"])
def test_rows_of_a_cell_are_found_without_reading_those_of_others(url: str, table: str) -> None:
    """Retention holds a lock meanwhile. The server counts the rows that it reads."""
    number = cell_id(cell())
    rows = "SELECT n::bigint << %s, 0, '', '' FROM unnest(%s::bigint[]) AS cells(n)"
    with closing(open_store(url)) as store, store._session.writing() as using:  # type: ignore[attr-defined]
        cells = [*range(1, ROWS), number, number + 1]
        using.execute(
            f"INSERT INTO rappor.{table} {rows} ON CONFLICT DO NOTHING", (COHORT_BITS, cells)
        )
        before = rows_read(using, table)
        if table == "reports":
            report_chunks.remove(using, [number])
        else:
            using.execute("SELECT rappor.forget_released(%s::bigint[])", ([number],))
        assert rows_read(using, table) - before < ROWS // 10
        left = using.execute(f"SELECT count(*) FROM rappor.{table}").fetchone()
        assert left == (ROWS,)


def rows_read(using: Connection, table: str) -> int:
    """The rows of a table that this transaction has read."""
    query = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s"
    row = using.execute(query, (table,)).fetchone()
    return 0 if row is None else int(row[0])


# A wrong clock.


def test_retention_days_ahead_of_the_server_is_refused_whole(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_rules, "MAX_DAYS_AHEAD", MAX_DAYS_AHEAD)
    with closing(open_store(url)) as store:
        today = store.server_day()
        assert today is not None
        wrong = today + datetime.timedelta(days=MAX_DAYS_AHEAD + 1)
        with pytest.raises(StoreError, match=f"retention as of {wrong} is refused"):
            store.retain(wrong)
        assert store.retain(wrong, dry_run=True).dry_run
        database = url.rpartition("/")[2]
        assert postgres.sql("SELECT retained FROM rappor.state", database) == [(0,)]
        assert [entry.action for entry in store.audit_log()] == ["define"]
        store.retain(today + datetime.timedelta(days=MAX_DAYS_AHEAD))


# A newer schema.

Change = Callable[[PostgresStore], object]


def load_backup(store: PostgresStore, backup: Path) -> None:
    with contents_of(backup) as contents:
        store.load(contents)


@pytest.mark.parametrize("name", ["retain", "settle", "define", "audit", "load"])
def test_a_process_of_an_older_version_changes_nothing(
    postgres: Server, url: str, tmp_path: Path, name: str
) -> None:
    backup = tmp_path / "backup"
    with closing(open_store(url)) as store:
        store.backup(backup)
    if name == "load":
        url = postgres.new_store()
    changes: dict[str, Change] = {
        "retain": lambda old: old.retain(LATER),
        "settle": lambda old: old.settle(),
        "define": lambda old: old.save_definition(collection(version=2).to_toml(), actor="ann"),
        "audit": lambda old: old.audit("ann", "export", "homepage"),
        "load": lambda old: load_backup(old, backup),
    }
    gone = PostgresStore(url)
    if name == "settle":  # which has something to do then
        gone.add([token(2)], always([fold(cell(), 0, [1], keep=True)]), DAY)
        gone._session.close()
    gone.close()
    with closing(PostgresStore(url)) as old:
        before = rows(postgres, url)
        with closing(PostgresStore(url, migrations=(*MIGRATIONS, BREAKING))):
            pass
        with pytest.raises(StoreBroken, match="written by a newer rappor"):
            changes[name](old)
        assert rows(postgres, url) == before


def rows(server: Server, url: str) -> list[Sequence[object]]:
    """How many rows there are of what the changes change."""
    names = ("definitions", "audit", "writers", "reports", "cells")
    query = ", ".join(f"(SELECT count(*) FROM rappor.{name})" for name in names)
    return list(server.sql(f"SELECT {query}", url.rpartition("/")[2]))
