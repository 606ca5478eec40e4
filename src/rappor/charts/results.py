"""Decoded strings or categories as bars with their intervals, and the mass that none explains."""

from __future__ import annotations

from typing import Any

from rappor.charts.bars import STEP, bars
from rappor.charts.marks import wrapped
from rappor.charts.numbers import show_percent
from rappor.charts.panel import Panel
from rappor.charts.rows import MOST_ROWS, PAGE_ROWS, chosen, row_values
from rappor.charts.strip import split_of, strip
from rappor.charts.theme import Spec, message, whole_chart

_WIDTH = 420
_AROUND = 62  # pixels above and below the rows: axis, its title, the threshold's label

FALSE_FINDS = {
    "fdr": "On average at most {alpha} of the detected ones are false finds.",
    "holm": "The chance of any false find is at most {alpha}.",
    "bonferroni": "The chance of any false find is at most {alpha}.",
    "none": "Not corrected for the number of candidates: {alpha} of absent ones look detected.",
}


def results(decoded: Any, *, theme: str = "light") -> Spec:
    """The largest rows as bars, 95 % intervals as whiskers, the detection threshold as a rule.

    Filled bars are detected, hollow ones are not. A strip below shows the mass that no detected
    string (or no listed category) explains. At most 30 rows; the subtitle says how many there are.

    Args:
        decoded: a Decoded, or anything with its attributes.
        theme: "light" or "dark".

    Returns:
        A Vega-Lite specification.
    """
    candidates = len(decoded.rows)
    if not decoded.reports or not candidates:
        why = (
            "Nothing arrived, so nothing can be said." if candidates else "There are no candidates."
        )
        return message("No reports yet" if candidates else "Nothing to look for", why, theme)
    shown = chosen(decoded, MOST_ROWS)
    title, words = said(decoded, shown)
    panels = [{"width": _WIDTH, **bars(decoded, shown, theme=theme, page=False)}]
    split = split_of(decoded)
    if split is not None:
        lines = [f"■ {split.explained} {split.inside}", f"□ {split.rest} {split.outside}"]
        above = {"text": lines, "fontSize": 13, "fontWeight": 400, "offset": 6, "frame": "group"}
        panels.append({"title": above, "width": _WIDTH, **strip(split, theme)})
    words += [f"Check: {warning}" for warning in decoded.warnings[:2]]
    return whole_chart({"vconcat": panels, "spacing": 28}, title, wrapped(words), theme)


def bars_panel(decoded: Any, *, theme: str = "light", unit: str = "share", page: bool) -> Panel:
    """The bars by themselves, at most 40 of them; for a decoded table with reports and rows."""
    shown = chosen(decoded, PAGE_ROWS)
    title, words = said(decoded, shown)
    return Panel(
        title,
        tuple(words),
        bars(decoded, shown, theme=theme, unit=unit, page=page),
        STEP * len(shown) + _AROUND,
        _WIDTH,
    )


def strip_panel(decoded: Any, *, theme: str = "light") -> Panel | None:
    """The strip by itself; None for kinds without one."""
    split = split_of(decoded)
    if split is None:
        return None
    words = (f"{split.rest} {split.outside}.",)
    return Panel(f"{split.explained} {split.inside}", words, strip(split, theme), 50)


def said(decoded: Any, shown: list[Any]) -> tuple[str, list[str]]:
    """The title and the sentences below it."""
    candidates, found = len(decoded.rows), len(decoded.detected)
    words = []
    if decoded.kind == "boolean":
        title = f"{row_values(decoded.rows[0])['text']} {decoded.rows[0].string}"
    else:
        noun = {"string": "candidates", "category": "categories"}.get(decoded.kind, "values")
        title = f"{found:,} of {candidates:,} {noun} detected"
        if not found:
            title = f"None of {candidates:,} {noun} detected"
            words.append("All are absent, or too rare to see in this many reports.")
        else:
            alpha = show_percent(decoded.alpha)
            words.append(FALSE_FINDS[decoded.correction].format(alpha=alpha))
            if any(not row.detected for row in shown):
                words.append("Hollow bars are not detected: absent, or too rare to see.")
    if len(shown) < candidates:
        words.append(f"Showing {len(shown)} of {candidates:,}, largest first.")
    return f"{title} in {decoded.reports:,} reports", words
