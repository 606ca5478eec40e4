"""Collectors on PostgreSQL: clocks (B7), full disks (B3), migrations (B8), a server that stops."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

import psycopg
import pytest

from rappor.collection import Collection
from rappor.collector.process import RETAINED
from rappor.errors import StoreBroken, StoreRefused
from rappor.host import LOOPBACK
from rappor.store import open_store
from rappor.store.postgres import schema
from rappor.store.postgres.connection import connect
from rappor.store.postgres.schema import MIGRATIONS, PostgresMigration
from rappor.store.postgres.store import PostgresStore
from support.collecting import (
    PARAMS,
    Client,
    Process,
    batch,
    client_of,
    day,
    running,
    write_collections,
)
from support.command import COMMAND, rappor
from support.killing import CELLS, message_of
from support.postgres import Server, a_server, run
from support.postgres_faults import FaultyCluster
from support.store_samples import DAY, always, cell, collection, everything, fill, fold, token
from support.waiting import wait_for

pytestmark = pytest.mark.slow
WRITERS = COHORTS = 4
NEXT = len(MIGRATIONS) + 1
COLUMN = PostgresMigration(("ALTER TABLE rappor.state ADD COLUMN note text",), oldest=1)
BREAKING = PostgresMigration(("ALTER TABLE rappor.state ADD COLUMN note text",), oldest=NEXT)
# A trigger that fails as the server does when its disk is full or broken (SQLSTATE).
FAULT = """
CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{code}'; END $$;
CREATE TRIGGER fault BEFORE INSERT OR UPDATE ON rappor.counts EXECUTE FUNCTION public.fail()
"""
MEND = "DROP TRIGGER fault ON rappor.counts; DROP FUNCTION public.fail()"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_server(deadlock_timeout="10ms", log_lock_waits="on") as made:
        yield made


def command(url: str, folder: Path) -> list[str | Path]:
    """A collector on a database."""
    collections = write_collections(folder, Collection("homepage", 1, PARAMS))
    options = ["--store", url, "--collections", collections, "--port", "0"]
    return [*COMMAND, "collect", *options]


@contextmanager
def collecting(server: Server, folder: Path) -> Iterator[tuple[Process, Client, str]]:
    """A collector on a new database; and the database's name."""
    url = server.new_store()
    with running(command(url, folder)) as process:
        client = Client(process.port)
        try:
            yield process, client, url.rpartition("/")[2]
        finally:
            client.close()


def reports_in(url: str, name: str = "homepage") -> dict[str, int]:
    with closing(open_store(url, read_only=True)) as store:
        assert store.check() == []
        return {each.cell.period: each.reports for each in store.counts(name)}


# Clocks, and many writers at once.


@pytest.mark.long
def test_collectors_whose_clocks_differ_count_a_batch_once(server: Server, tmp_path: Path) -> None:
    cluster = FaultyCluster.start(server, tmp_path)
    try:
        for days_off in (-2, 2):
            cluster.collectors.start(1, days_off)
        taken = 0
        for number in range(60):  # connections are spread over all collectors
            yesterday = number % 2  # whose period all of them accept
            sent = message_of(CELLS * yesterday + number)
            clients = [Client(cluster.collectors.port) for _ in range(3)]
            found = {client.deliver(sent).status for client in clients}
            for client in clients:
                client.close()
            assert found <= ({204} if yesterday else {204, 422})
            taken += 204 in found
        assert sum(reports_in(cluster.url, "kill").values()) == taken
    finally:
        cluster.close()


@pytest.mark.long
def test_a_collector_whose_clock_is_weeks_ahead_deletes_nothing(
    server: Server, tmp_path: Path
) -> None:
    cluster = FaultyCluster.start(server, tmp_path)
    try:
        cluster.collectors.start(1, days_off=30)
        cluster.collectors.process.wait_for_event("clock-leapt")
        query = "SELECT retained FROM rappor.state"
        ((retained,),) = server.sql(query, cluster.database)
        assert int(str(retained)) <= date.fromisoformat(day()).toordinal() + 1
        with closing(open_store(cluster.url, read_only=True)) as store:
            noted = [entry.detail for entry in store.audit_log() if entry.action == RETAINED]
        assert noted == [day()] * len(noted)
        client = Client(cluster.collectors.port)
        answers = {client.deliver(message_of(CELLS + number)).status for number in range(5)}
        client.close()
        assert answers <= {204, 422}  # which of the collectors answers is chance
    finally:
        cluster.close()


