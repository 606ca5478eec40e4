"""One collector as a process: start, stop, restart, TLS, the log, the daily round."""

import contextlib
import dataclasses
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from rappor import Report
from rappor.collection import Collection
from rappor.collector.log import MAX_LINES
from rappor.host import bound
from rappor.store import open_store
from rappor.wire import BINARY, encode_batch
from support.collecting import (
    PARAMS,
    PATIENCE,
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    day,
    planted_command,
    running,
    stored,
    today,
    write_collections,
)
from support.command import rappor
from support.waiting import wait_for

HOMEPAGE = Collection("homepage", 1, PARAMS)


class Stopped(NamedTuple):
    """A collector that took one batch, refused another and was stopped."""

    folder: Path  # tests that change it work on a copy
    lines: list[str]  # of its log


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder = tmp_path_factory.mktemp("stopped")
    with collector(folder, "--log-level", "debug") as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        assert client.send(b"bad").status == 400
        assert process.end() == 0
        return Stopped(folder, list(process.text))


@pytest.fixture
def copied(stopped: Stopped, tmp_path: Path) -> Path:
    return shutil.copytree(stopped.folder, tmp_path / "copied")


def test_neither_a_compiler_nor_an_analysis_library_is_loaded() -> None:
    code = (
        "import sys; import rappor.collector.process; "
        "bad = {'numba', 'scipy', 'sklearn', 'pyarrow', 'pandas', 'rappor.decoding'}; "
        "print(*sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("\n", "")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_stop_commits_what_waits_and_ends_with_0(tmp_path: Path, number: int) -> None:
    (tmp_path / "gate").touch()  # no commit ends before the stop
    with running(planted_command("gated-disk", tmp_path)) as process:
        answers: list[int] = []

        def send() -> None:
            client = Client(process.port)
            answers.append(client.send(batch()).status)
            client.close()

        senders = [threading.Thread(target=send) for _ in range(20)]
        for sender in senders:
            sender.start()
        with client_of(process) as client:
            wait_for(lambda: b"\nrappor_queue_batches 20.0\n" in client.get("/metrics").body)
        process.process.send_signal(number)
        process.wait_for_event("stopping")
        (tmp_path / "gate").unlink()
        assert process.wait() == 0
        for sender in senders:
            sender.join()
        assert process.events()[-1] == "stopped"
    assert answers == [204] * 20
    assert stored(tmp_path) == {(day(), ""): 20}


@pytest.mark.parametrize("bug", ["short-drain", pytest.param("none", marks=pytest.mark.long)])
def test_a_client_that_never_ends_its_body_does_not_keep_it_from_stopping(
    tmp_path: Path, bug: str
) -> None:
    """It waits one second for its clients; in the long programme 8 s, as `rappor collect` does."""
    with running(planted_command(bug, tmp_path)) as process:
        client = Client(process.port)
        client.connection.putrequest("POST", "/v1/reports")
        client.connection.putheader("content-length", "1000")
        client.connection.putheader("expect", "100-continue")
        client.connection.endheaders(b"only this")
        sock = client.connection.sock
        assert sock is not None
        assert sock.recv(65536).startswith(b"HTTP/1.1 100")  # its headers are read
        assert process.end() == 0
        client.close()


@pytest.mark.parametrize("turns", [1, pytest.param(5, marks=pytest.mark.long)])
def test_a_stop_in_the_middle_of_a_flood_loses_nothing_acknowledged(
    tmp_path: Path, turns: int
) -> None:
    acknowledged: list[int] = []

    def flood(port: int, first: int) -> None:
        client = Client(port)
        try:
            for number in itertools.count(first):
                if client.send(batch(token=number.to_bytes(16, "big"))).status != 204:
                    return
                acknowledged.append(number)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            client.close()

    for turn in range(turns):
        with collector(tmp_path) as process:
            before = len(acknowledged)
            threads = [
                threading.Thread(target=flood, args=(process.port, (turn * 8 + each) * 10**9))
                for each in range(8)
            ]
            for each in threads:
                each.start()
            wait_for(lambda: len(acknowledged) > before + 100)  # noqa: B023
            process.process.send_signal(signal.SIGHUP)
            wait_for(lambda: len(acknowledged) > before + 120)  # noqa: B023
            assert process.end() == 0
            for each in threads:
                each.join()
    total = stored(tmp_path)[day(), ""]
    # One of each sender may be without answer.
    assert len(acknowledged) <= total <= len(acknowledged) + 8 * turns
    assert len(set(acknowledged)) == len(acknowledged)


def test_a_dead_writer_ends_the_process(tmp_path: Path) -> None:
    with (
        running(planted_command("dying-thread", tmp_path)) as process,
        client_of(process) as client,
    ):
        assert [client.send(batch()).status for _ in range(2)] == [204, 204]
        answer = client.send(batch())
        assert (answer.status, answer.code) == (503, "store-failed")
        assert process.wait() == 1
    assert stored(tmp_path) == {(day(), ""): 2}


def test_serve_restarts_a_collector_that_was_killed(tmp_path: Path) -> None:
    with running(collect_command(tmp_path, verb="serve")) as process:
        first = process.wait_for_event("started")["pid"]
        with client_of(process) as client:
            assert client.send(batch()).status == 204
        process.listens_again()
        os.kill(first, signal.SIGKILL)
        process.wait_until_listening()
        with client_of(process) as client:
            assert client.send(batch()).status == 204
        ended = process.wait_for_event("ended")
        assert (ended["child"], ended["code"]) == ("collector", -9)
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 2}


