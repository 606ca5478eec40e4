"""Points over periods: their intervals, the axis they share, and where something changed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.numbers import show_share
from rappor.charts.theme import Spec


class TrendPoint(NamedTuple):
    """A share in one period with its interval; `share` is None where nothing is known."""

    period: str
    share: float | None
    low: float | None
    high: float | None
    detected: bool = False


class TrendLine(NamedTuple):
    """One string over all periods of the axis, in their order."""

    name: str
    points: Sequence[TrendPoint]


class Mark(NamedTuple):
    """From this period on something is different: "v2", "list v8"."""

    period: str
    label: str


def all_values(points: Sequence[TrendPoint]) -> list[Spec]:
    """The points with the number of their run: lines do not cross gaps."""
    found, run = [], 0
    for point in points:
        run += point.share is None
        found.append({**values_of(point), "run": run})
    return found


def values_of(point: TrendPoint) -> Spec:
    """One point as data, with its words."""
    text = "–"
    if point.share is not None and point.low is not None and point.high is not None:
        text = str(show_share(point.share, point.low, point.high))
    return {
        "period": point.period,
        "share": point.share,
        "low": point.low,
        "high": point.high,
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
    """The axis of periods, all of them on it and a few of them named, the ends flush."""
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
    """The interval as an area, the share as a line; neither crosses a gap."""
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
            "transform": [{"filter": "datum.share !== null"}],
            "encoding": {"x": across, "y": up, "detail": {"field": "run", "type": "nominal"}},
        },
    ]


def dots(across: Spec, colour: dict[str, str], periods: int) -> Spec:
    """A dot for each period, smaller where there are many; its area takes the pointer."""
    detected = {"test": "datum.detected", "value": colour["bar-edge"]}
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
            "y": {"field": "share", "type": "quantitative"},
            "fill": {"condition": detected, "value": colour["bg"]},
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
