"""Connections to PostgreSQL: what they insist on, and what happens when one is lost or hangs."""

import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rappor.errors import StoreError, StoreRefused, StoreUnavailable
from rappor.host import LOOPBACK
from rappor.store import open_store
from rappor.store.postgres import session
from rappor.store.postgres.connection import connect, unlimited
from rappor.store.postgres.store import PostgresStore
from support.cutting_proxy import CuttingProxy
from support.postgres import Server
from support.store_samples import DAY, always, cell, collection, fold, token
from support.waiting import wait_for

pytestmark = pytest.mark.slow
ONE = always([fold(cell(), 0, [1])])


@pytest.fixture
def url(postgres: Server) -> str:
    made = postgres.new_store()
    with closing(open_store(made)) as store:
        store.save_definition(collection().to_toml(), actor="ann")
    return made


@pytest.fixture
def altered(postgres: Server) -> Iterator[Callable[[str, str], None]]:
    """Changes a setting of the whole server until the test ends."""
    names: list[str] = []

    def alter(name: str, value: str) -> None:
        names.append(name)
        postgres.sql(f"ALTER SYSTEM SET {name} = {value}")
        reload(postgres, name, value)

    yield alter
    for name in names:
        (before,) = postgres.sql(f"SELECT boot_val FROM pg_settings WHERE name = '{name}'")
        postgres.sql(f"ALTER SYSTEM RESET {name}")
        reload(postgres, name, str(before[0]))


def reload(server: Server, name: str, value: str) -> None:
    server.sql("SELECT pg_reload_conf()")
    wait_for(lambda: server.sql(f"SHOW {name}") == [(value,)], f"{name} = {value}")


def end_backends(server: Server, url: str) -> None:
    """End all connections to a database, as a restart of the server does."""
    name = url.rpartition("/")[2].partition("?")[0]
    query = f"FROM pg_stat_activity WHERE datname = '{name}'"
    server.sql(f"SELECT pg_terminate_backend(pid) {query}")
    wait_for(lambda: server.sql(f"SELECT count(*) {query}") == [(0,)], "their end")


def added(store: PostgresStore, number: int) -> list[bool]:
    return store.add([token(number)], ONE, DAY)


# What the server must be.


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_acknowledged_is_refused(
    url: str, altered: Callable[[str, str], None], name: str
) -> None:
    altered(name, "off")
    with pytest.raises(StoreError, match=f"{name} = off: acknowledged reports would be lost"):
        open_store(url)
    open_store(url, read_only=True).close()


def test_commits_are_synced_whatever_the_database_says(postgres: Server, url: str) -> None:
    name = url.rpartition("/")[2]
    postgres.sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with closing(connect(url, read_only=False)) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_snapshot_is_not_older_than_the_lock_whatever_the_role_says(
    postgres: Server, url: str, level: str
) -> None:
    """A transaction that waits for a new day of tokens sees the day when it goes on."""
    postgres.sql(f"CREATE ROLE isolated_{level[0]} SUPERUSER LOGIN")
    postgres.sql(f"ALTER ROLE isolated_{level[0]} SET default_transaction_isolation = '{level}'")
    role = url.replace("postgres@", f"isolated_{level[0]}@")
    with closing(open_store(role)) as store, closing(open_store(url)) as other:
        assert isinstance(store, PostgresStore)
        assert added(store, 1) == [True]
        with other._session.writing() as connection:  # type: ignore[attr-defined]
            connection.execute("SELECT rappor.open_token_day(%s)", (DAY.toordinal() + 1,))
            found: list[list[bool]] = []
            late = threading.Thread(target=lambda: found.append(added(store, 2)))
            late.start()
            query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
            wait_for(lambda: postgres.sql(query) == [(1,)], "a transaction that waits")
        late.join()
        assert found == [[True]]
        parts = postgres.sql(
            "SELECT part FROM rappor.tokens ORDER BY token", url.rpartition("/")[2]
        )
        assert parts == [(1,), (2,)]


