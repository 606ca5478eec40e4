"""The log: JSON lines on standard error with nothing in them that links to a client.

A line is one of our events with its facts. Of a library's message only its source is logged, and of
an exception only its type and the lines of code that it passed through, because both could quote a
request. Times are cut to the minute. Of an event that repeats, only a few lines a minute are logged
and the others are counted, so that strangers cannot fill the disk.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

LOGGER = "rappor.collector"
LEFT_OUT = "left-out"
_LEFT_OUT = "rappor_left_out"  # attribute of a record: the lines left out before it
_EVENT = "rappor_event"  # attribute of a record: the facts of one of our events
MAX_LINES = 10  # of one event in a window
WINDOW_SECONDS = 60.0


def event(name: str, level: int = logging.INFO, /, **facts: str | int | float | bool) -> None:
    """Log an event: its name, and facts that no client can influence."""
    logging.getLogger(LOGGER).log(level, name, extra={_EVENT: facts})


def failure(name: str, error: BaseException) -> None:
    """Log an exception without its message, which could quote what a client sent."""
    logging.getLogger(LOGGER).error(
        name, exc_info=(type(error), error, error.__traceback__), extra={_EVENT: {}}
    )


class RepeatFilter(logging.Filter):
    """Passes a few lines of each event in a minute and counts the others.

    An event is one of our names, or a line in a library's code, so strangers cannot add events.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Use this clock."""
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int]] = {}  # since when, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        name = _name(record)
        if name == LEFT_OUT:
            return True
        now = self._clock()
        with self._lock:
            since, lines = self._seen.get(name, (now, 0))
            if now - since >= WINDOW_SECONDS:
                setattr(record, _LEFT_OUT, max(0, lines - MAX_LINES))
                since, lines = now, 0
            self._seen[name] = since, lines + 1
        return lines < MAX_LINES

    def left_out(self) -> dict[str, int]:
        """The lines left out of each event in a minute that is over; each is returned once."""
        now, found = self._clock(), {}
        with self._lock:
            for name, (since, lines) in list(self._seen.items()):
                if now - since >= WINDOW_SECONDS:
                    del self._seen[name]
                    if lines > MAX_LINES:
                        found[name] = lines - MAX_LINES
        return found


def _name(record: logging.LogRecord) -> str:
    if isinstance(getattr(record, _EVENT, None), dict):
        return str(record.msg)
    return f"library {record.name}:{record.lineno}"


def report_left_out() -> None:
    """Log how many lines were left out; to be called regularly."""
    for handler in logging.getLogger().handlers:
        for sieve in handler.filters:
            if isinstance(sieve, RepeatFilter):
                for name, lines in sieve.left_out().items():
                    event(LEFT_OUT, logging.WARNING, of=name, lines=lines)


class JsonLinesFormatter(logging.Formatter):
    """Formats a record as one JSON object without text of others."""

    def format(self, record: logging.LogRecord) -> str:
        """Time to the minute, level, event, and the facts of one of our events."""
        minute = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": minute.strftime("%Y-%m-%dT%H:%MZ"),
            "level": record.levelname.lower(),
        }
        facts = getattr(record, _EVENT, None)
        if isinstance(facts, dict):
            line |= {"event": str(record.msg), **facts}
        else:
            line |= {"event": "library", "logger": record.name, "line": record.lineno}
        if lines := getattr(record, _LEFT_OUT, 0):
            line |= {"left_out": lines}
        if record.exc_info is not None and record.exc_info[1] is not None:
            line |= _outline(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def _outline(error: BaseException) -> dict[str, Any]:
    """The type of an exception and the functions that it passed through, without its message."""
    passed = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "at": [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in passed[-8:]],
    }


def _short(filename: str) -> str:
    return "/".join(filename.replace("\\", "/").split("/")[-2:])


def set_up(level: str, stream: TextIO | None = None) -> None:
    """Send all logging of this process through `JsonLinesFormatter` and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLinesFormatter())
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a failure to log must not be logged
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = name != "uvicorn.access"
        library.setLevel(logging.ERROR)
