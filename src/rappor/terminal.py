"""Text for terminals: characters that a stream can show, percentages and aligned tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from typing import TextIO

# Replacements for terminals without UTF-8.
_PLAIN = str.maketrans(
    {
        "ε": "eps",
        "∞": "inf",
        "█": "#",
        "▌": "-",
        "◄": "<-",
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


def showable(text: str, stream: TextIO | None) -> str:
    """The text in characters that the stream can show; unchanged if there is no stream."""
    if stream is None:
        return text
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = _RAISED.sub(lambda found: f"^{found[0].translate(_LOWERED)}", text)
        return plain.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def percent(share: float) -> str:
    """A share as a percentage with three significant digits."""
    return "more than all" if share > 1 else f"{100 * share:.3g} %"


def percent_up(share: float) -> str:
    """A share as a percentage with three significant digits, rounded up."""
    if share > 1:
        return "more than all"
    with localcontext(Context(prec=3, rounding=ROUND_CEILING)):
        return f"{float(+Decimal(100 * share)):g} %"


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
