"""Decoded results as text: what `print` and the command print."""

from __future__ import annotations

import math
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rappor.charts.numbers import (
    MINUS,
    NO_BREAK,
    show_count,
    show_difference,
    show_finding,
    show_part,
)
from rappor.checks import plural
from rappor.decoding.exports import described, shows_all
from rappor.decoding.options import CORRECTIONS, METHODS
from rappor.decoding.quality import too_few_reports
from rappor.terminal import percent, showable, table

if TYPE_CHECKING:
    from rappor.decoding.differences import Compared
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.result import Decoded, Row
    from rappor.decoding.smoothing import Shape

MAX_ROWS = 50
COMMAND = "--all prints, --output FILE writes every one"  # where the other rows are
_PYTHON = "`.rows` has every one"
_HEAD_WIDTH = 24  # of names of what is compared, above their columns
_MIN_WIDTH = 16  # of a string that is cut
CUT = "Strings that end in … are cut to this terminal; a file or a pipe gets them whole."
_HEAD = ("estimate", "95 % interval", "share", "SNR", "p (adjusted)")
NOUNS = {  # the noun for a row, for one tested value, and for several
    "string": ("string", "candidate", "candidates"),
    "category": ("category", "category", "categories"),
    "boolean": ("value", "value", "values"),
    "ordinal": ("range", "range", "ranges"),
    "bits": ("bit", "bit", "bits"),
}
_NONE_OF = {"string": "undetected mass", "category": "in no category", "ordinal": "in no range"}


def whole_text(decoded: Decoded) -> str:
    """The table, the summary, the notes and the warnings: what `rappor decode` prints."""
    first = too_few_reports(decoded)
    said = (*decoded.notes, *(text for text in decoded.warnings if text != first))
    table_lines = lines(decoded, every=False, others=_PYTHON)
    return _joined(table_lines, summary(decoded), said)


def histogram_text(histogram: Histogram) -> str:
    """The text of a histogram: that of its table, with mean and quantiles."""
    return whole_text(replace(histogram.decoded, histogram=histogram))


def whole_difference_text(compared: Compared) -> str:
    """The table, the summary, the notes and the warnings: what `rappor compare` prints."""
    table_lines = difference_lines(compared, every=False, others=_PYTHON)
    said = (*compared.notes, *compared.warnings)
    return _joined(table_lines, difference_summary(compared), said)


def _joined(table_lines: list[str], last: str, said: Iterable[str]) -> str:
    whole = [*table_lines, "", last, *(f"note: {text}" for text in said)]
    return "\n".join(showable(line, sys.stdout) for line in whole)


def lines(decoded: Decoded, *, every: bool, others: str = COMMAND) -> list[str]:
    """The rows as a table: at most 50, or all with `every`.

    If there are too few reports for categories or numbers, the first line says so.

    Args:
        decoded: the result.
        every: all rows.
        others: where rows are that are not shown.
    """
    few = too_few_reports(decoded)
    return [*([few, ""] if few else []), *_rows(decoded, every, others)]


def _rows(decoded: Decoded, every: bool, others: str) -> list[str]:
    whole = shows_all(decoded, every)
    rows: list[Row] = list(decoded.rows) if whole else decoded.detected
    one, *tested = NOUNS[decoded.kind]
    if not rows:
        return [f"Nothing was detected among {plural(decoded.candidates, *tested)}."]
    shown = rows if every else rows[:MAX_ROWS]
    head = (one, *_HEAD, "detected") if whole else (one, *_HEAD)
    drawn = align([head, *(_cells(row, decoded.reports, whole) for row in shown)])
    left = len(rows) - len(shown)
    if left:
        noun = "rows" if whole else "detected"
        drawn.append(f"… and {left:,} more {noun} ({others})")
    return drawn + in_words(decoded)


def in_words(decoded: Decoded) -> list[str]:
    """An empty line, then the mean and the quantiles of a histogram; nothing for other results."""
    if decoded.histogram is None or not decoded.reports:
        return []
    return ["", *_described(decoded.histogram)]