def test_a_collector_does_not_outlive_its_parent(tmp_path: Path) -> None:
    with running(collect_command(tmp_path, verb="serve")) as process:
        child = process.wait_for_event("started")["pid"]
        process.end(signal.SIGKILL)
        wait_for(lambda: not _alive(child))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("verb", ["collect", "serve"])
def test_what_cannot_work_is_one_line_and_not_tried_again(tmp_path: Path, verb: str) -> None:
    write_collections(tmp_path)
    (tmp_path / "collections" / "bad.toml").write_text("name = 3")
    done = rappor(*collect_command(tmp_path, verb=verb)[3:])
    assert done.returncode == 3
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1
    assert "bad.toml" in said[0]


def test_options_that_do_not_go_together_are_usage_errors() -> None:
    for options in (
        ["collect"],
        ["serve", "--data", "x"],
        ["collect", "--data", "x", "--collections", "y", "--tls-cert", "z"],
        ["collect", "--new-key", "app"],
        ["collect", "--data", "x", "--collections", "y", "--json"],
    ):
        done = rappor(*options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert rappor("collect", "--port", "70000").returncode == 2


def test_a_changed_definition_of_a_live_version_is_refused_and_not_tried_again(
    copied: Path,
) -> None:
    """Exit code 3, as for every other file that needs correction: serve does not try again."""
    changed = Collection("homepage", 1, PARAMS.__class__(k=16, h=2, m=4, f=0.25, p=0.5, q=0.75))
    write_collections(copied, changed)
    done = rappor(*collect_command(copied, verb="serve")[3:])
    assert done.returncode == 3
    assert done.stderr.count('"started"') == 1
    assert "homepage v1 is in use with another definition: params" in done.stderr


def test_a_new_key_is_printed_once_and_kept_as_a_digest(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    done = rappor("collect", "--keys", keys, "--new-key", "app")
    assert done.returncode == 0
    assert done.stdout.startswith("rpk_")
    assert done.stdout.strip() not in keys.read_text()
    assert keys.stat().st_mode & 0o777 == 0o600
    again = rappor("collect", "--keys", keys, "--new-key", "other", "--key-for", "a", "--json")
    assert json.loads(again.stdout)["name"] == "other"
    assert len(json.loads(keys.read_text())["keys"]) == 2
    assert rappor("collect", "--keys", keys, "--new-key", "app").returncode == 3


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_collections(tmp_path)
    done = rappor(
        *("collect", "--data", tmp_path / "data", "--collections", tmp_path / "collections"),
        *("--port", "0", "--tls-cert", tmp_path / "none.pem", "--tls-key", tmp_path / "key.pem"),
    )
    assert done.returncode == 3
    assert "none.pem" in done.stderr


def test_tls_by_flags(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    command += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(cert)]
    made = subprocess.run(command, capture_output=True)
    if made.returncode != 0:
        pytest.skip("openssl made no certificate")
    with collector(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as process:
        trusted = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection(
            "localhost", process.port, context=trusted, timeout=PATIENCE
        )
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b'{"status": "ok"}')
        connection.close()
        plain = Client(process.port)
        with pytest.raises((OSError, http.client.HTTPException)):
            plain.get("/healthz")
        plain.close()
        assert process.end() == 0


def test_retention_runs_at_the_start(copied: Path) -> None:
    write_collections(copied, dataclasses.replace(HOMEPAGE, expires=today()))
    with collector(copied) as process:
        said = process.wait_for_event("retention")
        assert process.end() == 0
    assert said["cells"] == 1
    assert stored(copied) == {}


def test_definitions_are_kept_beside_the_counts(stopped: Stopped) -> None:
    store = open_store(stopped.folder / "data", read_only=True)
    (kept,) = store.definitions()
    store.close()
    assert Collection.from_toml(kept.toml) == HOMEPAGE


def test_one_poisoned_batch_does_not_keep_the_others_out(tmp_path: Path) -> None:
    with running(planted_command("poisoned-cell", tmp_path)) as process:
        answers: dict[int, list[str | int | None]] = {1: [], 3: []}

        def send(cohort: int) -> None:
            client = Client(process.port)
            for _ in range(10):
                answer = client.send(batch([Report(cohort, 1)]))
                answers[cohort].append(answer.code or answer.status)
            client.close()

        senders = [threading.Thread(target=send, args=(cohort,)) for cohort in (1, 3) * 4]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert set(answers[1]) == {204}
        assert set(answers[3]) == {"internal-error"}
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 40}


@pytest.mark.long  # in `make test`: tests/unit/collector/test_process.py
def test_a_folder_without_collections_is_not_served_in_silence(tmp_path: Path) -> None:
    (tmp_path / "collections").mkdir()
    with collector(tmp_path) as process:
        warned = [each for each in process.log if each["level"] == "warning"]
        assert [each["event"] for each in warned] == ["no-collections"]


def test_the_log_is_json_and_its_times_are_minutes(stopped: Stopped) -> None:
    events = [json.loads(line) for line in stopped.lines]
    names = [each["event"] for each in events]
    assert names[: names.index("listening")] == ["lint"] * names.index("listening")
    assert all(len(each["time"]) == len("2026-11-16T08:31Z") for each in events)
    assert set(names) <= {"lint", "listening", "retention", "stopping", "stopped"}


def test_a_process_of_the_support_code_says_when_it_does_not_listen(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "raise SystemExit(4)"])
    with pytest.raises(AssertionError, match="no collector"):
        process.wait_until_listening()
    process.close()


