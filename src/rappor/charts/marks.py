"""Pieces that several charts share: percent axes, interval whiskers, wrapped words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rappor.charts.theme import Spec

PERCENT_LABELS = "format(datum.value * 100, '.3~g') + '\u00a0%'"


def percent_axis(**more: object) -> Spec:
    """An axis of shares, labelled in percent without repeated ticks."""
    return {"labelExpr": PERCENT_LABELS, "tickCount": 6, **more}


def reports_up() -> Spec:
    """How many reports, upwards: few ticks with short labels, and room for them."""
    axis = {"labelExpr": "format(datum.value, '~s')", "tickCount": 3, "minExtent": 44}
    return {"field": "reports", "type": "quantitative", "axis": {"title": None, **axis}}


def whiskers(along: str, across: str, colour: str, ends: bool = True) -> list[Spec]:
    """Rule and end ticks from `low` to `high` along one axis, at each value of the other.

    Without `ends`, a thin rule only: where there are many, ticks run into each other.
    """
    place: Spec = {"field": across, "type": "nominal", "sort": None}
    low, high = ({"field": end, "type": "quantitative"} for end in ("low", "high"))
    other = "y" if along == "x" else "x"
    orient = "vertical" if along == "x" else "horizontal"
    rule = {
        "mark": {"type": "rule", "strokeWidth": 1.5 if ends else 1, "color": colour},
        "encoding": {other: place, along: low, f"{along}2": {"field": "high"}},
    }
    if not ends:
        return [rule]
    return [rule] + [
        {
            "mark": {
                "type": "tick",
                "orient": orient,
                "size": 8,
                "thickness": 1.5,
                "color": colour,
            },
            "encoding": {other: place, along: end},
        }
        for end in (low, high)
    ]


def wrapped(sentences: Iterable[str], width: int = 100) -> list[str]:
    """Sentences as lines that fit under a title."""
    return [line for sentence in sentences for line in textwrap.wrap(sentence, width)]
