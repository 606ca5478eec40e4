"""What the command prints: tables, bars and JSON, readable on any terminal."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from typing import Any, TextIO

# Replacements for terminals without UTF-8.
_PLAIN = str.maketrans(
    {
        "ε": "eps",
        "∞": "inf",
        "█": "#",
        "▌": "-",
        "·": ".",
        "─": "-",
        "±": "+/-",
        "→": "->",
        "×": "x",
        "≥": ">=",
        "≤": "<=",
        "α": "alpha",
        "—": "-",
        "…": "...",
        "’": "'",
        "χ": "chi",
        "–": "-",
        "−": "-",
        "§": "section ",
        "√": "sqrt ",
        "Σ": "sum ",
        "Π": "product ",
        "Φ": "Phi",
        "φ": "phi",
        "κ": "kappa",
        "λ": "lambda",
        "μ": "mu",
        "π": "pi",
        "ρ": "rho",
        "τ": "tau",
        "ψ": "psi",
        "∝": "~",
        "≈": "~",
        "≠": "!=",
        "‘": "'",
        "“": '"',
        "”": '"',
        "✓": "+",
        "■": "#",
        "□": ".",
        "\u00a0": " ",
    }
)
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def showable(text: str, stream: TextIO) -> str:
    """The text in characters that the stream can show."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = _RAISED.sub(lambda found: f"^{found[0].translate(_LOWERED)}", text)
        return plain.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return text


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


def percent(share: float) -> str:
    """A share as a percentage with three significant digits."""
    return "more than all" if share > 1 else f"{100 * share:.3g} %"


def percent_up(share: float) -> str:
    """A share as a percentage with three significant digits, rounded up."""
    if share > 1:
        return "more than all"
    with localcontext(Context(prec=3, rounding=ROUND_CEILING)):
        return f"{float(+Decimal(100 * share)):g} %"


def bar(share: float, width: int = 32) -> str:
    """A horizontal bar for a share between 0 and 1, to half a character."""
    halves = round(2 * width * min(max(share, 0.0), 1.0)) or (share > 0)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def table(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Rows as aligned lines; the first `left` columns are left-aligned, the others right.

    Cells are first written in characters that standard output can show: ε may become longer.
    """
    rows = [[showable(cell, sys.stdout) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


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
