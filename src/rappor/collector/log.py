"""The log: JSON lines on standard error that carry nothing linkable (SECURITY: never written).

A line is an event of ours with numbers and words of ours. Messages of libraries are reduced to
where they came from, exceptions to their types and the lines that they passed through: both can
quote a request. Times are cut to the minute. An event that comes again and again is left out after
a few lines a minute, and counted: strangers cannot fill a disk with it.
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
_LEFT_OUT = "rappor_left_out"  # the attribute of a record: lines before it that were left out
_EVENT = "rappor_event"  # the attribute of a record that is an event of ours
MOST_LINES = 10  # of one event
WINDOW_SECONDS = 60.0


def event(name: str, level: int = logging.INFO, /, **facts: str | int | float | bool) -> None:
    """Log an event: its name and facts that no client can have a say in."""
    logging.getLogger(LOGGER).log(level, name, extra={_EVENT: facts})


def failure(name: str, error: BaseException) -> None:
    """Log an exception without its message, which might quote what a client sent."""
    logging.getLogger(LOGGER).error(
        name, exc_info=(type(error), error, error.__traceback__), extra={_EVENT: {}}
    )


class Sieve(logging.Filter):
    """Lets a few lines of each event pass in a minute, and counts the others.

    An event is a name of ours, or a place in the code of a library: strangers add none.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Count by this clock."""
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
                setattr(record, _LEFT_OUT, max(0, lines - MOST_LINES))
                since, lines = now, 0
            self._seen[name] = since, lines + 1
        return lines < MOST_LINES

    def left_out(self) -> dict[str, int]:
        """How many lines of each event were left out in a minute that is over; said once."""
        now, found = self._clock(), {}
        with self._lock:
            for name, (since, lines) in list(self._seen.items()):
                if now - since >= WINDOW_SECONDS:
                    del self._seen[name]
                    if lines > MOST_LINES:
                        found[name] = lines - MOST_LINES
        return found


def _name(record: logging.LogRecord) -> str:
    if isinstance(getattr(record, _EVENT, None), dict):
        return str(record.msg)
    return f"library {record.name}:{record.lineno}"


def report_left_out() -> None:
    """Say what was left out of the log, if there is something; to be called now and then."""
    for handler in logging.getLogger().handlers:
        for sieve in handler.filters:
            if isinstance(sieve, Sieve):
                for name, lines in sieve.left_out().items():
                    event(LEFT_OUT, logging.WARNING, of=name, lines=lines)


class JsonLines(logging.Formatter):
    """A record as one JSON object; foreign text never passes."""

    def format(self, record: logging.LogRecord) -> str:
        """Time to the minute, level, event, and the facts of an event of ours."""
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
    """The type of an exception and the functions that it passed, without its message."""
    passed = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "at": [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in passed[-8:]],
    }


def _short(filename: str) -> str:
    return "/".join(filename.replace("\\", "/").split("/")[-2:])


def set_up(level: str, stream: TextIO | None = None) -> None:
    """Send every logger of this process through `JsonLines`, and nothing anywhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Sieve())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a full or closed log must not write to it once more
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = name != "uvicorn.access"
        library.setLevel(logging.ERROR)
