"""Decoded results for a person at a terminal."""

from __future__ import annotations

import math
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rappor.charts.numbers import (
    MINUS,
    NO_BREAK,
    show_count,
    show_difference,
    show_finding,
    show_percent,
    show_share,
)
from rappor.checks import plural
from rappor.cli.output import percent, showable, table
from rappor.decoding.exports import described, shows_all
from rappor.decoding.options import CORRECTIONS
from rappor.decoding.quality import too_few_reports

if TYPE_CHECKING:
    from rappor.decoding.compare import Compared
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.result import Decoded, Row
    from rappor.decoding.smoothing import Shape
    from rappor.simulate.judge import Judgement

MAX_ROWS = 50
_HEAD_WIDTH = 24  # of names of what is compared, above their columns
_MISSED_SHOWN = 5
_MIN_WIDTH, _WIDE = 16, 100
_HEAD_TRUTH = (
    *("estimate", "95 % interval", "std. error", "p-value", "truth", "share", "SNR", "verdict"),
)
_HEAD = ("estimate", "95 % interval", "share", "SNR", "p (adjusted)")
NOUNS = {  # the noun for a row, for one tested value, and for several
    "string": ("string", "candidate", "candidates"),
    "category": ("category", "category", "categories"),
    "boolean": ("value", "value", "values"),
    "ordinal": ("range", "range", "ranges"),
    "bits": ("bit", "bit", "bits"),
}
_NONE_OF = {"string": "undetected mass", "category": "in no category", "ordinal": "in no range"}


def lines(decoded: Decoded, *, every: bool) -> list[str]:
    """The rows as a table: at most 50, or all with `every`.

    If there are too few reports for categories or numbers, the first line says so.
    """
    few = too_few_reports(decoded)
    return [*([few, ""] if few else []), *_rows(decoded, every)]


def _rows(decoded: Decoded, every: bool) -> list[str]:
    whole = shows_all(decoded, every)
    rows: list[Row] = list(decoded.rows) if whole else decoded.detected
    one, *tested = NOUNS[decoded.kind]
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
    cells = (
        visible(row.string),
        value,
        interval,
        _share(row),
        _snr(row),
        _p(row.adjusted_p_value),
    )
    return (*cells, "yes" if row.detected else "no") if whole else cells


def _share(row: Row) -> str:
    """The share, or its upper limit where that is all that is known."""
    shown = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    limit = row.presence_only or not row.detected
    return (shown.interval if limit else shown.value).replace(NO_BREAK, " ")


def _snr(row: Row) -> str:
    return "–" if math.isnan(row.snr) else f"{row.snr:.1f}".replace("-", MINUS)


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


def difference_lines(compared: Compared, *, every: bool) -> list[str]:
    """The rows of a comparison as a table: those that differ, at most 50; all with `every`."""
    whole = every or compared.kind != "string"
    rows = list(compared.rows) if whole else compared.different
    one, *tested = NOUNS[compared.kind]
    if not rows:
        return [f"No difference was found among {plural(compared.candidates, *tested)}."]
    shown = rows if every else rows[:MAX_ROWS]
    fits = max(map(len, compared.names)) <= _HEAD_WIDTH
    names = compared.names if fits else ("first", "second")
    head = (one, *names, "difference", "95 % interval", "p-value", "p (adjusted)")
    cells: list[tuple[str, ...]] = [(*head, "differs") if whole else head]
    for row in shown:
        numbers = (
            show_percent(row.share_one),
            show_percent(row.share_two),
            *show_difference(row.difference, row.low_95, row.high_95, row.different),
        )
        cells.append(
            (
                visible(row.string),
                *(number.replace(NO_BREAK, " ") for number in numbers),
                _p(row.p_value),
                _p(row.adjusted_p_value),
                *(["yes" if row.different else "no"] if whole else []),
            )
        )
    drawn = _align(cells)
    if len(rows) > len(shown):
        left = len(rows) - len(shown)
        drawn.append(f"… and {left:,} more rows (--all prints, --output FILE writes every one)")
    return drawn


def difference_summary(compared: Compared, title: str = "") -> str:
    """One line: how many differ, at which error rate, and what is subtracted from what.

    Args:
        compared: the result.
        title: the collection, which comes first.
    """
    rate = CORRECTIONS[compared.correction].rate.format(alpha=percent(compared.alpha))
    new, old = (
        f"{name} ({plural(reports, 'report', 'reports')})"
        for name, reports in zip(compared.names, compared.reports, strict=True)
    )
    different, of = len(compared.different), plural(compared.candidates, *NOUNS[compared.kind][1:])
    verb = "differs" if different == 1 else "differ"
    return (
        f"{title}{': ' if title else ''}{different:,} of {of} {verb} ({rate}); "
        f"differences are {new} minus {old}"
    )


def next_to_truth(
    decoded: Decoded, judged: Judgement, truth: Mapping[str, int], *, every: bool = False
) -> list[str]:
    """Detected rows with their truth, at most 50; then the largest that were missed.

    `every`, and kinds with a bit for each value, show all rows.
    """
    verdicts = {row.string: row.verdict for row in judged.rows}
    missed = [row.string for row in judged.rows if row.verdict == "missed"]
    detected = decoded.detected
    if shows_all(decoded, every):
        shown, named = list(decoded.rows), missed
    else:
        named = missed[:_MISSED_SHOWN]
        shown = [*detected[:MAX_ROWS], *map(decoded.row, named)]
    cells: list[tuple[str, ...]] = [(NOUNS[decoded.kind][0], *_HEAD_TRUTH)]
    for row in shown:
        value, interval = show_finding(row.estimate, *row.interval, row.detected, "count")
        cells.append(
            (
                visible(row.string),
                value,
                interval,
                f"{row.std_error:,.0f}",
                _p(row.p_value),
                f"{truth.get(row.string, 0):,}",
                _share(row),
                _snr(row),
                verdicts.get(row.string, "absent"),
            )
        )
    lines = _align(cells) if shown else ["Nothing was detected, and nothing was missed."]
    if not shows_all(decoded, every) and len(detected) > MAX_ROWS:
        lines.append(f"… and {len(detected) - MAX_ROWS:,} more detected (--all prints every one)")
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


def summary(decoded: Decoded, title: str = "") -> str:
    """One line: reports, candidates, detections, undetected mass and the quality of the fit.

    Args:
        decoded: the result.
        title: what was decoded, which comes first.
    """
    rate = CORRECTIONS[decoded.correction].rate.format(alpha=percent(decoded.alpha))
    facts = [
        f"{title}{': ' if title else ''}{plural(decoded.reports, 'report', 'reports')}, "
        f"{plural(decoded.candidates, *NOUNS[decoded.kind][1:])}: "
        f"{len(decoded.detected):,} detected ({rate})"
    ]
    left = decoded.undetected_mass
    if decoded.kind in _NONE_OF and decoded.reports and left.high_95 > 0:
        share = show_share(left.proportion, left.prop_low_95, left.prop_high_95)
        shown = str(share) if left.std_error else share.value
        facts.append(f"{_NONE_OF[decoded.kind]} {shown.replace(NO_BREAK, ' ')}")
    if not math.isnan(decoded.chi2_dof):
        path = f", robust path {'used' if decoded.robust else 'not needed'}"
        path = path if decoded.kind == "string" else ""
        facts.append(f"χ²/dof {decoded.chi2_dof:.2f}{path}")
    return "; ".join(facts)