def test_writers_at_once_are_as_if_serial_and_wait_for_no_row(server: Server) -> None:
    url = server.new_store()
    with closing(open_store(url)) as store:
        store.save_definition(collection().to_toml(), actor="test")
    groups, waits = 40, []
    over = threading.Event()

    def look() -> None:
        query = (  # not of the lock of a new day of tokens, which is waited for once
            "SELECT query FROM pg_stat_activity WHERE wait_event IN ('tuple', 'transactionid')"
        )
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set():
                waits.extend(connection.execute(query).fetchall())

    def write(writer: int) -> None:
        with closing(open_store(url)) as store:
            for number in range(groups):
                names = [token(10_000 * writer + 10 * number + each) for each in range(5)]
                folds = always([fold(cell(), cohort, [writer]) for cohort in range(COHORTS)])
                assert store.add(names, folds, DAY) == [True] * 5

    watching = threading.Thread(target=look)
    watching.start()
    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    watching.join()
    assert waits == []
    with closing(open_store(url, read_only=True)) as store:
        (found,) = store.counts("homepage")
        assert found.totals.tolist() == [WRITERS * groups] * COHORTS
        assert store.check() == []


# The server's disk, and a server that is down.


def test_a_full_disk_of_the_server_is_waited_out_in_place(server: Server, tmp_path: Path) -> None:
    with collecting(server, tmp_path) as (process, client, database):
        assert client.deliver(batch()).status == 204
        server.sql(FAULT.format(code="53100"), database)
        answer = client.send(batch())
        assert (answer.status, answer.code) == (507, "store-full")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/healthz").json == {"status": "disk full"}
        server.sql(MEND, database)
        wait_for(lambda: client.get("/readyz").status == 200, "a collector that has recovered")
        assert client.deliver(batch()).status == 204
        assert process.end() == 0
    assert reports_in(server.url(database)) == {day(): 2}


def test_a_broken_disk_of_the_server_acknowledges_nothing(server: Server, tmp_path: Path) -> None:
    with collecting(server, tmp_path) as (process, client, database):
        server.sql(FAULT.format(code="58030"), database)
        answer = client.send(batch())
        assert (answer.status, answer.code) == (503, "store-unavailable")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/readyz").status == 503
        server.sql(MEND, database)
        wait_for(lambda: client.get("/readyz").status == 200, "a collector that has recovered")
        assert client.deliver(batch()).status == 204
        assert process.end() == 0
    assert reports_in(server.url(database)) == {day(): 1}


def test_a_server_that_is_down_is_said_and_waited_out(server: Server, tmp_path: Path) -> None:
    with collecting(server, tmp_path) as (process, client, database):
        kept = batch()
        assert client.deliver(kept).status == 204
        server.stop()
        try:
            answer = wait_for(
                lambda: refused(client, kept), "an answer that says that the database is away"
            )
            assert (answer[0], answer[1] > 0) == ("store-unavailable", True)
            assert client.get("/readyz").status == 503
            assert client.get("/healthz").status == 200  # a restart would not help
        finally:
            server.start()
        wait_for(lambda: client.get("/readyz").status == 200, "a collector that has recovered")
        assert client.deliver(kept).status == 204  # recognised by its token
        assert client.deliver(batch()).status == 204
        assert process.end() == 0
    assert reports_in(server.url(database)) == {day(): 2}


def test_a_collector_that_starts_while_the_server_is_down_waits_for_it(
    server: Server, tmp_path: Path
) -> None:
    """If it ended, those that start it would do so ever more slowly, or give up."""
    url = server.new_store()
    server.stop()
    process, gives_up = Process(command(url, tmp_path)), Process(command(url, tmp_path))
    try:
        for each in (process, gives_up):
            assert (
                "the database cannot be reached" in each.wait_for_event("store-unreachable")["text"]
            )
        assert gives_up.end() == 0
        assert "listening" not in process.events()
        server.start()
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.deliver(batch()).status == 204
        assert process.end() == 0
    finally:
        if not server.answers():
            server.start()
        process.close()
        gives_up.close()
    assert reports_in(url) == {day(): 1}


ROLE = """
CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA rappor TO {role};
GRANT ALL ON ALL TABLES IN SCHEMA rappor TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rappor TO {role}
"""
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"


