"""One deadline for an upload: the name, all addresses, the handshake, the request, the answer."""

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.transport import Aborted, Answer, HttpTransport
from rappor.wire import encode_batch
from support.client import LIMIT, Collector, FakeClock, batch, homepage
from support.waiting import wait_for

BODY = encode_batch(batch())


@pytest.fixture
def silent() -> Iterator[int]:
    """A port on which connections are neither taken nor refused: its queue is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(16):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            assert waiting.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS)
        yield port


def addresses(monkeypatch: pytest.MonkeyPatch, ports: list[int]) -> None:
    """Let `localhost` have these addresses."""
    real = socket.getaddrinfo

    def look_up(host: str, *given: Any, **named: Any) -> Any:
        if named.get("flags") == socket.AI_NUMERICHOST:
            return real(host, *given, **named)
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("127.0.0.1", port)) for port in ports]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def outcome(action: Callable[[], Answer]) -> object:
    """What comes of it within the limit of a test; it may not end by itself."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(action())
        except OSError as error:
            found.append(error)

    threading.Thread(target=run, daemon=True).start()
    return wait_for(lambda: found, "the end of the upload")[0]


def test_a_name_with_many_silent_addresses_takes_no_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    """With the limit for each of them it would take hours, and the test would not end."""
    addresses(monkeypatch, [silent] * 50_000)
    transport = HttpTransport("http://localhost", clock=FakeClock())
    assert isinstance(outcome(lambda: transport.post(BODY, 0.1)), TimeoutError)


class FirstInHaste(FakeClock):
    """A clock on which the first address has a moment, and the next one minutes."""

    looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return 0.0 if self.looks <= 3 else -LIMIT  # the start, the name, the first address


def test_a_silent_address_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    collector = Collector()
    try:
        good = int(collector.url.rpartition(":")[2])
        addresses(monkeypatch, [silent, good])
        transport = HttpTransport("http://localhost", clock=FirstInHaste())
        assert transport.post(BODY, 0.1) == Answer(204)
    finally:
        collector.close()


def test_an_address_that_refuses_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector()
    with socket.socket() as taken:  # bound, and nobody listens there
        taken.bind(("127.0.0.1", 0))
        addresses(monkeypatch, [taken.getsockname()[1], int(collector.url.rpartition(":")[2])])
        transport = HttpTransport("http://localhost", clock=FakeClock())
        assert transport.post(BODY, LIMIT) == Answer(204)
    collector.close()


def test_a_name_that_is_never_resolved_takes_no_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    calls: list[str] = []

    def hang(host: str, *_given: Any, **named: Any) -> Any:
        if named.get("flags") == socket.AI_NUMERICHOST:
            raise socket.gaierror
        calls.append(host)
        release.wait(LIMIT)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    transport = HttpTransport("https://reports.example.org", clock=FakeClock())
    try:
        for _ in range(3):
            assert isinstance(outcome(lambda: transport.post(BODY, 0.01)), TimeoutError)
        assert calls == ["reports.example.org"]  # one thread waits, however often it is tried
    finally:
        release.set()


def test_a_handshake_that_never_begins_takes_no_longer_than_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:  # it never says a word of TLS
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        transport = HttpTransport(url, clock=FakeClock())
        assert isinstance(outcome(lambda: transport.post(BODY, 0.1)), TimeoutError)


def test_a_connection_that_is_not_made_ends_when_sending_is_stopped(silent: int) -> None:
    transport = HttpTransport(f"http://127.0.0.1:{silent}", clock=FakeClock())
    found: list[BaseException] = []

    def post() -> None:
        try:
            transport.post(BODY, LIMIT)
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=post)
    thread.start()
    wait_for(lambda: transport._gate.sockets, "the attempt to connect")
    transport.abort()
    transport.resume()
    wait_for(lambda: found, "the end of the upload")
    thread.join(LIMIT)
    assert isinstance(found[0], Aborted)


def test_what_was_connected_before_sending_was_stopped_sends_nothing_after_it_goes_on() -> None:
    collector = Collector()
    try:
        transport = HttpTransport(collector.url, clock=FakeClock())
        with contextlib.closing(transport.connect(LIMIT)) as connection:
            transport.abort()
            transport.resume()
            with pytest.raises(Aborted):
                connection.send(BODY)
        assert transport.post(BODY, LIMIT) == Answer(204)
        assert len(collector.headers) == 1
    finally:
        collector.close()


def test_opting_out_and_in_while_an_upload_connects_sends_nothing_from_before(
    tmp_path: Path, silent: int
) -> None:
    given: dict[str, Any] = {"consent": True, "clock": FakeClock(), "jitter": 0}
    given["upload_to"] = f"http://127.0.0.1:{silent}"
    with Client.open(tmp_path, [homepage()], **given) as client:
        client.report("homepage", "a.org")
        wait_for(lambda: client._transport._gate.sockets, "the attempt to connect")
        assert client.opt_out()
        assert client.opt_in()
        assert client.status().waiting == 0
        assert client.preview().sent == ()  # nothing of it was ever about to leave
