"""Decoded results for a person at a terminal."""

from __future__ import annotations

import math
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING

from rappor.charts.numbers import MINUS, NO_BREAK, show_count, show_finding, show_share
from rappor.checks import plural
from rappor.cli.output import percent, showable, table
from rappor.decoding.exports import described, shows_all
from rappor.decoding.options import CORRECTIONS
from rappor.decoding.quality import too_few_reports

if TYPE_CHECKING:
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.result import Decoded, Row
    from rappor.simulate.judge import Judgement

MAX_ROWS = 50
_MISSED_SHOWN = 5
_MIN_WIDTH, _WIDE = 16, 100
_HEAD = ("estimate", "95 % interval", "share", "SNR", "p (adjusted)")
_NOUNS = {  # the noun for a row, for one tested value, and for several
    "string": ("string", "candidate", "candidates"),
    "category": ("category", "category", "categories"),
    "boolean": ("value", "value", "values"),
    "ordinal": ("range", "range", "ranges"),
    "bits": ("bit", "bit", "bits"),
}
_NONE_OF = {"string": "unlisted", "category": "in no category", "ordinal": "in no range"}


def lines(decoded: Decoded, *, every: bool) -> list[str]:
    """The rows as a table: at most 50, or all with `every`.

    If there are too few reports for categories or numbers, the first line says so.
    """
    few = too_few_reports(decoded)
    return [*([few, ""] if few else []), *_rows(decoded, every)]


def _rows(decoded: Decoded, every: bool) -> list[str]:
    whole = shows_all(decoded, every)
    rows: list[Row] = list(decoded.rows) if whole else decoded.detected
    one, *tested = _NOUNS[decoded.kind]
    if not rows:
        return [f"Nothing was detected among {plural(decoded.candidates, *tested)}."]
    shown = rows if every else rows[:MAX_ROWS]
    head = (one, *_HEAD, "detected") if whole else (one, *_HEAD)
    drawn = _align([head, *(_cells(row, whole) for row in shown)])
    left = len(rows) - len(shown)
    if left:
        noun = "rows" if whole else "detected"
        drawn.append(f"… and {left:,} more {noun} (--all prints, --output FILE writes every one)")
    return drawn + in_words(decoded)


def in_words(decoded: Decoded) -> list[str]:
    """An empty line, then the mean and the quantiles of a histogram; nothing for other results."""
    if decoded.histogram is None or not decoded.reports:
        return []
    return ["", *_described(decoded.histogram)]


def _cells(row: Row, whole: bool) -> tuple[str, ...]:
    value, interval = show_finding(row.estimate, *row.interval, row.detected, "count")
    shown = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    limit = row.presence_only or not row.detected
    snr = "–" if math.isnan(row.snr) else f"{row.snr:.1f}".replace("-", MINUS)
    share = (shown.interval if limit else shown.value).replace(NO_BREAK, " ")
    cells = (visible(row.string), value, interval, share, snr, _p(row.adjusted_p_value))
    return (*cells, "yes" if row.detected else "no") if whole else cells


def _p(p: float) -> str:
    """Two significant digits; never 0.

    >>> _p(0.0421), _p(5.31e-48), _p(0.0)
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


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    """A table whose strings are cut to the width of the terminal."""
    numbers = table([row[1:] for row in rows], left=0)
    room = shutil.get_terminal_size((_WIDE, 24)).columns - max(map(len, numbers)) - 2
    shown = [showable(row[0], sys.stdout) for row in rows]
    mark = showable("…", sys.stdout)
    strings = [_cut(text, max(room, _MIN_WIDTH), mark) for text in shown]
    width = max(map(_width, strings))
    return [
        f"{string}{' ' * (width - _width(string))}  {rest}"
        for string, rest in zip(strings, numbers, strict=True)
    ]


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


def next_to_truth(judged: Judgement, *, every: bool = False) -> list[str]:
    """Detected strings with their truth, at most 50; then the largest that were missed.

    `every` shows all of both.
    """
    detected = [row for row in judged.rows if row.verdict != "missed"]
    shown = detected if every else detected[:MAX_ROWS]
    missed = [row for row in judged.rows if row.verdict == "missed"]
    cells: list[tuple[str, ...]] = [("string", "estimate", "95 % interval", "truth", "verdict")]
    named = missed if every else missed[:_MISSED_SHOWN]
    for row in (*shown, *named):
        shown_as = show_finding(row.estimate, row.low_95, row.high_95, detected=True, unit="count")
        value, interval = ("–", "–") if row.verdict == "missed" else shown_as
        cells.append((visible(row.string), value, interval, f"{row.truth:,}", row.verdict))
    lines = _align(cells)
    if len(detected) > len(shown):
        lines.append(f"… and {len(detected) - len(shown):,} more detected (--all prints every one)")
    if len(missed) > len(named):
        lines.append(f"… and {len(missed) - len(named):,} rarer ones missed")
    return lines


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


def summary(decoded: Decoded) -> str:
    """One line: reports, candidates, detections, unlisted mass and the quality of the fit."""
    rate = CORRECTIONS[decoded.correction].rate.format(alpha=percent(decoded.alpha))
    facts = [
        f"{plural(decoded.reports, 'report', 'reports')}, "
        f"{plural(decoded.candidates, *_NOUNS[decoded.kind][1:])}: "
        f"{len(decoded.detected):,} detected ({rate})"
    ]
    left = decoded.unlisted
    if decoded.kind in _NONE_OF and decoded.reports and left.high_95 > 0:
        share = show_share(left.proportion, left.prop_low_95, left.prop_high_95)
        shown = str(share) if left.std_error else share.value
        facts.append(f"{_NONE_OF[decoded.kind]} {shown.replace(NO_BREAK, ' ')}")
    if not math.isnan(decoded.chi2_dof):
        path = f", robust path {'used' if decoded.robust else 'not needed'}"
        path = path if decoded.kind == "string" else ""
        facts.append(f"χ²/dof {decoded.chi2_dof:.2f}{path}")
    return "; ".join(facts)
