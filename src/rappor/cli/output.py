"""What the command prints: tables, bars and JSON, readable on any terminal."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rappor.terminal import percent, percent_up, showable, table

__all__ = [
    "Ticker",
    "bar",
    "finite",
    "note",
    "paint",
    "percent",
    "percent_up",
    "say",
    "say_json",
    "showable",
    "table",
]


def say(text: str = "") -> None:
    """Print one result line to standard output."""
    print(showable(text, sys.stdout))


def note(text: str) -> None:
    """Print one line to standard error, if it can be written: anything that is not a result."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(showable(text, sys.stderr), file=sys.stderr, flush=True)


def say_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document: full-precision floats, ∞ as the string "inf"."""
    print(json.dumps(finite(document), indent=2, allow_nan=False, ensure_ascii=True))


def finite(item: Any) -> Any:
    """The item with every ∞ in it replaced by the string "inf"."""
    if isinstance(item, Mapping):
        return {str(key): finite(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [finite(value) for value in item]
    return "inf" if item == math.inf else item


def bar(share: float, width: int = 32) -> str:
    """A horizontal bar for a share between 0 and 1, to half a character."""
    halves = round(2 * width * min(max(share, 0.0), 1.0)) or (share > 0)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def paint(text: str, code: str) -> str:
    """The text in a colour or weight; plain if the terminal or NO_COLOR says so."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not sys.stdout.isatty() else f"\x1b[{code}m{text}\x1b[0m"


class Ticker:
    """A progress line on standard error; shown only on a terminal, and only for long work."""

    _AFTER, _EVERY = 1.0, 0.1  # seconds

    def __init__(self) -> None:
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + self._AFTER
        self._drawn = False

    @property
    def on(self) -> bool:
        """Whether standard error is a terminal."""
        return self._on

    def __call__(self, text: str) -> None:
        """Replace the line."""
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next, self._drawn = now + self._EVERY, True
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(showable(f"\r\x1b[K{text[:width]}", sys.stderr))
        sys.stderr.flush()

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
