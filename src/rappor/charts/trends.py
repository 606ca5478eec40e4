"""Charts of the Trends page: shares by period as small multiples, reports, undetected mass.

All multiples are one faceted specification: single charts would take too long to draw.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.marks import Panel, percent_axis, reports_up
from rappor.charts.numbers import show_finding, show_part
from rappor.charts.theme import SCHEMA, Spec, colours, config, message, whole_chart
from rappor.checks import plural

__all__ = [
    "COLUMNS",
    "MAX_MULTIPLES",
    "Mark",
    "TrendLine",
    "TrendPoint",
    "multiples_height",
    "trend_words",
    "trends",
]
MAX_MULTIPLES = 12  # small multiples that are drawn
COLUMNS = 4
_HEIGHT, _WIDTH = 88, 236
_BELOW = {"reports": 96, "undetected_mass": 120}
_AXIS = 36  # pixels below a plot
_MASS = {
    "string": (
        "Undetected mass",
        "Reports that no detected string explains: not on the list, or too rare.",
    ),
    "category": ("In no category", "Reports that are in none of the listed categories."),
}


def trends(
    lines: Sequence[TrendLine],
    marks: Sequence[Mark] = (),
    silent: Sequence[str] | None = None,
    *,
    theme: str = "light",
    in_page: bool = False,
) -> Spec:
    """The share of each string by period: band = 95 % interval, hollow dots = upper limits.

    Args:
        lines: the lines, all with the same periods; at most 12 are drawn, with their gaps.
        marks: dashed rules in every multiple.
        silent: periods without reports; None if every gap is such a period.
        theme: "light" or "dark".
        in_page: the page writes the words, and sets columns and widths.

    Returns:
        A Vega-Lite specification, faceted, with one y axis for all.
    """
    shown = list(lines)[:MAX_MULTIPLES]
    if not shown or not shown[0].points:
        return message("Nothing to draw", "No string was detected in any period.", theme)
    colour = colours(theme)
    periods = [point.period for point in shown[0].points]
    across = period_axis(periods, 2)
    values = [
        {"line": _label(number, line), **point}
        for number, line in enumerate(shown)
        for point in all_values(line.points)
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
        period_dots(across, colour, len(periods)),
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
    """One axis below each column, or below each multiple if the last row is not full."""
    return "independent" if multiples > columns and multiples % columns else "shared"


def multiples_height(multiples: int, columns: int = COLUMNS) -> int:
    """The height of the multiples in a page, rounded up.

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
    """How to read the multiples, in words.

    Args:
        lines: the lines that are drawn.
        marks: where something changed.
        silent: periods without reports; None if every gap is such a period.

    >>> line = TrendLine(
    ...     "a", [TrendPoint("2026-W27", None, None, None), TrendPoint("2026-W28", 0.1, 0.0, 0.2)]
    ... )
    >>> trend_words([line]).endswith("Gaps: no reports.")
    True
    >>> trend_words([line], silent=[]).partition("Hollow: upper limits. ")[2]
    'Gaps: neither detected in that period nor among its largest, so not kept.'
    """
    words = ["Bands: 95 % intervals. Filled dots: detected. Hollow: upper limits."]
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
    ends = [point[end] for point in values for end in ("share", "low", "high")]
    known = [end for end in ends if end is not None]
    return [min(0.0, *known), max(1e-9, *known)] if known else [0.0, 1.0]


def _cut(text: str) -> str:
    """A name, cut to fit above a multiple."""
    name = " ".join(text.split()) or "(empty)"
    return name if len(name) <= 34 else f"{name[:33]}…"


def _label(number: int, line: TrendLine) -> str:
    r"""The label of a multiple: its place, its name and its newest share, separated by \x1f.

    The label is data, because names are untrusted text: in an expression, Vega-Lite would replace
    "datum.value", and Vega would fail on "constructor".

    >>> _label(3, TrendLine("a\x1f  b", [TrendPoint("2026-W27", 0.1, 0.0, 0.2)])).split("\x1f")[:2]
    ['03', 'a b']
    """
    return "\x1f".join((f"{number:02}", _cut(line.name), last_text(line.points)))