@pytest.mark.parametrize(
    ("role", "harm", "mend"),
    [
        (
            "revoked",
            "REVOKE INSERT ON rappor.tokens FROM {role}",
            "GRANT INSERT ON rappor.tokens TO {role}",
        ),
        ("locked_out", "ALTER ROLE {role} NOLOGIN; " + END, "ALTER ROLE {role} LOGIN"),
        (
            "frozen",
            "ALTER ROLE {role} SET default_transaction_read_only = on; " + END,
            "ALTER ROLE {role} RESET default_transaction_read_only; " + END,
        ),
    ],
    ids=["a right that is revoked", "a role without a login", "a database for reading only"],
)
def test_a_database_that_refuses_is_said_and_waited_out(
    server: Server, tmp_path: Path, role: str, harm: str, mend: str
) -> None:
    url = server.new_store()
    database = url.rpartition("/")[2]
    with closing(open_store(url)) as store:
        store.save_definition(Collection("homepage", 1, PARAMS).to_toml(), actor="ann")
    server.sql(ROLE.format(role=role), database)
    with running(command(url.replace("postgres@", f"{role}@"), tmp_path)) as process:
        client = Client(process.port)
        assert client.deliver(batch()).status == 204
        server.sql(harm.format(role=role), database)
        answer = wait_for(lambda: refused(client, batch()), "a refusal")
        assert (answer[0], answer[1] > 0) == ("store-unavailable", True)
        assert client.get("/readyz").status == 503
        assert client.get("/healthz").status == 200  # a restart would not help
        server.sql(mend.format(role=role), database)
        wait_for(lambda: client.get("/readyz").status == 200, "a collector that has recovered")
        before = sum(reports_in(url).values())
        assert client.deliver(batch()).status == 204
        client.close()
        assert process.end() == 0
    assert reports_in(url) == {day(): before + 1}


def refused(client: Client, body: object) -> tuple[str | None, int] | None:
    answer = client.send(body)  # type: ignore[arg-type]
    if answer.status != 503:
        return None
    return answer.code, int(answer.headers["retry-after"])


@pytest.mark.parametrize("password", ["s3cret", "s3cret#s3cret", "s3cret?s3cret"])
def test_a_password_is_in_no_command_line(server: Server, tmp_path: Path, password: str) -> None:
    url = server.new_store().replace("postgres@", f"postgres:{password}@")
    with running(command(url, tmp_path)) as process:
        text = Path(f"/proc/{process.process.pid}/cmdline").read_bytes()
        assert b"postgres@" in text
        assert b"s3cret" not in text
        assert "s3cret" not in "".join(process.text)
        assert process.end() == 0


# Migrations.


def columns(url: str) -> int:
    query = (
        b"SELECT count(*) FROM information_schema.columns "
        b"WHERE table_schema = 'rappor' AND table_name = 'state'"
    )
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("number", range(len(MIGRATIONS)))
def test_a_migration_that_is_killed_at_any_statement_leaves_the_schema_before(
    server: Server, number: int, step: int
) -> None:
    """Each migration is one transaction, and the server ends it."""
    statements, oldest = MIGRATIONS[number]
    killing = "SELECT pg_terminate_backend(pg_backend_pid())"
    for stop in range(0, len(statements) + 1, step):
        url = server.url(server.new_database())
        if number:
            with closing(PostgresStore(url, migrations=MIGRATIONS[:number])) as store:
                fill(store, batches=3)
                before = everything(store)
        cut = PostgresMigration((*statements[:stop], killing, *statements[stop:]), oldest)
        with closing(connect(url, read_only=False)) as connection, pytest.raises(psycopg.Error):
            schema.migrate(connection, [*MIGRATIONS[:number], cut])
        with closing(connect(url, read_only=False)) as connection:
            assert schema.version(connection) == number
        with closing(open_store(url)) as store:  # the next one makes all of it
            if number:
                assert everything(store) == before
            else:
                fill(store, batches=3)
            assert store.check() == []


def test_collectors_go_on_while_a_migration_adds_something(server: Server, tmp_path: Path) -> None:
    with collecting(server, tmp_path) as (process, client, database):
        url = server.url(database)
        assert client.deliver(batch()).status == 204
        before = columns(url)
        PostgresStore(url, migrations=(*MIGRATIONS, COLUMN)).close()
        assert columns(url) == before + 1
        assert client.deliver(batch()).status == 204
        assert process.end() == 0
    assert reports_in(url) == {day(): 2}


