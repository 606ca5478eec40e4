"""Opting out among real processes, forks and kills: nothing from before it leaves after it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client, consent
from rappor.client.problems import REFUSALS, UNTRUSTED
from support.client import be_patient, homepage, start
from support.waiting import LIMIT, wait_for
from support.watched import Hold, Watched


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)
    monkeypatch.setattr(consent, "AT_EXIT", 0.2)  # opting out says False early, and is repeated
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    command += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(cert)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("openssl made no certificate")
    return cert, key


@pytest.fixture
def collector(certificate: tuple[Path, Path]) -> Iterator[Watched]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    made = Watched(context)
    yield made
    made.close()


COLLECTIONS = [
    homepage(name=name, reports_per_period=9, max_values=99) for name in ("before", "after")
]
HOST = """
consent.AT_EXIT = 0.2
made = [homepage(name=name, reports_per_period=9, max_values=99) for name in ("before", "after")]
client = Client.open(
    sys.argv[1], made, consent=True, upload_to=sys.argv[2], ca_file=sys.argv[3], jitter=0
)
def report(name, times):
    for _ in range(times):
        client.report(name, "a.org")
for line in sys.stdin:
    word = line.strip()
    found = None
    if word == "report":
        report("before", 3)
    elif word == "fork":
        found = os.fork()
        if not found:
            report("before", 3)
            time.sleep(600)  # it is killed long before
            os._exit(0)
    elif word == "out":
        found = client.opt_out()
    elif word == "out and in":
        found = client.opt_out()
        client.opt_in()
    print(json.dumps(found), flush=True)