class TrendPoint(NamedTuple):
    """A share in one period with its interval; `share` is None if nothing is known.

    A mass, such as undetected mass, has no verdict: its estimate always counts.
    """

    period: str
    share: float | None
    low: float | None
    high: float | None
    detected: bool = False
    is_mass: bool = False


class TrendLine(NamedTuple):
    """One string over all periods of the axis, in their order."""

    name: str
    points: Sequence[TrendPoint]


class Mark(NamedTuple):
    """A change that begins with a period: "v2", "list v8"."""

    period: str
    label: str


def all_values(points: Sequence[TrendPoint]) -> list[Spec]:
    """The points as data, with the numbers of their runs: bands and lines do not cross gaps."""
    found, run, stretch = [], 0, 0
    for point in points:
        values = values_of(point)
        run += point.share is None
        stretch += not values["sized"]
        found.append({**values, "run": run, "stretch": stretch})
    return found


def values_of(point: TrendPoint) -> Spec:
    """One point as data, with its words; without a size its dot stands at the upper limit."""
    text = "–"
    exact = point.is_mass and point.low == point.high
    sized = exact or (point.detected and point.low is not None and point.low > 0)
    if point.share is not None and point.low is not None and point.high is not None:
        ends = (point.share, point.low, point.high)
        text = str(show_part(*ends) if point.is_mass else show_finding(*ends, point.detected))
    return {
        "period": point.period,
        "share": point.share,
        "low": point.low,
        "high": point.high,
        "dot": point.share if sized else point.high,
        "sized": sized,
        "detected": point.detected,
        "text": text,
        "verdict": "detected" if point.detected else "not detected",
    }


def last_text(points: Sequence[TrendPoint]) -> str:
    """The newest share that is known, in words."""
    known = [values_of(point)["text"] for point in points if point.share is not None]
    return known[-1] if known else "–"


def period_axis(
    periods: Sequence[str], ticks: int, padding: float = 0.5, scale: str = "point"
) -> Spec:
    """The axis of all periods, with a few of them labelled and the ends flush."""
    step = max(math.ceil((len(periods) - 1) / max(ticks - 1, 1)), 1)
    named = list(periods[::-1][::step])[::-1]
    if ticks == 2:
        named = [periods[0], periods[-1]][: len(periods)]
    at_end = {"test": f"datum.value === {json.dumps(named[-1])}", "value": "right"}
    at_start = {"test": f"datum.value === {json.dumps(periods[0])}", "value": "left"}
    align = {"condition": [at_end, at_start], "value": "center"}
    return {
        "field": "period",
        "type": "ordinal",
        "scale": {"type": scale, "domain": list(periods), "padding": padding},
        "axis": {
            "title": None,
            "values": named,
            "labelAngle": 0,
            "labelFlush": False,
            "labelAlign": align if len(named) > 1 else "center",
            "labelOverlap": "greedy",
            "labelSeparation": 8,
            "grid": False,
            "labelPadding": 4,
        },
    }


def band(across: Spec, up: Spec, colour: dict[str, str]) -> list[Spec]:
    """The interval as an area, the share as a line where it is known; neither crosses a gap."""
    return [
        {
            "mark": {"type": "area", "color": colour["bar"], "opacity": 0.4},
            "transform": [{"filter": "datum.share !== null"}],
            "encoding": {
                "x": across,
                "y": {**up, "field": "low"},
                "y2": {"field": "high"},
                "detail": {"field": "run", "type": "nominal"},
            },
        },
        {
            "mark": {"type": "line", "color": colour["bar-edge"], "strokeWidth": 1.75},
            "transform": [{"filter": "datum.share !== null && datum.sized"}],
            "encoding": {"x": across, "y": up, "detail": {"field": "stretch", "type": "nominal"}},
        },
    ]