def core_limit(pid: int) -> list[str]:
    """The soft and the hard limit on core files of a process."""
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (line,) = [line for line in limits if line.startswith("Max core file size")]
    return line.split()[4:6]


@pytest.mark.parametrize("verb", ["collect", "serve"])
def test_a_crash_leaves_no_reports_in_a_core_file(tmp_path: Path, verb: str) -> None:
    with running(collect_command(tmp_path, verb=verb)) as process:
        pids = [process.process.pid]
        pids += [line["pid"] for line in process.log if line["event"] == "started"]
        assert len(pids) == (2 if verb == "serve" else 1)
        assert [core_limit(pid) for pid in pids] == [["0", "0"]] * len(pids)
        assert process.end() == 0


def test_ipv6_is_listened_on_and_limited_by_its_prefix(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    try:
        bound("::1", 0).close()
    except OSError:
        pytest.skip("this machine has no ::1")

    def send(path: str, forwarded: str) -> int:
        connection = http.client.HTTPConnection("::1", process.port, timeout=PATIENCE)
        method, body = ("POST", encode_batch(batch())) if path == "/v1/reports" else ("GET", None)
        headers = {"content-type": BINARY} | ({"x-forwarded-for": forwarded} if forwarded else {})
        connection.request(method, path, body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    with collector(tmp_path, "--host", "::1", "--rate", "1e-9", "--forwarded") as process:
        assert [line["host"] for line in process.log if line["event"] == "listening"] == ["::1"]
        assert send("/v1/reports", "2001:db8:1:2:3::4") == 204
        assert send("/v1/reports", "2001:db8:1:2:ffff::9") == 429  # a neighbour in its /64
        assert send("/v1/reports", "2001:db8:2:2::1") == 204
        assert [send("/healthz", "") for _ in range(3)] == [200] * 3
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 2}


def test_junk_makes_a_bounded_log(tmp_path: Path) -> None:
    """Also where a bug of ours lets strangers have a line written with each request."""
    junk = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # TLS to a plain port
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/reports HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",  # and goes away
        b"GET /docs HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET //[x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:b HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(90),
        b"GET / HTTP/1.1\r\n\r\n" * 40,
    )
    command = planted_command("poisoned-cell", tmp_path)
    with running(command) as process, client_of(process) as client:
        before = len(process.text)
        for number in range(60 * len(junk)):
            if number % len(junk) == 0:
                assert client.send(batch([Report(3, 1)])).code == "internal-error"
            with socket.create_connection(("127.0.0.1", process.port), PATIENCE) as connection:
                connection.sendall(junk[number % len(junk)])
                if number % 2:  # else it goes away with what was said unread: a reset
                    connection.settimeout(PATIENCE)
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(65536)
        assert client.send(batch()).status == 204
        assert process.end() == 0
    lines = process.text[before:]
    events = Counter(json.loads(line)["event"] for line in lines)
    assert events["commit-failed"] == MAX_LINES  # of 60
    assert max(events.values()) == MAX_LINES
    assert sum(map(len, lines)) < 20_000
