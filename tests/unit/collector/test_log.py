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
