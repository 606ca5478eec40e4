"""The chart of a result: bars with their intervals, and the mass that nothing explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rappor.charts.marks import Panel, percent_axis, whiskers, wrapped
from rappor.charts.numbers import ShownNumber, show_part, show_rest
from rappor.charts.rows import MAX_ROWS, ROWS_WIDTH, bars, chosen, either, said
from rappor.charts.theme import Spec, colours, message, whole_chart

MASS = {
    "category": ("in a listed category", "in none of the listed categories"),
    "string": ("detected", "undetected mass: not on the list, or too rare to see"),
}


def results(decoded: Any, *, truth: Mapping[str, int] | None = None, theme: str = "light") -> Spec:
    """The largest rows as bars, 95 % intervals as whiskers, the detection threshold as a rule.

    Filled bars are detected, hollow ones are not. A strip below shows the mass that no detected
    string (or no listed category) explains. At most 30 rows are drawn; the subtitle names their
    number.

    Args:
        decoded: a Decoded, or anything with its attributes.
        truth: of a simulation, the number of reports that hold each string: drawn as diamonds.
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
    shown = chosen(decoded, MAX_ROWS)
    title, words = said(decoded, shown)
    panels = [{"width": ROWS_WIDTH, **bars(decoded, shown, theme=theme, page=False)}]
    if truth is not None:
        points = _truth(truth, shown, decoded.reports, theme)
        domain = panels[0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
        domain[1] = max(domain[1], *(value["truth"] for value in points["data"]["values"]))
        panels[0]["layer"].append(points)
        words.append("Diamonds are the truth of the simulation.")
    split = split_of(decoded)
    if split is not None:
        lines = [f"■ {split.explained} {split.inside}", f"□ {split.rest} {split.outside}"]
        above = {"text": lines, "fontSize": 13, "fontWeight": 400, "offset": 6, "frame": "group"}
        panels.append({"title": above, "width": ROWS_WIDTH, **strip(split, theme)})
    words += [f"Check: {warning}" for warning in decoded.warnings[:2]]
    return whole_chart({"vconcat": panels, "spacing": 28}, title, wrapped(words), theme)


def _truth(truth: Mapping[str, int], shown: list[Any], reports: int, theme: str) -> Spec:
    """A diamond at the true share of each row."""
    values = [{"string": row.string, "truth": truth.get(row.string, 0) / reports} for row in shown]
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 60, "opacity": 1}
    return {
        "data": {"values": values},
        "mark": {**diamond, "color": colours(theme)["c3"]},
        "encoding": {
            "y": {"field": "string", "type": "nominal", "sort": None},
            "x": {"field": "truth", "type": "quantitative"},
        },
    }


def strip_panel(decoded: Any, *, theme: str = "light") -> Panel | None:
    """The strip by itself; None for kinds without one."""
    split = split_of(decoded)
    if split is None:
        return None
    words = (f"{split.rest} {split.outside}.",)
    return Panel(f"{split.explained} {split.inside}", words, strip(split, theme), 50)


class Split(NamedTuple):
    """The explained and the unexplained share of all reports, in numbers and words."""

    explained: ShownNumber
    inside: str
    rest: ShownNumber
    outside: str
    low: float
    high: float
    edge: float


def split_of(decoded: Any) -> Split | None:
    """The explained and the unexplained share; None for kinds without unexplained mass."""
    if decoded.kind not in MASS or not decoded.reports:
        return None
    mass = decoded.undetected_mass
    if not math.isfinite(mass.proportion):
        return None
    low, high = 1 - mass.prop_high_95, 1 - mass.prop_low_95
    inside, outside = MASS[decoded.kind]
    return Split(
        show_rest(mass.proportion, mass.prop_low_95, mass.prop_high_95),
        inside,
        show_part(mass.proportion, mass.prop_low_95, mass.prop_high_95),
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
            "undetected": False,
        },
        {
            "from": split.edge,
            "to": 1.0,
            **both,
            "what": split.outside,
            "text": str(split.rest),
            "undetected": True,
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
            "fill": either("datum.undetected", colour["undetected"], colour["bar"]),
            "stroke": either("datum.undetected", colour["edge"], colour["bar-edge"]),
            "strokeDash": {"condition": {"test": "datum.undetected", "value": [4, 3]}, "value": []},
            "tooltip": tooltip,
        },
    }
    return {
        "height": 24,
        "data": {"values": parts},
        "layer": [bar, *whiskers("x", "row", colour["text"])],
    }
