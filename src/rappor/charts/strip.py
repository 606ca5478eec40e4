"""All reports as one bar: what is explained, and the mass that nothing explains."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rappor.charts.bars import either
from rappor.charts.marks import percent_axis, whiskers
from rappor.charts.numbers import ShownNumber, show_share
from rappor.charts.theme import Spec, colours

MASS = {
    "category": ("in a listed category", "in none of the listed categories"),
    "string": ("detected", "unlisted mass: not on the list, or too rare to see"),
}


class Split(NamedTuple):
    """Both parts of all reports, in numbers and words."""

    explained: ShownNumber
    inside: str
    rest: ShownNumber
    outside: str
    low: float
    high: float
    edge: float


def split_of(decoded: Any) -> Split | None:
    """What is explained and what is not; None for kinds where that is no question."""
    if decoded.kind not in MASS or not decoded.reports:
        return None
    mass = decoded.unlisted
    if not math.isfinite(mass.proportion):
        return None
    low, high = 1 - mass.prop_high_95, 1 - mass.prop_low_95
    inside, outside = MASS[decoded.kind]
    return Split(
        show_share(1 - mass.proportion, low, high),
        inside,
        show_share(mass.proportion, mass.prop_low_95, mass.prop_high_95),
        outside,
        low,
        high,
        min(max(1 - mass.proportion, 0.0), 1.0),
    )


def strip(split: Split, theme: str) -> Spec:
    """Data and layers of the strip: 24 pixels high, whiskers at the boundary."""
    colour = colours(theme)
    both = {"low": split.low, "high": split.high, "row": ""}
    parts = [
        {
            "from": 0.0,
            "to": split.edge,
            **both,
            "what": split.inside,
            "text": str(split.explained),
            "unlisted": False,
        },
        {
            "from": split.edge,
            "to": 1.0,
            **both,
            "what": split.outside,
            "text": str(split.rest),
            "unlisted": True,
        },
    ]
    tooltip = [
        {"field": "what", "type": "nominal", "title": "Reports"},
        {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
    ]
    bar = {
        "mark": {"type": "bar", "strokeWidth": 1},
        "encoding": {
            "y": {"field": "row", "type": "nominal", "axis": None},
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": percent_axis(title=None, values=[0, 0.25, 0.5, 0.75, 1], labelFlush=True),
            },
            "x2": {"field": "to"},
            "fill": either("datum.unlisted", colour["unlisted"], colour["bar"]),
            "stroke": either("datum.unlisted", colour["edge"], colour["bar-edge"]),
            "strokeDash": {"condition": {"test": "datum.unlisted", "value": [4, 3]}, "value": []},
            "tooltip": tooltip,
        },
    }
    return {
        "height": 24,
        "data": {"values": parts},
        "layer": [bar, *whiskers("x", "row", colour["text"])],
    }