def _cells(row: Row, reports: int, whole: bool) -> tuple[str, ...]:
    value, interval = show_finding(row.estimate, *row.interval, row.detected, "count", reports)
    cells = (
        visible(row.string),
        value,
        interval,
        share_text(row),
        snr_text(row),
        p_text(row.adjusted_p_value),
    )
    return (*cells, "yes" if row.detected else "no") if whole else cells


def share_text(row: Row) -> str:
    """The share, or its upper limit where that is all that is known."""
    shown = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    limit = row.presence_only or not row.detected
    return (shown.interval if limit else shown.value).replace(NO_BREAK, " ")


def snr_text(row: Row) -> str:
    """The ratio of signal to noise, with one decimal."""
    return "–" if math.isnan(row.snr) else f"{row.snr:.1f}".replace("-", MINUS)


def p_text(p: float) -> str:
    """Two significant digits; never 0.

    >>> p_text(0.0421), p_text(5.31e-48), p_text(0.0)
    ('0.042', '5.3e-48', '< 1e-300')
    """
    if p < 1e-300:
        return "< 1e-300"
    return f"{p:.2g}" if p >= 0.000995 else f"{p:.1e}"


def visible(text: str) -> str:
    r"""A string with control characters escaped, safe to print.

    >>> print(visible("red\x1b[31m"), visible("a\u202eb"), visible(""))
    red\x1b[31m a\u202eb (empty)
    """
    shown = (char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return "".join(shown) or "(empty)"


def align(rows: list[tuple[str, ...]]) -> list[str]:
    """A table whose strings fit the terminal; in a pipe or a file they are whole.

    If a string is cut, the last line says so.
    """
    numbers = table([row[1:] for row in rows], left=0)
    shown = [showable(row[0], sys.stdout) for row in rows]
    strings, last = shown, []
    columns = _terminal_width()
    if columns is not None:
        room = max(columns - max(map(len, numbers)) - 2, _MIN_WIDTH)
        strings = [_cut(text, room, showable("…", sys.stdout)) for text in shown]
        last = [CUT] if strings != shown else []
    width = max(map(_width, strings))
    drawn = [
        f"{string}{' ' * (width - _width(string))}  {rest}"
        for string, rest in zip(strings, numbers, strict=True)
    ]
    return drawn + last


def _terminal_width() -> int | None:
    """The columns of the terminal, or of COLUMNS; None if standard output is something else."""
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        return shutil.get_terminal_size().columns
    return None


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _cut(text: str, width: int, mark: str) -> str:
    """A text of at most `width` columns, with a mark where it was cut."""
    if _width(text) <= width:
        return text
    room = width - len(mark)
    kept = text[:room]
    while _width(kept) > room:
        kept = kept[:-1]
    return kept + mark


def difference_lines(compared: Compared, *, every: bool, others: str = COMMAND) -> list[str]:
    """The rows of a comparison as a table: those that differ, at most 50; all with `every`."""
    whole = every or compared.kind != "string"
    rows = list(compared.rows) if whole else compared.different
    one, *tested = NOUNS[compared.kind]
    if not rows:
        return [f"No difference was found among {plural(compared.candidates, *tested)}."]
    shown = rows if every else rows[:MAX_ROWS]
    names = _what_differs(*compared.names)
    names = names if max(map(len, names)) <= _HEAD_WIDTH else ("first", "second")
    head = (one, *names, "difference", "95 % interval", "p-value", "p (adjusted)")
    cells: list[tuple[str, ...]] = [(*head, "differs") if whole else head]
    shares = compared.shown_shares([row.string for row in shown])
    for row, sides in zip(shown, shares, strict=True):
        gap = show_difference(row.difference, row.low_95, row.high_95, row.different)
        numbers = (*sides, *gap)
        cells.append(
            (
                visible(row.string),
                *(number.replace(NO_BREAK, " ") for number in numbers),
                p_text(row.p_value),
                p_text(row.adjusted_p_value),
                *(["yes" if row.different else "no"] if whole else []),
            )
        )
    drawn = align(cells)
    if len(rows) > len(shown):
        left = len(rows) - len(shown)
        drawn.append(f"… and {left:,} more rows ({others})")
    return drawn


def _what_differs(one: str, two: str) -> tuple[str, str]:
    """The names of both sides without the parts that they share.

    >>> _what_differs("2026-11-18, country NZ", "2026-11-12, country NZ")
    ('2026-11-18', '2026-11-12')
    """
    parts = [name.split(", ") for name in (one, two)]
    kept = [
        ", ".join(part for part in mine if part not in other)
        for mine, other in (parts, parts[::-1])
    ]
    return (kept[0], kept[1]) if all(kept) else (one, two)


def difference_summary(compared: Compared) -> str:
    """One line: how many differ, at which error rate, and what is subtracted from what."""
    rate = CORRECTIONS[compared.correction].rate.format(alpha=percent(compared.alpha))
    new, old = (
        f"{name} ({plural(reports, 'report', 'reports')})"
        for name, reports in zip(compared.names, compared.reports, strict=True)
    )
    different, of = len(compared.different), plural(compared.candidates, *NOUNS[compared.kind][1:])
    verb = "differs" if different == 1 else "differ"
    return (
        f"{_before(compared.title)}{different:,} of {of} {verb} ({rate}); "
        f"differences are {new} minus {old}"
    )


def _described(histogram: Histogram) -> list[str]:
    """The mean and the quantiles of a histogram, if they are known."""
    facts = described(histogram)
    lines = []
    if facts["mean"] is not None:
        value, _, low, high = facts["mean"].values()
        shown = show_count(value, low, high)
        lines.append(f"mean {shown.value} (95 % interval: {shown.interval})")
    if facts["quantiles"]:
        rows = [("quantile", "lies in", "95 %: from", "to")]
        for quantile in facts["quantiles"]:
            name = f"{100 * quantile['probability']:g} %"
            rows.append((name, quantile["label"], quantile["low_label"], quantile["high_label"]))
        lines += table(rows, left=len(rows[0]))
    return lines


def smooth_lines(shape: Shape | None) -> list[str]:
    """An empty line, then the shares under an assumed shape; nothing without one."""
    if shape is None:
        return []
    rows = [("range", "smooth share")]
    rows += [
        (label, percent(share).replace("-", MINUS))
        for label, share in zip(shape.labels, shape.share.tolist(), strict=True)
    ]
    how = f"Smooth with strength {shape.strength:g}, as if {shape.freedom:.1f} numbers were free."
    return ["", *table(rows), f"{how} {shape.note}"]


def short_text(decoded: Decoded) -> str:
    """Half a line: what was decoded, reports, candidates and detections."""
    return (
        f"{_before(decoded.title)}{plural(decoded.reports, 'report', 'reports')}, "
        f"{plural(decoded.candidates, *NOUNS[decoded.kind][1:])}: "
        f"{len(decoded.detected):,} detected"
    )


def _before(title: str) -> str:
    return f"{title}: " if title else ""


def summary(decoded: Decoded) -> str:
    """One line: reports, candidates, detections, undetected mass and the quality of the fit."""
    rate = CORRECTIONS[decoded.correction].rate.format(alpha=percent(decoded.alpha))
    facts = [f"{short_text(decoded)} ({rate})"]
    left = decoded.undetected_mass
    if decoded.kind in _NONE_OF and decoded.reports and left.high_95 > 0:
        share = show_part(left.proportion, left.prop_low_95, left.prop_high_95)
        shown = str(share) if left.std_error else share.value
        facts.append(f"{_NONE_OF[decoded.kind]} {shown.replace(NO_BREAK, ' ')}")
    if not math.isnan(decoded.chi2_dof):
        path = f", robust path {'used' if decoded.robust else 'not needed'}"
        path = path if decoded.kind == "string" and decoded.method in METHODS else ""
        facts.append(f"χ²/dof {decoded.chi2_dof:.2f}{path}")
    return "; ".join(facts)