def test_a_store_of_each_earlier_schema_is_upgraded_while_a_writer_of_it_goes_on(
    server: Server,
) -> None:
    for known in range(1, len(MIGRATIONS)):
        url = server.url(server.new_database())
        with closing(PostgresStore(url, migrations=MIGRATIONS[:known])) as old:
            fill(old)
            before = {item.cell: item.reports for item in old.cells()}[cell()]
            with closing(open_store(url)) as new:
                for number in range(3):
                    for store in (old, new):
                        folds = always([fold(cell(), 0, [1])])
                        assert store.add([os.urandom(16)], folds, DAY) == [True], number
                assert {item.cell: item.reports for item in new.cells()}[cell()] == before + 6
                assert new.check() == []


def test_a_collector_that_is_too_old_for_the_schema_ends_and_loses_nothing(
    server: Server, tmp_path: Path
) -> None:
    with collecting(server, tmp_path) as (process, client, database):
        url = server.url(database)
        assert client.deliver(batch()).status == 204
        with closing(PostgresStore(url, migrations=(*MIGRATIONS, BREAKING))) as newer:
            assert client.send(batch()).status == 503
            assert process.wait() != 0
            assert [each.reports for each in newer.counts("homepage")] == [1]


def test_a_writer_notices_a_new_schema_before_it_writes(server: Server) -> None:
    url = server.new_store()
    with closing(open_store(url)) as store:
        fill(store)
        before = everything(store)
        with closing(PostgresStore(url, migrations=(*MIGRATIONS, BREAKING))):
            pass
        with pytest.raises(StoreBroken, match="written by a newer rappor"):
            store.add([token(99_999)], always([fold(cell(), 0, [1])]), DAY)
        with closing(PostgresStore(url, migrations=(*MIGRATIONS, BREAKING))) as newer:
            assert everything(newer) == before


# Backup by the server's own program, and restore: docs/operate.md has the commands.


def test_a_dump_restores_what_was_there(server: Server) -> None:
    url = server.new_store()
    with closing(open_store(url)) as store:
        fill(store)
        before = everything(store)
    text = run("pg_dump", "--schema=rappor", url)
    other = server.url(server.new_database())
    run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", other, text=text)
    with closing(open_store(other)) as store:
        assert everything(store) == before
        assert store.check() == []
        assert store.add([token(77_777)], always([fold(cell(), 0, [1])]), DAY) == [True]


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    """Another server, without roles, that keeps what it should not."""
    with a_server(track_commit_timestamp="on", log_statement="all") as made:
        yield made


def test_a_dump_restores_roles_rights_and_rows_on_another_server(
    server: Server, elsewhere: Server
) -> None:
    url = server.new_store()
    with closing(open_store(url)) as store:
        fill(store)
        before = everything(store)
    server.as_ingest(url)
    collected = always([fold(cell(), 0, [1])])
    dump = elsewhere.folder / "rappor.dump"  # where the user of the programs may write
    run("pg_dump", "--schema=rappor", "--format=custom", "--file", str(dump), url)
    options = ("--exit-on-error", "--single-transaction", "--dbname")
    there = elsewhere.url(elsewhere.new_database())
    with pytest.raises(RuntimeError, match=r'role "rappor_\w+" does not exist'):
        run("pg_restore", *options, there, str(dump))
    for role in ("rappor_ingest", "rappor_analysis"):
        connection = ("--host", LOOPBACK, "--port", str(elsewhere.port), "--username", "postgres")
        run("createuser", *connection, "--no-login", role)
    run("pg_restore", *options, there, str(dump))
    elsewhere.sql("ALTER ROLE rappor_ingest LOGIN; ALTER ROLE rappor_analysis LOGIN")
    analysis, ingest = (
        there.replace("postgres@", f"rappor_{role}@") for role in ("analysis", "ingest")
    )
    with closing(open_store(analysis, read_only=True)) as store:
        assert everything(store) == before
    with closing(open_store(ingest)) as store:
        assert store.add([token(77_777)], collected, DAY) == [True]
        assert store._add_at_once([token(77_778)], collected, DAY)
        with pytest.raises(StoreRefused):
            store.audit("c", "export", "")
    done = rappor("status", "--store", there)
    assert done.returncode == 0
    for setting in ("track_commit_timestamp = on", "log_statement = all"):
        assert f"keeps more than the store: {setting}" in done.stderr
    assert "keeps more" not in rappor("status", "--store", url).stderr
