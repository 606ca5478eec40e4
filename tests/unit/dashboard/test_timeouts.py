"""Whoever is slow is not waited for without end: real sockets, with limits of a moment."""

import multiprocessing
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
import uvicorn
from starlette.responses import Response

from rappor.dashboard import app as app_module
from rappor.dashboard.app import build
from rappor.dashboard.auth.roles import PUBLIC
from rappor.dashboard.candidates import candidate_upload
from rappor.dashboard.context import Context
from rappor.dashboard.limits import no_core_dumps
from rappor.dashboard.page_access import Page
from rappor.dashboard.timeouts import PatientProtocol
from rappor.host import bound
from support.waiting import wait_for

LARGE = 64 * 2**20  # more than sockets hold


class Lasting(PatientProtocol):
    header_seconds = reading_seconds = 1e6


class Hasty(Lasting):
    """Only for tests that never send whole headers: a busy machine may take longer to send them."""

    header_seconds = 0.05


class HastyAfterHeaders(Lasting):
    """Waits a moment only for the headers of the second request."""

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.header_seconds = 0.05


class HastyReading(Lasting):
    reading_seconds = 0.05


def large(_desk: object, _request: object, _visitor: object) -> Response:
    return Response(b"x" * LARGE)


def form(_desk: object, _request: object, _visitor: object) -> Response:
    return Response(b"read")


PAGES = (
    Page(path="/large", endpoint=large, roles=PUBLIC, name="large"),
    Page(path="/form", endpoint=form, roles=PUBLIC, name="form", methods=("POST",)),
)


class Serving:
    """A server in a thread, on a port of its own."""

    def __init__(self, context: Context, protocol: type[PatientProtocol]) -> None:
        address = bound("127.0.0.1", 0)
        self.port = address.getsockname()[1]
        app = build(context, PAGES)
        self.server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                timeout_keep_alive=10**6,  # no test waits for uvicorn's own limit
            )
        )
        self._thread = threading.Thread(target=self.server.run, args=([address],))
        self._thread.start()
        wait_for(lambda: self.server.started)

    def close(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(300)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=300)


@pytest.fixture
def serving(context: Context, request: pytest.FixtureRequest) -> Iterator[Serving]:
    """A server with the protocol that the test names."""
    with closing(Serving(context, request.param)) as made:
        yield made


def with_protocol(protocol: type[PatientProtocol]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("serving", [protocol], indirect=True)


def is_ended(line: socket.socket) -> bool:
    """Whether the other end lets go; waits for it."""
    return read(line) == 0


@with_protocol(Hasty)
@pytest.mark.parametrize("sent", [b"", b"GET /large HTTP/1.1\r\nHost: 127.0"])
def test_headers_that_never_come_end_the_connection(serving: Serving, sent: bytes) -> None:
    with serving.connect() as line:
        with suppress(ConnectionError):  # ended before anything was sent
            line.sendall(sent)
        assert is_ended(line)
    wait_for(lambda: not serving.server.server_state.connections)


@with_protocol(HastyAfterHeaders)
def test_line_ends_between_requests_do_not_hold_a_connection(serving: Serving) -> None:
    """They stop uvicorn's clock of an idle connection, which only a request starts again."""
    with serving.connect() as line:
        line.sendall(b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 ")
        line.sendall(b"\r\n")
        wait_for(lambda: not serving.server.server_state.connections)


@pytest.mark.slow
@with_protocol(HastyReading)
def test_an_answer_that_is_never_read_ends_the_connection(serving: Serving) -> None:
    with serving.connect() as line:
        line.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_for(lambda: serving.server.server_state.total_requests)
        wait_for(lambda: not serving.server.server_state.connections)
        assert read(line) < LARGE


def read(line: socket.socket) -> int:
    """How many bytes come before the end."""
    found = 0
    try:
        while more := line.recv(2**20):
            found += len(more)
    except ConnectionResetError:
        pass
    return found


@pytest.mark.slow
@with_protocol(Lasting)
def test_a_body_that_never_comes_is_answered(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "BODY_SECONDS", 0.05)
    with serving.connect() as line:
        line.sendall(
            b"POST /form HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n\r\na="
        )
        assert line.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.slow
@with_protocol(Lasting)
def test_a_large_answer_that_is_read_arrives_whole(serving: Serving) -> None:
    with serving.connect() as line:
        line.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert read(line) > LARGE


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="no such limit on this system")
def test_an_upload_that_computes_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel: the process itself is busy, and nobody has to watch it."""

    def compute(_data: bytes, _form: str) -> None:
        while True:
            pass

    monkeypatch.setattr(candidate_upload, "parse_upload", compute)
    ours, theirs = multiprocessing.Pipe()
    given = (theirs, candidate_upload.MAX_MEMORY, 1)
    process = multiprocessing.get_context("fork").Process(target=candidate_upload._main, args=given)
    process.start()
    theirs.close()
    ours.send((b"a", "lines"))
    process.join(300)
    ended_by = process.exitcode
    process.kill()
    assert ended_by in (-signal.SIGXCPU, -signal.SIGKILL)
    with pytest.raises(EOFError):
        ours.recv()


def _core_limit(line: object) -> None:
    import resource

    no_core_dumps()
    line.send(resource.getrlimit(resource.RLIMIT_CORE))  # type: ignore[attr-defined]


def test_a_crash_leaves_no_copy_of_the_memory() -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_core_limit, args=(theirs,))
    process.start()
    assert ours.recv() == (0, 0)
    process.join(300)
