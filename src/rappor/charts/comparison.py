"""Two results next to each other: each row twice, with intervals and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rappor.charts.marks import Panel
from rappor.charts.numbers import NO_BREAK, show_difference
from rappor.charts.rows import (
    FIELDS,
    ROWS_WIDTH,
    TOOLTIP,
    either,
    ends_of,
    label_limit,
    log_domain,
    log_ticks,
    open_ended,
    row_place,
    row_values,
    text_right,
    unit_axis,
)
from rappor.charts.theme import Spec, colours

ROW_STEP = 30
_AROUND = 45  # pixels above and below the rows: the axis and its title
_APART = 5  # pixels of each side from the middle of its row


class Pair(NamedTuple):
    """One row of both sides, their difference, and N of both if it is known."""

    one: Any
    other: Any
    difference: Any
    reports: tuple[int | None, int | None] = (None, None)


def comparison_title(different: int, tested: int, kind: str, names: tuple[str, str]) -> str:
    """How many rows differ between the two sides, for a title.

    >>> comparison_title(1, 41, "string", ("2026-W47", "2026-W46"))
    '1 of 41 candidates differs between 2026-W47 and 2026-W46'
    """
    noun = "candidates" if kind == "string" else "values"
    verb = "differs" if different == 1 else "differ"
    found = f"{different:,} of {tested:,} {noun} {verb}" if different else f"No {noun} differ"
    return f"{found} between {names[0]} and {names[1]}"


def comparison_panel(
    pairs: Sequence[Pair],
    names: tuple[str, str],
    title: str,
    words: Sequence[str] = (),
    *,
    theme: str = "light",
    unit: str = "share",
    scale: str = "linear",
    page: bool,
) -> Panel:
    """Both sides of each row, and right of them the difference; muted unless detected.

    ● is the first side, ◇ below it the second.

    Args:
        pairs: the rows, in the order to draw them.
        names: the names of both sides.
        title: what it shows.
        words: further sentences.
        theme: "light" or "dark".
        unit: "share" or "count".
        scale: "linear" or "log".
        page: True for a page, False for a file.
    """
    field = FIELDS[unit]
    values = []
    for pair in pairs:
        gap = pair.difference
        shown = str(show_difference(gap.difference, gap.low_95, gap.high_95, gap.different))
        for side, row in enumerate((pair.one, pair.other)):
            each = row_values(row, unit, pair.reports[side])
            more = {"side": side, "name": names[side], "gap": shown, "different": gap.different}
            values.append(each | more)
    ends = ends_of(values)
    domain = [0.0, max(*ends, 1e-9)]
    if scale == "log":
        domain = log_domain(ends)
        for row in values:
            open_ended(row, field, domain[0])
    else:
        values = [row | {"open": row["low"] is None, "low": row["low"] or 0.0} for row in values]
    return Panel(
        title,
        (f"●{NO_BREAK}{names[0]}, ◇{NO_BREAK}{names[1]}.", *words),
        _parts(values, domain, theme, unit, scale, page),
        ROW_STEP * len(pairs) + _AROUND,
        ROWS_WIDTH,
    )


def _parts(
    values: list[Spec], domain: list[float], theme: str, unit: str, scale: str, page: bool
) -> Spec:
    colour = colours(theme)
    along: Spec = {"type": "linear", "domain": domain, "nice": True}
    axis = unit_axis(unit, orient="top")
    if scale == "log":
        along = {"type": "log", "domain": domain, "nice": False}
        axis |= {"values": log_ticks(domain), "labelOverlap": True}
    place = row_place(0.2, colour["text"], label_limit(page))
    layers: list[Spec] = []
    for side, name in enumerate(("c1", "c2")):
        layers += _side(side, colour[name], colour["bg"], place, along, axis, unit)
    once = [{"filter": "datum.side === 0"}]
    muted = either("datum.different", colour["text"], colour["muted"])
    last = text_right("gap", page, color=muted)
    last["transform"] = once
    height = ROW_STEP * len(values) // 2
    return {"height": height, "data": {"values": values}, "layer": [*layers, last]}


def _side(
    side: int, colour: str, inside: str, place: Spec, along: Spec, axis: Spec, unit: str
) -> list[Spec]:
    only = [{"filter": f"datum.side === {side}"}]
    shift = _APART if side else -_APART
    tick: Spec = {
        "type": "tick",
        "orient": "vertical",
        "size": 8,
        "thickness": 1.5,
        "yOffset": shift,
        "aria": False,
    }
    row = {"field": "string", "type": "nominal", "sort": None}
    field = FIELDS[unit]
    shape = "diamond" if side else "circle"
    found: Spec = {"type": "point", "shape": shape, "size": 56, "strokeWidth": 1.5, "opacity": 1}
    name = {"field": "name", "type": "nominal", "title": "Of"}
    open_end: Spec = {"type": "point", "shape": "triangle-left", "filled": True, "opacity": 1}
    open_end |= {"aria": False}
    ends: list[tuple[str, Spec, list[Spec]]] = [
        ("high", tick, []),
        ("low", tick, [{"filter": "!datum.open"}]),
        ("low", {**open_end, "size": 50, "yOffset": shift}, [{"filter": "datum.open"}]),
    ]
    whisker_ends: list[Spec] = [
        {
            "transform": [*only, *keep],
            "mark": {**mark, "color": colour},
            "encoding": {"y": row, "x": {"field": end, "type": "quantitative"}},
        }
        for end, mark, keep in ends
    ]
    return [
        {
            "transform": only,
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": colour, "yOffset": shift},
            "encoding": {
                "y": place,
                "x": {"field": "low", "type": "quantitative", "scale": along, "axis": axis},
                "x2": {"field": "high"},
            },
        },
        *whisker_ends,
        {
            "transform": [*only, {"filter": f"datum.{field} !== null"}],
            "mark": {
                **found,
                "stroke": colour,
                "fill": inside if side else colour,
                "yOffset": shift,
            },
            "encoding": {
                "y": row,
                "x": {"field": field, "type": "quantitative"},
                "tooltip": [name, *TOOLTIP],
            },
        },
    ]