"""


class Host:
    """An application in a process of its own, which does what it is told."""

    def __init__(self, directory: Path, url: str, ca_file: Path) -> None:
        self.process = start(HOST, directory, url, ca_file)
        self.children: list[int] = []

    def tell(self, word: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        if word == "fork":
            self.children.append(found)
        return found

    def kill(self) -> None:
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.kill()
        self.process.communicate(timeout=LIMIT)


def one_round(seed: int, directory: Path, collector: Watched, ca_file: Path) -> str:
    """Reports wait or are on their way; a person opts out; how, is drawn."""
    draw = random.Random(seed)
    hold: Hold = draw.choice(["nothing", "handshake", "handshake", "answer"])
    who = draw.choice(["host", "host, and in at once", "another process"])
    ends = draw.choice(["lives", "lives", "killed before", "killed after"])
    forks = draw.random() < 0.4
    collector.hold = hold
    accepted = collector.accepted
    given: dict[str, Any] = {"consent": True, "upload_to": collector.url, "ca_file": str(ca_file)}
    host = Host(directory, collector.url, ca_file)
    other = Client.open(directory, COLLECTIONS, **given)
    try:
        host.tell("report")
        if forks:
            host.tell("fork")
        if draw.random() < 0.8:
            wait_for(lambda: collector.accepted > accepted, "an upload")
        if ends == "killed before":
            host.process.kill()
            host.process.wait()
            who = "another process"

        def opt_out() -> bool:
            if who == "another process":
                return other.opt_out()
            done = host.tell("out and in" if "in" in who else "out")
            assert isinstance(done, bool)
            return done

        if not opt_out():  # one is on its way: it may arrive, and then no other
            collector.hold = "nothing"
            wait_for(opt_out, "opting out")
        before = collector.mark()
        if ends == "killed after":
            host.process.kill()
            host.process.wait()
        collector.hold = "nothing"
        assert other.opt_in()
        wait_for(lambda: other.opt_in() and not (directory / "clearing").exists())
        with contextlib.suppress(FileNotFoundError):
            (directory / "retry").unlink()  # what may leave does it now
        other.report("after", "a.org")
        assert wait_for(lambda: "after" in collector.arrived[before:] or other.flush(1.0))
        other.flush(LIMIT)
        late = collector.arrived[before : collector.mark()]
        assert "before" not in late, (seed, hold, who, ends, forks)
        assert "after" in late
    finally:
        other.close()
        host.kill()
    return f"{hold}, {who}"


@pytest.mark.parametrize("rounds", [6, pytest.param(100, marks=pytest.mark.long)])
def test_nothing_from_before_an_opt_out_leaves_after_it(
    tmp_path: Path, collector: Watched, certificate: tuple[Path, Path], rounds: int
) -> None:
    kinds = {
        one_round(number, tmp_path / str(number), collector, certificate[0])
        for number in range(rounds)
    }
    assert len(kinds) > 3


@pytest.mark.parametrize("again", [1, 3])
def test_a_report_in_the_handshake_does_not_leave_after_opting_out_and_in(
    tmp_path: Path, collector: Watched, certificate: tuple[Path, Path], again: int
) -> None:
    """In one process; by opting out once, or several times."""
    collector.hold = "handshake"
    given: dict[str, Any] = {"consent": True, "upload_to": collector.url, "jitter": 0}
    given["ca_file"] = str(certificate[0])
    with Client.open(tmp_path, COLLECTIONS, **given) as client:
        client.report("before", "a.org")
        wait_for(lambda: collector.accepted == 1, "the connection")
        for _ in range(again):
            assert client.opt_out()
            assert client.opt_in()
        collector.hold = "nothing"
        client.report("after", "a.org")
        wait_for(lambda: client.flush(LIMIT), "the upload")
    assert collector.arrived == ["after"]
    assert client.status().batches["sent"] == 1


def test_a_connection_of_another_process_does_not_keep_from_opting_out(
    tmp_path: Path, collector: Watched, certificate: tuple[Path, Path]
) -> None:
    """Its upload is in the handshake: nothing of it can leave, and that is known at once."""
    collector.hold = "handshake"
    host = Host(tmp_path, collector.url, certificate[0])
    try:
        host.tell("report")
        wait_for(lambda: collector.accepted == 1, "the connection")
        with Client.open(tmp_path, COLLECTIONS, consent=True) as client:
            assert client.opt_out()
            assert client.opt_in()
        collector.hold = "nothing"
        wait_for(lambda: not list((tmp_path / "outbox").iterdir()))
        assert host.tell("out")
        assert collector.mark() == 0
    finally:
        host.kill()


def test_nothing_leaves_to_a_collector_whose_certificate_is_not_trusted(
    tmp_path: Path, collector: Watched
) -> None:
    given: dict[str, Any] = {"consent": True, "upload_to": collector.url, "jitter": 0}
    with Client.open(tmp_path, COLLECTIONS, **given) as client:
        client.report("before", "a.org")
        wait_for(lambda: "SSLCertVerificationError" in str(client.status().upload))
        assert client.status().waiting == 1
        assert f"{REFUSALS[UNTRUSTED]}." in str(client.status().upload)
    assert collector.accepted
    assert collector.mark() == 0


@pytest.mark.parametrize("forks", [False, True])
def test_what_a_killed_process_had_not_sent_never_leaves(tmp_path: Path, forks: bool) -> None:
    """Its bytes wait in the operating system; a child that it forked keeps nothing alive."""
    code = """
    client = Client.open(sys.argv[1], [homepage()], consent=True, upload_to=sys.argv[2])
    body = b"x" * 300_000
    threading.Thread(target=client._transport.post, args=(body, LIMIT), daemon=True).start()
    for line in sys.stdin:
        child = 0
        if sys.argv[3] == "True":
            ready, here = os.pipe()
            child = os.fork()
            if not child:
                os.write(here, b".")  # what a child does after a fork is done
                time.sleep(600)  # it is killed long before
                os._exit(0)
            os.read(ready, 1)
        print(child, flush=True)
    """
    child = 0
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        process = start(code, tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", forks)
        try:
            accepted, _ = server.accept()
            with accepted:
                data = b""
                while not data.endswith(b"xxxx"):  # the body is in the operating system's hands
                    data += accepted.recv(1000)
                got = len(data)
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("go on\n")
                process.stdin.flush()
                child = int(process.stdout.readline())
                process.kill()
                process.wait()
                accepted.settimeout(LIMIT)
                with contextlib.suppress(ConnectionResetError):
                    while part := accepted.recv(100_000):
                        got += len(part)
            assert got < 300_000
        finally:
            if child:
                os.kill(child, signal.SIGKILL)
            process.kill()
            process.communicate(timeout=LIMIT)
