"""Attempts to break the collector's promises over real sockets, processes, signals and disks."""

import contextlib
import gzip
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rappor import Report
from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import BINARY, JSON, encode_batch, encode_batch_json
from support.collecting import (
    PARAMS,
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    day,
    running,
    stored,
    wait_for,
    write_collections,
)
from support.command import rappor

MB = 10**6
IDLE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def post(body: bytes, *headers: str) -> bytes:
    """A request for one batch, as bytes."""
    lines = [
        "POST /v1/reports HTTP/1.1",
        "Host: x",
        f"Content-Type: {BINARY}",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def dial(port: int, seconds: float = 10) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def heard(connection: socket.socket) -> bytes:
    """All that the other side says until it closes, or falls silent for the socket's time."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except (TimeoutError, ConnectionError):
        pass
    return found


# HTTP.


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: +5",),
        ("Content-Length : 5",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("X: a\r\n folded", "Content-Length: 5"),
    ],
)
def test_a_request_whose_length_can_be_read_in_two_ways_ends_the_connection(
    shared: Process, fields: tuple[str, ...]
) -> None:
    head = "\r\n".join(("POST /v1/reports HTTP/1.1", "Host: x", *fields)).encode()
    smuggled = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with dial(shared.port) as connection:
        connection.sendall(head + b"\r\n\r\n0\r\n\r\n" + smuggled)
        said = heard(connection)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"rappor_healthy" not in said


def test_a_pipeline_without_end_does_not_take_the_memory(tmp_path: Path) -> None:
    """Promised: 60 MB and 256 KiB a connection. Here twenty send 2 MB of tiny requests each."""
    flood = b"GET / HTTP/1.1\r\n\r\n" * 110_000
    with collector(tmp_path) as process:
        before = process.memory()
        connections = [dial(process.port) for _ in range(20)]

        def send(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                connection.sendall(flood)

        threads = [threading.Thread(target=send, args=(each,)) for each in connections]
        for each in threads:
            each.start()
        most, until = 0, time.monotonic() + 4
        while time.monotonic() < until:
            most = max(most, process.memory())
            time.sleep(0.05)
        for connection in connections:
            connection.close()
        for each in threads:
            each.join(10)
        assert most - before < 100 * MB
        with client_of(process) as client:
            assert client.send(batch()).status == 204


def test_empty_lines_do_not_hold_a_connection_for_ever(tmp_path: Path) -> None:
    """An idle connection ends after 15 s; one line end must not buy it eternity."""
    with collector(tmp_path) as process, dial(process.port, 20) as connection:
        connection.sendall(IDLE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"\r\n")
        started = time.monotonic()
        heard(connection)
        assert time.monotonic() - started < 17


def test_a_tunnel_that_was_refused_is_closed_too(tmp_path: Path) -> None:
    with collector(tmp_path) as process, dial(process.port, 20) as connection:
        connection.sendall(b"CONNECT /v1/reports HTTP/1.1\r\nHost: x\r\n\r\nabc")
        assert connection.recv(65536).startswith(b"HTTP/1.1 405")
        connection.sendall(b"def")
        started = time.monotonic()
        heard(connection)
        assert time.monotonic() - started < 17


def test_an_answer_is_not_given_to_the_wrong_request(shared: Process) -> None:
    """A good batch, and behind it something that is no HTTP: a 400 first would have it dropped."""
    with dial(shared.port, 3) as connection:
        connection.sendall(post(encode_batch(batch())) + b"NONSENSE\r\n\r\n")
        said = heard(connection)
    assert not said or said.startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[' + "1," * 500_000 + "1]}",
        "{" + ",".join(f'"{number:x}":1' for number in range(90_000)) + "}",
    ],
    ids=["numbers", "keys"],
)
def test_a_small_body_does_not_cost_a_long_time(shared: Process, text: str) -> None:
    """Within its rate, 50 batches a second, one prefix must not take the processor for itself."""
    body = gzip.compress(text.encode())
    with client_of(shared) as client:
        client.send(batch())
        times = []
        for _ in range(5):
            started = time.perf_counter()
            answer = client.send(body, content_type=JSON, content_encoding="gzip")
            times.append(time.perf_counter() - started)
            assert answer.code == "malformed-batch"
    assert min(times) < 0.02  # 50 a second of them would be all of a core


# Exactly once, and nothing lost.


def test_two_collectors_on_one_folder_count_a_batch_once(tmp_path: Path) -> None:
    with collector(tmp_path) as one, collector(tmp_path) as other:
        with client_of(one) as first, client_of(other) as second:
            for number in range(40):
                token = number.to_bytes(16, "big")
                clients = (first, second) if number % 2 else (second, first)
                made = batch(token=token)
                assert [each.send(made).status for each in clients] == [204, 204]
        assert one.end() == other.end() == 0
    assert stored(tmp_path) == {(day(), ""): 40}


def test_a_token_sent_on_many_connections_at_once_counts_once(tmp_path: Path) -> None:
    with collector(tmp_path) as process:
        body = encode_batch(batch(token=bytes(16)))
        clients = [Client(process.port) for _ in range(16)]
        threads = [threading.Thread(target=each.send, args=(body,)) for each in clients]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for each in clients:
            each.close()
    assert stored(tmp_path) == {(day(), ""): 1}


def test_a_batch_is_known_in_both_formats_and_after_a_kill(tmp_path: Path) -> None:
    made = batch(token=bytes(range(16)))
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(made).status == 204
        assert process.end(signal.SIGKILL) != 0
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(encode_batch_json(made), content_type=JSON).status == 204
        zipped = gzip.compress(encode_batch(made))
        assert client.send(zipped, content_encoding="gzip").status == 204
        assert 'result="duplicate"} 2' in client.get("/metrics").body.decode()
    assert stored(tmp_path) == {(day(), ""): 1}


def test_other_processes_change_the_store_while_the_collector_counts(tmp_path: Path) -> None:
    """Imports, retention and backups by hand: nothing that a collector remembers may be stale."""
    folder = write_collections(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=7))
    data = ("--data", tmp_path / "data")
    with collector(tmp_path) as process, client_of(process) as client:
        for number in range(6):
            made = batch([Report(1, 5)] * 3, token=bytes([number] * 16))
            assert client.send(made).status == 204
            file = tmp_path / f"{number}.csv"
            file.write_text(f"client,cohort,rappor\n{number},1,{number:016b}\n")
            done = rappor("import", file, *data, "--collection", "homepage", "--period", day())
            assert done.returncode == 0, done.stderr
            assert rappor("retain", *data).returncode == 0
            assert rappor("backup", *data, "--output", tmp_path / "b").returncode == 0
            assert client.send(made).status == 204
    assert stored(tmp_path) == {(day(), ""): 6 * 4}
    assert rappor("status", *data).returncode == 0
    assert folder.exists()


def test_a_restored_backup_knows_the_batches_it_holds(tmp_path: Path) -> None:
    before, after = batch(token=bytes(16)), batch(token=bytes([1] * 16))
    copy, data = tmp_path / "b.backup", tmp_path / "data"
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(before).status == 204
        assert rappor("backup", "--data", data, "--output", copy).returncode == 0
        assert client.send(after).status == 204
    data.rename(tmp_path / "away")
    assert rappor("restore", copy, "--data", data).returncode == 0
    with collector(tmp_path) as process, client_of(process) as client:
        assert [client.send(each).status for each in (before, after, after)] == [204, 204, 204]
    assert stored(tmp_path) == {(day(), ""): 2}


def test_a_backup_is_not_restored_under_a_running_collector(tmp_path: Path) -> None:
    """What it then acknowledges would go into a file that has no name any more."""
    data, copy = tmp_path / "data", tmp_path / "b.backup"
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        assert rappor("backup", "--data", data, "--output", copy).returncode == 0
        for file in data.glob("store.sqlite*"):
            file.unlink()
        done = rappor("restore", copy, "--data", data)
        assert done.returncode == 1
        assert "open" in done.stderr


@pytest.mark.parametrize("name", ["store.sqlite-wal", "store.sqlite-shm", "store.lock"])
def test_a_backup_never_takes_the_place_of_a_file_of_the_store(tmp_path: Path, name: str) -> None:
    data = tmp_path / "data"
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        file = (data / name).stat().st_ino
        done = rappor("backup", "--data", data, "--output", data / name)
        assert done.returncode in (1, 2)
        assert (data / name).stat().st_ino == file
        assert client.send(batch()).status == 204
    assert stored(tmp_path) == {(day(), ""): 2}


def test_a_backup_never_takes_the_place_of_another_store(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with collector(tmp_path / name) as process, client_of(process) as client:
            assert client.send(batch()).status == 204
    other = tmp_path / "two" / "data" / "store.sqlite"
    done = rappor("backup", "--data", tmp_path / "one" / "data", "--output", other)
    assert done.returncode in (1, 2)


# Signals, restarts, and what ends a process.


def test_a_reload_during_the_start_does_not_end_the_process(tmp_path: Path) -> None:
    """`systemctl reload` right after a start; systemd takes death by SIGHUP for a clean end."""
    process = Process(collect_command(tmp_path))
    try:
        wait_for((tmp_path / "data" / "store.lock").exists, 20)  # at work, and not listening yet
        process.process.send_signal(signal.SIGHUP)
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.send(batch()).status == 204
    finally:
        process.close()


def test_a_changed_definition_is_hopeless_and_not_tried_again(tmp_path: Path) -> None:
    """Exit code 3, as for every other file that somebody has to mend: serve does not try again."""
    write_collections(tmp_path)
    with collector(tmp_path):
        pass
    changed = Collection("homepage", 1, PARAMS.__class__(16, 2, 4, 0.25, 0.5, 0.75))
    write_collections(tmp_path, changed)
    done = subprocess.run(
        [str(each) for each in collect_command(tmp_path, verb="serve")],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.count(b'"started"') == 1
    assert b"params" in done.stderr  # which field


def test_the_log_says_what_is_wrong_with_a_file_that_was_read_again(tmp_path: Path) -> None:
    folder = write_collections(tmp_path)
    with collector(tmp_path) as process:
        (folder / "wrong.toml").write_text("name = [")
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload-failed" in process.events())
        said = next(each for each in process.log if each["event"] == "reload-failed")
        assert "wrong.toml" in str(said)


def test_an_application_gets_its_new_rate_with_a_reload(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    done = rappor("collect", "--keys", keys, "--new-key", "app", "--key-rate", "1", "--json")
    given = "Bearer " + json.loads(done.stdout)["key"]
    with collector(tmp_path, "--keys", str(keys)) as process, client_of(process) as client:
        for _ in range(11):
            last = client.send(batch(), authorization=given)
        assert last.code == "rate-limited"
        keys.write_text(keys.read_text().replace('"rate": 1.0', '"rate": 1000.0'))
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in process.events())
        assert client.send(batch(), authorization=given).status == 204


def test_keys_and_collections_are_read_again_together_or_not_at_all(tmp_path: Path) -> None:
    """A reload that fails leaves the old keys in place too, as the guide says."""
    folder, keys = write_collections(tmp_path), tmp_path / "keys.json"
    given = "Bearer " + rappor("collect", "--keys", keys, "--new-key", "app").stdout.strip()
    with collector(tmp_path, "--keys", str(keys)) as process, client_of(process) as client:
        keys.write_text('{"keys": []}')
        changed = Collection("homepage", 1, PARAMS.__class__(16, 2, 4, 0.25, 0.5, 0.75))
        (folder / "homepage-1.toml").write_text(changed.to_toml())
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reload-failed" in process.events())
        assert client.send(batch(), authorization=given).status == 204


def test_a_folder_without_collections_is_not_served_in_silence(tmp_path: Path) -> None:
    (tmp_path / "collections").mkdir()
    with collector(tmp_path) as process:
        warned = [each for each in process.log if each["level"] == "warning"]
        assert [each["event"] for each in warned] == ["no-collections"]


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_collections(tmp_path)
    done = rappor(
        *("collect", "--data", tmp_path / "data", "--collections", tmp_path / "collections"),
        *("--port", "0", "--tls-cert", tmp_path / "none.pem", "--tls-key", tmp_path / "key.pem"),
    )
    assert done.returncode == 3
    assert "none.pem" in done.stderr


def test_a_disk_that_fails_is_outlived_by_serve(tmp_path: Path) -> None:
    """The whole path with real processes: a write that fails (EFBIG is no full disk), 503, an
    exit, a restart, recovery; everything acknowledged is there, once."""
    write_collections(
        tmp_path, Collection("homepage", 1, PARAMS.__class__(4096, 1, 1, 0.5, 0.5, 0.75))
    )
    limit = 3 * 2**20
    command = [str(each) for each in collect_command(tmp_path, "--rate", "0", verb="serve")]
    script = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, "
        f"({limit}, {limit})); os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = Process([command[0], "-c", script, *command])
    acknowledged = 0
    try:
        process.wait_until_listening()
        until, failed = time.monotonic() + 40, 0
        client = Client(process.port, 5)
        number = 0
        made = batch([Report(0, 1)], k=4096, token=number.to_bytes(16, "big"))
        while time.monotonic() < until and (failed == 0 or acknowledged < failed + 20):
            try:
                answer = client.send(made)
            except OSError:
                client.close()
                time.sleep(0.1)
                client = Client(process.port, 5)
                continue
            if answer.status == 204:
                acknowledged, number = acknowledged + 1, number + 1
                made = batch([Report(0, 1)], k=4096, token=number.to_bytes(16, "big"))
                continue
            assert answer.status in (503, 507), answer.body
            if answer.code == "store-failed" and not failed:
                failed = acknowledged
                client.close()
                process.listens_again()
                process.wait_until_listening()
                client = Client(process.port, 5)
        client.close()
        assert 0 < failed <= acknowledged - 20, process.events()
        assert "writer-died" in process.events()
        assert process.end() == 0, process.text
    finally:
        process.close()
    assert stored(tmp_path) == {(day(), ""): acknowledged}
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != limit


def test_a_stop_in_the_middle_of_a_flood_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[int] = []

    def flood(port: int, first: int) -> None:
        client = Client(port, 5)
        try:
            for number in range(first, first + 10_000):
                if client.send(batch(token=number.to_bytes(16, "big"))).status != 204:
                    return
                acknowledged.append(number)
        except OSError:
            pass
        finally:
            client.close()

    for turn in range(3):
        with collector(tmp_path) as process:
            threads = [
                threading.Thread(target=flood, args=(process.port, (turn * 8 + each) * 10_000))
                for each in range(8)
            ]
            for each in threads:
                each.start()
            time.sleep(0.4)
            process.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
            assert process.end() == 0
            for each in threads:
                each.join()
    total = stored(tmp_path)[day(), ""]
    assert len(acknowledged) <= total <= len(acknowledged) + 24  # one each may be without answer
    assert len(set(acknowledged)) == len(acknowledged) > 0


# What is written down.


def test_nothing_of_a_request_is_logged_at_debug_level(tmp_path: Path) -> None:
    marker = "m4rk3r"
    with collector(tmp_path, "--log-level", "debug") as process:
        for path in (f"/{marker}", f"/v1/reports?{marker}", f"/%ff{marker}"):
            with client_of(process) as client:
                client.send(marker.encode() * 10, path, user_agent=marker, cookie=marker)
                client.send(marker.encode(), path, "GET", x_forwarded_for=marker)
        with dial(process.port, 2) as connection:
            connection.sendall(f"{marker} {marker} {marker}\r\n{marker}\r\n\r\n".encode())
            heard(connection)
        process.end()
        assert marker not in "".join(process.text)
    for file in (tmp_path / "data").iterdir():
        assert marker.encode() not in file.read_bytes()


def test_metrics_have_no_label_that_a_client_chose(shared: Process) -> None:
    with client_of(shared) as client:
        client.send(b"x", "/m4rk3r", "PROPFIND")
        client.send(batch(collection="m4rk3r"))
        assert b"m4rk3r" not in client.get("/metrics").body


def test_every_file_of_the_store_is_its_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with collector(tmp_path) as process, client_of(process) as client:
            assert client.send(batch()).status == 204
            copy = tmp_path / "b.backup"
            done = rappor("backup", "--data", tmp_path / "data", "--output", copy)
            assert done.returncode == 0
            files = [*(tmp_path / "data").iterdir(), copy]
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    finally:
        os.umask(before)


def test_the_store_is_read_while_it_is_written_and_stays_sound(tmp_path: Path) -> None:
    stop = threading.Event()
    with collector(tmp_path, "--rate", "0") as process:

        def flood() -> None:
            client = Client(process.port)
            while not stop.is_set():
                client.send(batch([Report(1, 5), Report(2, 9)]))
            client.close()

        threads = [threading.Thread(target=flood) for _ in range(4)]
        for each in threads:
            each.start()
        try:
            seen = 0
            for _ in range(5):
                store = open_store(tmp_path / "data", read_only=True)
                assert store.check() == []
                total = sum(each.reports for each in store.cells())
                assert total >= seen
                assert total % 2 == 0
                seen = total
                store.close()
        finally:
            stop.set()
            for each in threads:
                each.join()
        assert process.end() == 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> object:
    """One collector for tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("shared")
    with running(collect_command(folder, "--rate", "0")) as process:
        yield process
