"""The log: JSON lines on standard error that carry nothing linkable (SECURITY: never written).

A line is an event of ours with numbers and words of ours. Messages of libraries are reduced to
where they came from, exceptions to their types and the lines that they passed through: both can
quote a request. Times are cut to the minute.
"""

from __future__ import annotations

import datetime
import json
import logging
import sys
import traceback
from typing import Any, TextIO

LOGGER = "rappor.collector"
_EVENT = "rappor_event"  # the attribute of a record that is an event of ours


def event(name: str, level: int = logging.INFO, /, **facts: str | int | float | bool) -> None:
    """Log an event: its name and facts that no client can have a say in."""
    logging.getLogger(LOGGER).log(level, name, extra={_EVENT: facts})


def failure(name: str, error: BaseException) -> None:
    """Log an exception without its message, which might quote what a client sent."""
    logging.getLogger(LOGGER).error(
        name, exc_info=(type(error), error, error.__traceback__), extra={_EVENT: {}}
    )


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
