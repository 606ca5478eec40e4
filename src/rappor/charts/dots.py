"""Rows on a logarithmic scale: dots, because a bar would have to begin somewhere."""

from __future__ import annotations

import math
from typing import Any

from rappor.charts.bars import STEP, either, label_limit, text_right, threshold_rule
from rappor.charts.panel import Panel
from rappor.charts.results import said
from rappor.charts.rows import (
    FIELDS,
    PAGE_ROWS,
    TOOLTIP,
    chosen,
    detection,
    row_place,
    row_values,
    unit_axis,
)
from rappor.charts.theme import Spec, colours

_AROUND = 62  # pixels above and below the rows: axis, its title, the threshold's label
_BELOW = 3.0  # how far below the smallest number the scale begins, as a factor


def dots_panel(decoded: Any, *, theme: str = "light", unit: str = "share", page: bool) -> Panel:
    """Estimates as dots with their intervals; one that reaches 0 ends in ◂.

    Estimates of 0 and below have no place on such a scale: their interval alone is drawn.
    """
    shown = chosen(decoded, PAGE_ROWS)
    title, words = said(decoded, shown)
    words = [line.replace("Hollow bars", "Hollow dots") for line in words]
    values = [row_values(row, unit) for row in shown]
    field = FIELDS[unit]
    domain = log_domain([each[end] for each in values for end in (field, "low", "high")])
    for each in values:
        open_ended(each, field, domain[0])
    if any(each["open"] for each in values):
        words.append("◂: the interval reaches 0.")
    return Panel(
        title,
        tuple(words),
        _parts(decoded, values, domain, theme, unit, page),
        STEP * len(shown) + _AROUND,
        420,
    )


def log_domain(numbers: list[float]) -> list[float]:
    """From below the smallest positive number to the largest one.

    >>> log_domain([0.01, 0.2, -0.1])
    [0.0033333333333333335, 0.2]
    """
    positive = [number for number in numbers if number > 0] or [1e-6]
    return [min(positive) / _BELOW, max(positive)]


def open_ended(each: Spec, field: str, floor: float) -> None:
    """Cut what lies below the scale, and say where that was done."""
    each["open"] = not each["low"] > floor
    each["low"], each["high"] = max(each["low"], floor), max(each["high"], floor)
    if not each[field] > 0:
        each[field] = None


def log_ticks(domain: list[float]) -> list[float]:
    """1, 2 and 5 times powers of ten; powers alone where that is enough.

    >>> log_ticks([0.003, 0.2])
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    """
    low, high = (math.floor(math.log10(end)) for end in domain)
    digits = (1, 2, 5) if high - low < 3 else (1,)
    ticks = [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in digits]
    return [tick for tick in ticks if domain[0] <= tick <= domain[1]]


def _parts(
    decoded: Any, values: list[Spec], domain: list[float], theme: str, unit: str, page: bool
) -> Spec:
    colour = colours(theme)
    scale = {"type": "log", "domain": domain, "nice": False}
    axis = unit_axis(unit, orient="top", values=log_ticks(domain), labelOverlap=True)
    place = row_place(0.36, colour["text"], label_limit(page))
    along: Spec = {"field": "low", "type": "quantitative", "scale": scale, "axis": axis}
    row: Spec = {"field": "string", "type": "nominal", "sort": None}
    layers: list[Spec] = [
        *_interval(place, row, along, colour["text"]),
        {
            "transform": [{"filter": f"datum.{FIELDS[unit]} !== null"}],
            "mark": {"type": "point", "size": 64, "strokeWidth": 1.5, "opacity": 1},
            "encoding": {
                "y": row,
                "x": {"field": FIELDS[unit], "type": "quantitative"},
                "fill": either("datum.detected", colour["bar-edge"], colour["bg"]),
                "stroke": either("datum.detected", colour["bar-edge"], colour["edge"]),
                "tooltip": TOOLTIP,
            },
        },
        text_right("shown", page),
    ]
    threshold = detection(decoded, unit, domain)
    if threshold is not None and domain[0] < threshold < domain[1]:
        late = threshold**2 > domain[0] * domain[1]
        side = "right" if late else "left"
        layers += threshold_rule(threshold, unit, colour["threshold"], side)
    return {"height": STEP * len(values), "data": {"values": values}, "layer": layers}


def _interval(place: Spec, row: Spec, along: Spec, ink: str) -> list[Spec]:
    """A line from low to high; its lower end is an arrow where it goes on below the scale."""
    rule = {"type": "rule", "strokeWidth": 1.5, "color": ink}
    end = {"orient": "vertical", "size": 8, "thickness": 1.5, "color": ink, "aria": False}
    tick = {"type": "tick", **end}
    arrow = {"shape": "triangle-left", "filled": True, "size": 50, "opacity": 1, "color": ink}
    low, high = ({"field": name, "type": "quantitative"} for name in ("low", "high"))
    return [
        {"mark": rule, "encoding": {"y": place, "x": along, "x2": {"field": "high"}}},
        {"mark": tick, "encoding": {"y": row, "x": high}},
        {
            "transform": [{"filter": "!datum.open"}],
            "mark": tick,
            "encoding": {"y": row, "x": low},
        },
        {
            "transform": [{"filter": "datum.open"}],
            "mark": {"type": "point", **arrow, "aria": False},
            "encoding": {"y": row, "x": low},
        },
    ]
