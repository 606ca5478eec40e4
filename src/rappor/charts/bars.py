"""Rows as bars with their intervals, and the threshold above which a row is detected."""

from __future__ import annotations

from typing import Any

from rappor.charts.marks import whiskers
from rappor.charts.numbers import show_count, show_percent
from rappor.charts.panel import ON_PHONE, unless_phone
from rappor.charts.rows import (
    FIELDS,
    TOOLTIP,
    chosen,
    detection,
    row_place,
    row_values,
    unit_axis,
)
from rappor.charts.theme import Spec, colours

STEP, LABELS, PHONE_LABELS = 22, 240, 118
_INNER = 0.36


def bars(
    decoded: Any, shown: list[Any] | None = None, *, theme: str, unit: str = "share", page: bool
) -> Spec:
    """Data and layers of the bars: filled where detected, hollow where not.

    Args:
        decoded: a Decoded, or anything with its attributes.
        shown: the rows to draw; those that `chosen` finds where None.
        theme: "light" or "dark".
        unit: "share" or "count".
        page: whether it goes into a page, which may be narrow.
    """
    colour = colours(theme)
    rows = chosen(decoded) if shown is None else shown
    values = [row_values(row, unit) for row in rows]
    field = FIELDS[unit]
    ends = [each[end] for each in values for end in (field, "low", "high")]
    threshold = detection(decoded, unit, ends)
    domain = [min(0.0, *ends), max(*ends, threshold or 0.0, 1e-9)]
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "strokeWidth": 1, "cornerRadiusEnd": 2},
            "encoding": {
                "y": row_place(_INNER, colour["text"], label_limit(page)),
                "x": {
                    "field": field,
                    "type": "quantitative",
                    "scale": {"domain": domain, "nice": True},
                    "axis": unit_axis(unit, orient="top"),
                },
                "x2": {"datum": 0},
                "fill": either("datum.detected", colour["bar"], colour["bg"]),
                "stroke": either("datum.detected", colour["bar-edge"], colour["edge"]),
                "tooltip": TOOLTIP,
            },
        },
        *whiskers("x", "string", colour["text"]),
        text_right("shown", page),
    ]
    if threshold is not None:
        late = threshold > 0.6 * domain[1]
        layers += threshold_rule(threshold, unit, colour["threshold"], "right" if late else "left")
    height = STEP * len(values) if page else {"step": STEP}  # a page knows its size beforehand
    return {"height": height, "data": {"values": values}, "layer": layers}


def label_limit(page: bool) -> int | Spec:
    """The most pixels of a string left of the plot."""
    return unless_phone(LABELS, PHONE_LABELS) if page else LABELS


def either(test: str, if_so: str, otherwise: str) -> Spec:
    """One value where a test holds, and another where it does not."""
    return {"condition": {"test": test, "value": if_so}, "value": otherwise}


def text_right(field: str, page: bool, **more: Any) -> Spec:
    """A text right of the plot for each row."""
    text: Spec = {"field": field}
    if page:
        text["condition"] = {"test": ON_PHONE, "value": ""}
    return {
        "mark": {"type": "text", "align": "left", "dx": 12},
        "encoding": {
            "y": {"field": "string", "type": "nominal", "sort": None},
            "x": {"value": "width"},
            "text": text,
            **more,
        },
    }


def threshold_rule(threshold: float, unit: str, colour: str, align: str) -> list[Spec]:
    """A dashed rule from top to bottom, and below it what it is."""
    once: Spec = {"values": [{"threshold": threshold}]}
    at = {"field": "threshold", "type": "quantitative"}
    shown = show_percent(threshold)
    if unit == "count":
        shown = show_count(threshold, float("nan"), float("nan")).value
    return [
        {
            "data": once,
            "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": colour},
            "encoding": {"x": at},
        },
        {
            "data": once,
            "mark": {
                "type": "text",
                "align": align,
                "baseline": "top",
                "dx": -4 if align == "left" else 4,
                "dy": 6,
                "color": colour,
                "text": f"detection threshold ≈ {shown}",
            },
            "encoding": {"x": at, "y": {"value": "height"}},
        },
    ]
