"""The roles of deploy/postgres/roles.sql do their work, and nothing else."""

from contextlib import closing

import psycopg
import pytest

from rappor.errors import StoreError, StoreRefused
from rappor.store import open_store
from support.postgres import ROLES, Server, run
from support.store_samples import DAY, always, cell, collection, everything, fill, fold, token

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store_url(postgres: Server) -> str:
    """A filled store with its roles."""
    url = postgres.new_store()
    with closing(open_store(url)) as store:
        fill(store)
    for _ in range(2):  # it may be run again
        run("psql", "--set", "ON_ERROR_STOP=1", url, text=ROLES.read_text())
    for login, group in (("c", "rappor_ingest"), ("d", "rappor_ingest"), ("a", "rappor_analysis")):
        postgres.sql(f"CREATE ROLE login_{login} LOGIN; GRANT {group} TO login_{login}")
    return url


def as_role(url: str, login: str) -> str:
    return url.replace("postgres@", f"login_{login}@")


def test_a_collector_adds_reports_and_recognises_replays(store_url: str) -> None:
    folds = always([fold(cell(), 0, [1], keep=True)])
    with (
        closing(open_store(as_role(store_url, "c"))) as one,
        closing(open_store(as_role(store_url, "d"))) as other,
        closing(open_store(store_url, read_only=True)) as reader,
    ):
        (before,) = [item for item in reader.cells() if item.cell == cell()]
        assert one.add([token(1), token(2)], folds, DAY) == [True, True]
        assert other.add([token(2), token(3)], folds, DAY) == [False, True]
        (after,) = [item for item in reader.cells() if item.cell == cell()]
        assert (after.reports, after.kept) == (before.reports + 2, before.kept + 2)
        assert reader.check() == []
        one.probe()


def test_a_collector_adds_many_batches_at_once(store_url: str) -> None:
    """One call of `rappor.add_batches`, under row security and the grants of the role."""
    folds = always([fold(cell(), 0, [1]), fold(cell(), 1, [2])])
    with (
        closing(open_store(as_role(store_url, "c"))) as one,
        closing(open_store(as_role(store_url, "d"))) as other,
        closing(open_store(store_url, read_only=True)) as reader,
    ):
        (before,) = [item for item in reader.cells() if item.cell == cell()]
        for store, first in ((one, 200), (other, 300)):
            assert not store._add_at_once([token(first)], folds, DAY)  # its rows do not exist yet
            assert store.add([token(first)], folds, DAY) == [True]
            many = [token(first + number) for number in range(1, 9)]
            assert store._add_at_once(many, folds, DAY)
            assert not store._add_at_once([token(first + 50), many[0]], folds, DAY)  # a replay
            assert store.add([token(first + 50), many[0]], folds, DAY) == [True, False]
        (after,) = [item for item in reader.cells() if item.cell == cell()]
        assert after.reports == before.reports + 2 * 3 * 2
        assert reader.check() == []


def test_a_collector_reads_its_own_rows_and_tokens_only(store_url: str) -> None:
    with closing(open_store(as_role(store_url, "c"))) as store:
        store.add([token(11)], always([fold(cell(), 0, [1])]), DAY)
        with store._session.maintaining() as connection:
            assert connection.execute("SELECT count(*) FROM rappor.cells").fetchone() == (1,)
            assert connection.execute("SELECT count(*) FROM rappor.counts").fetchone() == (1,)
            assert connection.execute("SELECT count(*) FROM rappor.writers").fetchone() == (1,)
            for table in ("reports", "audit", "imports", "released_cells", "released_counts"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"SELECT 1 FROM rappor.{table}".encode())
            for table in ("counts", "cells", "tokens", "writers", "definitions", "state"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"DELETE FROM rappor.{table}".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    "INSERT INTO rappor.counts (id, writer, data, checksum) VALUES (1, 0, '', '')"
                )
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT rappor.append_audit('', 'me', 'export', '')")


def test_a_collector_cannot_define_retain_or_read_the_audit_log(store_url: str) -> None:
    with closing(open_store(as_role(store_url, "c"))) as store:
        for change in (
            lambda: store.save_definition(collection(version=9).to_toml(), actor="c"),
            lambda: store.retain(DAY),
            lambda: store.audit("c", "export", ""),
            store.audit_log,
        ):
            with pytest.raises(StoreRefused):
                change()
        saved = store.definitions()
        assert not store.save_definition(saved[0].toml, actor="c")  # nothing new: no right needed


def test_an_analyst_reads_everything_but_tokens_and_writes_nothing(store_url: str) -> None:
    with (
        closing(open_store(store_url, read_only=True)) as owner,
        closing(open_store(as_role(store_url, "a"), read_only=True)) as store,
    ):
        assert everything(store) == everything(owner)
        assert store.released.cells(store, store.cells(), DAY)
        with (
            store._session.reading() as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("SELECT 1 FROM rappor.tokens")
    with closing(open_store(as_role(store_url, "a"))) as store:
        with pytest.raises(StoreError):
            store.add([token(21)], always([fold(cell(), 0, [1])]), DAY)
        with store._session.maintaining() as connection:
            for table in ("state", "counts", "cells", "reports", "released_counts", "audit"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"DELETE FROM rappor.{table}".encode())