# Connections that are lost while a store is open.


def test_a_connection_that_ended_while_it_was_idle_is_replaced(postgres: Server, url: str) -> None:
    with closing(open_store(url)) as store:
        assert isinstance(store, PostgresStore)
        for number in range(3):  # rows that exist, and those of a connection that is new
            assert added(store, number) == [True]
            end_backends(postgres, url)
        assert [found.reports for found in store.counts("homepage")] == [3]
        end_backends(postgres, url)
        assert added(store, 2) == [False]
        assert store.check() == []


def test_a_server_that_swallows_everything_is_left(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "STALLED_SECONDS", 0.3)
    proxy = CuttingProxy(postgres.port)
    try:
        with closing(open_store(url.replace(f":{postgres.port}", f":{proxy.port}"))) as store:
            assert isinstance(store, PostgresStore)
            assert added(store, 1) == [True]
            proxy.swallowing = True
            with pytest.raises(StoreUnavailable, match="was lost"):
                added(store, 2)
            proxy.swallowing = False
            assert wait_for(lambda: answered(store, 2), "the database") == [True]
            assert store.check() == []
    finally:
        proxy.close()


def answered(store: PostgresStore, number: int) -> list[bool] | None:
    try:
        return added(store, number)
    except StoreUnavailable:
        return None


def test_a_long_statement_has_no_limit_and_the_next_one_has(url: str) -> None:
    with closing(connect(url, read_only=False)) as connection:
        with unlimited(connection):
            assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)


def test_a_server_that_refuses_a_running_collector_is_waited_for(
    postgres: Server, url: str, altered: Callable[[str, str], None]
) -> None:
    """A collector must not end, or try each batch for itself: it is put right while it runs."""
    hba = postgres.folder / "pg_hba.conf"
    before = hba.read_text()
    postgres.sql("CREATE ROLE rotated SUPERUSER LOGIN PASSWORD 'old'")
    hba.write_text(f"host all rotated 127.0.0.1/32 scram-sha-256\n{before}")
    postgres.sql("SELECT pg_reload_conf()")
    try:
        with closing(open_store(url.replace("postgres@", "rotated:old@"))) as store:
            assert isinstance(store, PostgresStore)
            assert added(store, 1) == [True]
            postgres.sql("ALTER ROLE rotated PASSWORD 'new'")
            end_backends(postgres, url)
            with pytest.raises(StoreUnavailable, match="the database refuses this"):
                added(store, 2)
            with pytest.raises(StoreUnavailable, match="cannot be reached"):  # without an attempt
                added(store, 2)
            with pytest.raises(StoreRefused):  # who starts is told
                open_store(url.replace("postgres@", "rotated:old@"))
            postgres.sql("ALTER ROLE rotated PASSWORD 'old'")
            assert wait_for(lambda: answered(store, 2), "the database") == [True]
            altered("fsync", "off")
            end_backends(postgres, url)
            with pytest.raises(StoreUnavailable, match="fsync = off"):
                added(store, 3)
    finally:
        hba.write_text(before)
        postgres.sql("SELECT pg_reload_conf()")


def test_a_database_that_takes_no_changes_is_unavailable(postgres: Server, url: str) -> None:
    name = url.rpartition("/")[2]
    with closing(open_store(url)) as store:
        assert isinstance(store, PostgresStore)
        assert added(store, 1) == [True]
        postgres.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        end_backends(postgres, url)
        with pytest.raises(StoreUnavailable, match="takes no changes"):
            added(store, 2)
        with pytest.raises(StoreUnavailable, match="takes no changes"):
            store.probe()


