"""Reports and unlisted mass by period."""

from __future__ import annotations

from collections.abc import Sequence

from rappor.charts.marks import percent_axis, reports_up
from rappor.charts.over_time import (
    Mark,
    TrendPoint,
    all_values,
    band,
    dots,
    last_text,
    period_axis,
    rules,
)
from rappor.charts.panel import Panel
from rappor.charts.theme import Spec, colours
from rappor.checks import plural

_BELOW = {"reports": 96, "unlisted": 120}
_AXIS = 36  # pixels below a plot


def reports_panel(points: Sequence[tuple[str, int]], *, theme: str = "light") -> Panel:
    """How many reports arrived in each period, as bars.

    Args:
        points: period and reports, in order; 0 where none arrived. At least one.
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
    return Panel(title, (), _layers(values, height, [bars]), height + _AXIS)


_MASS = {
    "string": (
        "Unlisted mass",
        "Reports that no detected string explains: not on the list, or too rare.",
    ),
    "category": ("In no category", "Reports that are in none of the listed categories."),
}


def unlisted_panel(
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
        dots(across, colour, len(periods)),
        *rules(marks, periods, colour, across, labelled=True),
    ]
    values = [{**each, "detected": True} for each in all_values(points)]
    height = _BELOW["unlisted"]
    parts = _layers(values, height, layers)
    what, words = _MASS[kind]
    title = f"{what}: {last_text(points)} in the last period"
    return Panel(title, (words,), parts, height + _AXIS)


def _layers(values: list[Spec], height: int, layers: list[Spec]) -> Spec:
    return {"height": height, "data": {"values": values}, "layer": layers}