def period_dots(across: Spec, colour: dict[str, str], periods: int) -> Spec:
    """A dot for each period, smaller if there are many; dots show the tooltip."""
    sized = {"test": "datum.sized", "value": colour["bar-edge"]}
    return {
        "mark": {
            "type": "point",
            "opacity": 1,
            "size": 30 if periods <= 30 else 12,
            "stroke": colour["bar-edge"],
            "strokeWidth": 1.25,
        },
        "transform": [{"filter": "datum.share !== null"}],
        "encoding": {
            "x": across,
            "y": {"field": "dot", "type": "quantitative"},
            "fill": {"condition": sized, "value": colour["bg"]},
            "tooltip": [
                {"field": "period", "type": "nominal", "title": "Period"},
                {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
                {"field": "verdict", "type": "nominal", "title": "Verdict"},
            ],
        },
    }


def rules(
    marks: Sequence[Mark],
    periods: Sequence[str],
    colour: dict[str, str],
    across: Spec,
    labelled: bool = False,
) -> list[Spec]:
    """Dashed rules where something changed."""
    there = [mark for mark in marks if mark.period in set(periods)]
    if not there:
        return []
    data = [{"period": mark.period, "label": mark.label} for mark in there]
    place = {"field": "period", "type": "ordinal", "scale": across["scale"]}
    style = {"strokeDash": [4, 3], "strokeWidth": 1, "color": colour["threshold"]}
    found: list[Spec] = [
        {
            "data": {"values": data},
            "mark": {"type": "rule", **style},
            "encoding": {
                "x": {**place, "axis": across["axis"]},
                "tooltip": {"field": "label", "type": "nominal", "title": "From here on"},
            },
        }
    ]
    if labelled:
        found.append(
            {
                "data": {"values": data},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "top",
                    "dx": 4,
                    "dy": 2,
                    "color": colour["threshold"],
                },
                "encoding": {
                    "x": place,
                    "y": {"value": 0},
                    "text": {"field": "label"},
                },
            }
        )
    return found


def reports_panel(points: Sequence[tuple[str, int]], *, theme: str = "light") -> Panel:
    """The number of reports in each period, as bars.

    Args:
        points: period and reports, in order; 0 if none arrived. At least one.
        theme: "light" or "dark".
    """
    colour = colours(theme)
    values = [{"period": p, "reports": n, "text": f"{n:,}"} for p, n in points]
    bars: Spec = {
        "mark": {"type": "bar", "fill": colour["bar"], "stroke": colour["bar-edge"]},
        "encoding": {
            "x": period_axis([period for period, _ in points], 4, padding=0.2, scale="band"),
            "y": reports_up(),
            "tooltip": [
                {"field": "period", "type": "nominal", "title": "Period"},
                {"field": "text", "type": "nominal", "title": "Reports"},
            ],
        },
    }
    total = sum(n for _, n in points)
    there = sum(n > 0 for _, n in points)
    title = f"{total:,} reports in {plural(there, 'period', 'periods')}"
    height = _BELOW["reports"]
    return Panel(title, (), _panel_layers(values, height, [bars]), height + _AXIS)


def undetected_mass_panel(
    points: Sequence[TrendPoint],
    marks: Sequence[Mark] = (),
    *,
    theme: str = "light",
    kind: str = "string",
) -> Panel:
    """The share of reports that no detected string explains, by period, with its band.

    Args:
        points: one for each period of the axis; at least one is known.
        marks: labelled rules.
        theme: "light" or "dark".
        kind: string or category.
    """
    colour = colours(theme)
    periods = [point.period for point in points]
    across = period_axis(periods, 4)
    up = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": percent_axis(title=None, values=[0, 0.5, 1], minExtent=44),
    }
    layers = [
        *band(across, up, colour),
        period_dots(across, colour, len(periods)),
        *rules(marks, periods, colour, across, labelled=True),
    ]
    values = [{**point, "detected": True} for point in all_values(points)]
    height = _BELOW["undetected_mass"]
    parts = _panel_layers(values, height, layers)
    what, words = _MASS[kind]
    title = f"{what}: {last_text(points)} in the last period"
    return Panel(title, (words,), parts, height + _AXIS)


def _panel_layers(values: list[Spec], height: int, layers: list[Spec]) -> Spec:
    return {"height": height, "data": {"values": values}, "layer": layers}