@pytest.mark.parametrize(
    ("role", "right"),
    [
        ("prober_1", "INSERT ON rappor.tokens"),
        ("prober_2", "UPDATE ON rappor.cells"),
        ("prober_3", "UPDATE ON rappor.counts"),
    ],
)
def test_a_probe_misses_each_right_that_adding_needs(
    postgres: Server, url: str, role: str, right: str
) -> None:
    name = url.rpartition("/")[2]
    postgres.sql(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA rappor TO {role}; "
        f"GRANT ALL ON ALL TABLES IN SCHEMA rappor TO {role}; "
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rappor TO {role}",
        name,
    )
    with closing(open_store(url.replace("postgres@", f"{role}@"))) as store:
        store.probe()
        postgres.sql(f"REVOKE {right} FROM {role}", name)
        with pytest.raises(StoreRefused):
            store.probe()


def test_a_connection_with_the_number_of_one_that_is_gone_is_a_new_writer(
    postgres: Server, url: str
) -> None:
    """The server gives the number of a process again: its rows stay those of the old writer."""
    name = url.rpartition("/")[2]
    gone = (1 << 60) + 5
    with closing(open_store(url)) as store:
        assert isinstance(store, PostgresStore)
        with store._session.maintaining() as connection:
            pid = connection.info.backend_pid
        postgres.sql(f"INSERT INTO rappor.writers (writer, pid) VALUES ({gone}, {pid})", name)
        assert added(store, 1) == [True]
        assert postgres.sql("SELECT DISTINCT writer FROM rappor.counts", name) != [(gone,)]
        found = postgres.sql(f"SELECT pid FROM rappor.writers WHERE writer = {gone}", name)
        assert found == [(None,)]


# Passwords.


@pytest.mark.parametrize("tail", ["?port=s3cret", "?s3cret=1", "?connect_timeout=s3cret"])
def test_what_libpq_says_of_a_url_is_not_repeated(tail: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://127.0.0.1:1/rappor{tail}")
    assert "s3cret" not in str(caught.value).replace(tail, "")


# TLS, which the server of these tests lacks: a proxy speaks it in the server's place.


class TlsProxy:
    """Answers PostgreSQL's request for TLS with a certificate, and forwards what is inside."""

    _REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")

    def __init__(self, target: int, certificate: Path, key: Path) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        """Nobody talks without TLS. One thread: a TLS connection is not for two."""
        with suppress(OSError), plain:
            if plain.recv(len(self._REQUEST), socket.MSG_WAITALL) != self._REQUEST:
                return
            plain.sendall(b"S")
            with (
                self._context.wrap_socket(plain, server_side=True) as near,
                socket.create_connection((LOOPBACK, self._target)) as far,
            ):
                while True:
                    ready = [near] if near.pending() else select.select([near, far], [], [])[0]
                    for source in ready:
                        data = source.recv(65536)
                        if not data:
                            return
                        (far if source is near else near).sendall(data)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of its own authority for localhost, and its key."""
    made = tmp_path / "ca.crt", tmp_path / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    command += ["-out", str(made[0]), "-keyout", str(made[1])]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("openssl made no certificate")
    return made


def test_tls_is_what_the_url_says(
    postgres: Server, url: str, certificate: tuple[Path, Path]
) -> None:
    proxy = TlsProxy(postgres.port, *certificate)
    name = url.rpartition("/")[2]
    verified = f"sslmode=verify-full&sslrootcert={certificate[0]}"
    try:
        place = f"localhost:{proxy.port}/{name}"
        with closing(open_store(f"postgresql://postgres@{place}?{verified}")) as store:
            assert isinstance(store, PostgresStore)
            assert added(store, 1) == [True]
            with store._session.reading() as connection:
                assert connection.pgconn.ssl_in_use
        refused = {
            f"{LOOPBACK}:{proxy.port}/{name}?{verified}": "does not match",  # another name
            f"{place}?sslmode=verify-full&sslrootcert=system": "certificate verify failed",
            f"localhost:{postgres.port}/{name}?{verified}": "does not support SSL",
            f"{place}?sslmode=disable": "cannot be reached",
        }
        for address, words in refused.items():
            with pytest.raises(StoreUnavailable, match=words):
                open_store(f"postgresql://postgres@{address}")
    finally:
        proxy.close()
