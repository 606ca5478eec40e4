"""Shares over periods as small multiples.

One facet specification for all multiples: as many single charts take too long to draw.
"""

from __future__ import annotations

from collections.abc import Sequence

from rappor.charts.marks import percent_axis
from rappor.charts.over_time import (
    Mark,
    TrendLine,
    TrendPoint,
    all_values,
    band,
    dots,
    last_text,
    period_axis,
    rules,
)
from rappor.charts.theme import SCHEMA, Spec, colours, config, message, whole_chart

__all__ = [
    "COLUMNS",
    "MOST",
    "Mark",
    "TrendLine",
    "TrendPoint",
    "multiples_height",
    "trend_words",
    "trends",
]

MOST = 12  # multiples
COLUMNS = 4
_HEIGHT, _WIDTH = 88, 236


def trends(
    lines: Sequence[TrendLine],
    marks: Sequence[Mark] = (),
    silent: Sequence[str] | None = None,
    *,
    theme: str = "light",
    in_page: bool = False,
) -> Spec:
    """The share of each string by period: band = 95 % interval, filled dots = detected.

    Args:
        lines: at most 12 are drawn, all with the same periods; gaps stay gaps.
        marks: dashed rules in every multiple.
        silent: periods without reports; None where all gaps are.
        theme: "light" or "dark".
        in_page: whether a page writes the words itself; it sets columns and widths, too.

    Returns:
        A Vega-Lite specification, faceted, with one y axis for all.
    """
    shown = list(lines)[:MOST]
    if not shown or not shown[0].points:
        return message("Nothing to draw", "No string was detected in any period.", theme)
    colour = colours(theme)
    periods = [point.period for point in shown[0].points]
    across = period_axis(periods, 2)
    values = [
        {"line": _label(number, line), **each}
        for number, line in enumerate(shown)
        for each in all_values(line.points)
    ]
    up: Spec = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": _domain(values), "nice": True, "zero": True},
        "axis": percent_axis(title=None, tickCount=3),
    }
    layers = [
        *rules(marks, periods, colour, across),
        *band(across, up, colour),
        dots(across, colour, len(periods)),
    ]
    header = {
        "title": None,
        "labelExpr": "slice(split(datum.value, '\\u001f'), 1)",
        "labelAnchor": "start",
        "labelAlign": "left",
        "labelColor": colour["text"],
        "labelFontSize": 12,
        "labelLineHeight": 16,
        "labelLimit": _WIDTH,
        "labelPadding": 8,
    }
    parts: Spec = {
        "data": {"values": values},
        "facet": {"field": "line", "type": "ordinal", "header": header},
        "columns": COLUMNS,
        "spacing": {"row": 20, "column": 16},
        "spec": {"width": _WIDTH, "height": _HEIGHT, "layer": layers},
        "resolve": {"scale": {"x": "shared", "y": "shared"}, "axis": {"x": _axes(len(shown))}},
    }
    if in_page:
        look = {name: part for name, part in config(theme).items() if name != "padding"}
        about = trend_words(shown, marks, silent)
        return {"$schema": SCHEMA, "description": about, "padding": 4, **parts, "config": look}
    title = f"Shares of {len(shown)} strings from {periods[0]} to {periods[-1]}"
    return whole_chart(parts, title, [trend_words(shown, marks, silent)], theme)


def _axes(multiples: int, columns: int = COLUMNS) -> str:
    """One axis below each column, or one for each multiple where the last row is not full."""
    return "independent" if multiples > columns and multiples % columns else "shared"


def multiples_height(multiples: int, columns: int = COLUMNS) -> int:
    """About how high they are drawn in a page, never less.

    >>> multiples_height(12), multiples_height(11), multiples_height(12, 2)
    (460, 470, 901)
    """
    rows = -(-multiples // columns)
    if _axes(multiples, columns) == "shared":
        return 166 + 147 * (rows - 1)
    return 166 + 152 * (rows - 1)


def trend_words(
    lines: Sequence[TrendLine], marks: Sequence[Mark] = (), silent: Sequence[str] | None = None
) -> str:
    """How the multiples are to be read.

    Args:
        lines: what is drawn.
        marks: where something changed.
        silent: periods without reports; None where all gaps are.

    >>> line = TrendLine(
    ...     "a", [TrendPoint("2026-W27", None, None, None), TrendPoint("2026-W28", 0.1, 0.0, 0.2)]
    ... )
    >>> trend_words([line]).endswith("Gaps: no reports.")
    True
    >>> trend_words([line], silent=[]).partition("Hollow: not detected. ")[2]
    'Gaps: neither detected in that period nor among its largest, so not kept.'
    """
    words = ["Bands: 95 % intervals. Filled dots: detected. Hollow: not detected."]
    gaps = {point.period for line in lines for point in line.points if point.share is None}
    unheard = gaps if silent is None else gaps & set(silent)
    if unheard:
        words.append("Gaps: no reports.")
    if gaps - unheard:
        start = "Other gaps" if unheard else "Gaps"
        words.append(
            f"{start}: neither detected in that period nor among its largest, so not kept."
        )
    if marks:
        listed = ", ".join(f"{mark.label} from {mark.period}" for mark in marks)
        words.append(f"Dashed lines: {listed}.")
    return " ".join(words)


def _domain(values: Sequence[Spec]) -> list[float]:
    ends = [each[end] for each in values for end in ("share", "low", "high")]
    known = [end for end in ends if end is not None]
    return [min(0.0, *known), max(1e-9, *known)] if known else [0.0, 1.0]


def _cut(text: str) -> str:
    """A name that fits above a multiple."""
    name = " ".join(text.split()) or "(empty)"
    return name if len(name) <= 34 else f"{name[:33]}…"


def _label(number: int, line: TrendLine) -> str:
    r"""What a multiple is known by: its place, its name, its newest share; \x1f is between them.

    It is data, as names are text from anywhere: in an expression, Vega-Lite would replace
    "datum.value" and Vega would stumble over "constructor".

    >>> _label(3, TrendLine("a\x1f  b", [TrendPoint("2026-W27", 0.1, 0.0, 0.2)])).split("\x1f")[:2]
    ['03', 'a b']
    """
    return "\x1f".join((f"{number:02}", _cut(line.name), last_text(line.points)))
