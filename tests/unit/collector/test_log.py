"""The log: lines of JSON that hold nothing of a request."""

import io
import json
import logging

import pytest

from rappor.collector import log


@pytest.fixture
def lines(logging_restored: None) -> io.StringIO:
    stream = io.StringIO()
    log.set_up("info", stream)
    return stream


def test_an_event_is_a_line_of_json(lines: io.StringIO) -> None:
    log.event("listening", port=80)
    said = json.loads(lines.getvalue())
    assert said.pop("time")[-4:].endswith("Z")
    assert said == {"level": "info", "event": "listening", "port": 80}


def test_a_librarys_message_is_reduced_to_where_it_came_from(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").error("GET /%s", "secret")
    logging.getLogger("asyncio").warning("secret")
    logging.getLogger("uvicorn.access").error("secret")
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(each["event"], each["logger"]) for each in said] == [
        ("library", "uvicorn.error"),
        ("library", "asyncio"),
    ]
    assert "secret" not in lines.getvalue()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(name: str, line: int = 1, ours: bool = True) -> logging.LogRecord:
    made = logging.LogRecord("lib", logging.ERROR, "file", line, name, None, None)
    if ours:
        made.rappor_event = {}
    return made


def test_an_event_has_ten_lines_a_minute_and_the_others_are_counted() -> None:
    clock = Clock()
    sieve = log.RepeatFilter(clock)
    assert [sieve.filter(record("request-failed")) for _ in range(500)] == [True] * 10 + [
        False
    ] * 490
    assert sieve.filter(record("disk-full"))  # another event has lines of its own
    clock.now = 59.0
    assert not sieve.filter(record("request-failed"))
    assert sieve.left_out() == {}
    clock.now = 60.0
    assert sieve.left_out() == {"request-failed": 491}
    assert sieve.left_out() == {}
    assert sieve.filter(record("request-failed"))


def test_the_next_line_says_what_was_left_out_where_nobody_asked() -> None:
    clock = Clock()
    sieve = log.RepeatFilter(clock)
    for _ in range(30):
        sieve.filter(record("ended"))
    clock.now = 61.0
    later = record("ended")
    assert sieve.filter(later)
    assert json.loads(log.JsonLinesFormatter().format(later))["left_out"] == 20


def test_lines_of_libraries_are_told_apart_by_place_and_not_by_what_strangers_send() -> None:
    sieve = log.RepeatFilter(Clock())
    for number in range(1000):
        sieve.filter(record(f"bad request {number}", line=7, ours=False))
    assert len(sieve._seen) == 1
    assert sieve.filter(record("other", line=8, ours=False))


@pytest.mark.usefixtures("logging_restored")
def test_what_was_left_out_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    log.set_up("info", stream)
    for _ in range(200):
        log.event("request-failed")
    monkeypatch.setattr(log, "WINDOW_SECONDS", 0.0)
    log.report_left_out()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == 11
    assert (lines[-1]["event"], lines[-1]["of"]) == ("left-out", "request-failed")
    assert lines[-1]["lines"] == 190
