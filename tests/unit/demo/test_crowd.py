"""Batches against a server that answers as it is told, and signals that come at a bad time."""

import http.server
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rappor.demo import DemoError
from rappor.demo.crowd import BatchSender
from rappor.demo.interrupts import Interrupts
from rappor.wire import PROBLEM_JSON, PROBLEMS, problem_json


@contextmanager
def answering(*codes: str | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn, None for "stored"; its address, what it got."""
    left, got = list(codes), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            code = left.pop(0)
            body = b"" if code is None else problem_json(code)
            self.send_response(204 if code is None else PROBLEMS[code].status)
            self.send_header("content-type", PROBLEM_JSON)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join(300)


def test_a_batch_is_sent_again_until_it_is_stored() -> None:
    slept: list[float] = []
    with answering("overloaded", "shutting-down", None) as (url, got):
        BatchSender(url, sleep=slept.append).post(b"batch")
    assert got == [b"batch"] * 3
    assert len(slept) == 2


@pytest.mark.parametrize("code", ["malformed-batch", "wrong-params", "store-full"])
def test_what_waiting_does_not_help_is_said_at_once(code: str) -> None:
    with answering(code) as (url, got), pytest.raises(DemoError, match=code) as caught:
        BatchSender(url).post(b"batch")
    assert PROBLEMS[code].title in str(caught.value)
    assert len(got) == 1


@pytest.mark.slow
def test_patience_has_an_end() -> None:
    with answering(*["overloaded"] * 50) as (url, _), pytest.raises(DemoError, match="503"):
        BatchSender(url, patience=0.3).post(b"batch")


def test_nobody_there_is_an_error_in_words() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # nobody else gets this port, and nobody listens
        mail = BatchSender(f"http://127.0.0.1:{bound.getsockname()[1]}", patience=0.2)
        with pytest.raises(DemoError, match=r"no answer from the server: .*refused"):
            mail.post(b"batch")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_interrupts_and_later_ones_do_not(number: signal.Signals) -> None:
    inherited = signal.signal(number, signal.default_int_handler)  # ignored in the background
    try:
        with Interrupts() as interrupts:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
            signal.raise_signal(number)
            assert interrupts.came
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, inherited)


def test_a_signal_waits_while_something_is_being_started() -> None:
    started = []

    def start(interrupts: Interrupts) -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            started.append("server")

    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        start(interrupts)
    assert started == ["server"]
