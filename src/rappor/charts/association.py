"""Charts of an association: a heat map of the joint shares, and shares of one given the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rappor.charts.marks import Panel, percent_axis, unless_phone, whiskers
from rappor.charts.numbers import MISSING, show_percent, show_share
from rappor.charts.theme import Spec, colours

MAX_SHOWN = 20  # values of a field in a chart: its most frequent ones
_STEP = 30  # pixels of a row
_WIDTH = 560
_PHONE_WIDTH = 200  # pixels that a phone has for the columns
_SHADES = 5
_LABEL = 44  # pixels of a share in a square
_LETTER, _GAP = 7, 8  # pixels of a letter in a column's name, and between two names
_MAX_NAME = 110  # pixels of a column's name that stands upright


def association_panel(
    found: Any, title: str, words: Sequence[str] = (), *, theme: str = "light", page: bool = False
) -> Panel:
    """A square for each pair of values, labelled with its share where there is room.

    A ring marks pairs that depart from independence. Where a field has more than 20 values, the
    most frequent ones are shown. The intervals, and the shares of each value by itself, are in the
    tooltips.

    Args:
        found: an `Association`.
        title: what it shows.
        words: further sentences.
        theme: "light" or "dark".
        page: whether it is for a page, which may be narrow.
    """
    colour = colours(theme)
    rows, columns = (_frequent(margin) for margin in found.margins)
    alone = [{each.value: _alone(each) for each in side} for side in (rows, columns)]
    values = []
    for cell in found.rows:
        if cell.first not in alone[0] or cell.second not in alone[1] or math.isnan(cell.share):
            continue
        shown = show_share(cell.share, cell.low_95, cell.high_95)
        values.append(
            {
                "first": cell.first,
                "second": cell.second,
                "first alone": alone[0][cell.first],
                "second alone": alone[1][cell.second],
                "share": max(cell.share, 0.0),
                "text": shown.value,
                "interval": str(shown),
                "expected": _expected(cell.expected),
                "departs": cell.associated,
            }
        )
    top = max([row["share"] for row in values], default=0.0) or 1.0
    scale = {
        "domain": [top * step / (_SHADES - 1) for step in range(_SHADES)],
        "range": [colour[f"s{number}"] for number in range(1, _SHADES + 1)],
        "interpolate": "rgb",
        "clamp": True,
    }
    orders = [[each.value for each in side] for side in (rows, columns)]
    longest = max(map(len, orders[1]), default=0)
    room = len(columns) * (_LETTER * longest + _GAP)  # of the names of columns side by side
    upright = f"width < {room}"
    place = {
        "y": _names("first", found.names[0], orders[0], unless_phone(240, 118) if page else 240),
        "x": _names("second", found.names[1], orders[1], _MAX_NAME),
    }
    place["x"]["axis"] |= {
        "orient": "top",
        "labelAngle": {"expr": f"{upright} ? -90 : 0"},
        "labelAlign": {"expr": f"{upright} ? 'left' : 'center'"},
        "labelBaseline": {"expr": f"{upright} ? 'middle' : 'bottom'"},
        "labelLimit": {"expr": f"{upright} ? {_MAX_NAME} : {_LETTER * longest + _GAP}"},
    }
    tooltip = [
        {"field": name, "type": "nominal", "title": title}
        for name, title in (
            ("first", found.names[0]),
            ("second", found.names[1]),
            ("interval", "Share of all reports"),
            ("expected", "If independent"),
            ("first alone", f"{found.names[0]} by itself"),
            ("second alone", f"{found.names[1]} by itself"),
        )
    ]
    square: Spec = {
        "mark": {"type": "rect", "stroke": colour["bg"], "strokeWidth": 1},
        "encoding": {
            **place,
            "color": {"field": "share", "type": "quantitative", "scale": scale, "legend": None},
            "tooltip": tooltip,
        },
    }
    dark = {"test": f"datum.share > {0.55 * top!r}", "value": colour["bg"]}
    label: Spec = {
        "mark": {
            "type": "text",
            "fontSize": 11,
            "aria": False,
            "opacity": {"expr": f"width < {_LABEL * len(columns)} ? 0 : 1"},
        },
        "encoding": {
            **place,
            "text": {"field": "text", "type": "nominal"},
            "color": {"condition": dark, "value": colour["text"]},
        },
    }
    ring: Spec = {
        "transform": [{"filter": "datum.departs"}],
        "mark": {
            "type": "rect",
            "fillOpacity": 0,
            "stroke": colour["c2"],
            "strokeWidth": 2,
            "aria": False,
        },
        "encoding": place,
    }
    height = _STEP * max(len(rows), 1)
    parts: Spec = {
        "height": height,
        "data": {"values": values},
        "layer": [square, ring, label] if len(columns) <= MAX_SHOWN // 2 else [square, ring],
    }
    left_out = _cut(found, (len(rows), len(columns)))
    said = ("A ring marks a pair that departs from independence.", *left_out)
    names = min(_LETTER * longest, _MAX_NAME) if room > _PHONE_WIDTH else 0
    return Panel(title, (*words, *said), parts, height + names + 50, _WIDTH)


def conditional_panel(found: Any, given: str, *, theme: str = "light") -> Panel:
    """The shares of the second field among reports that hold one value of the first.

    Args:
        found: an `Association`.
        given: a value of the first field.
        theme: "light" or "dark".
    """
    colour = colours(theme)
    cells = [cell for cell in found.rows if cell.first == given]
    known = [cell for cell in cells if not math.isnan(cell.share_given_first)]
    known = sorted(known, key=lambda cell: -cell.share_given_first)[:MAX_SHOWN]
    values = [
        {
            "string": cell.second,
            "share": cell.share_given_first,
            "low": cell.given_first_low_95,
            "high": cell.given_first_high_95,
            "text": str(
                show_share(
                    cell.share_given_first, cell.given_first_low_95, cell.given_first_high_95
                )
            ),
        }
        for cell in known
    ]
    bars: Spec = {
        "mark": {"type": "bar", "fill": colour["bar"], "stroke": colour["bar-edge"]},
        "encoding": {
            "y": {
                "field": "string",
                "type": "nominal",
                "sort": None,
                "scale": {"paddingInner": 0.36, "paddingOuter": 0.2},
                "axis": {"title": None, "labelLimit": 180},
            },
            "x": {
                "field": "share",
                "type": "quantitative",
                "axis": percent_axis(title=None, orient="top"),
            },
            "tooltip": [
                {"field": "string", "type": "nominal", "title": found.names[1]},
                {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
            ],
        },
    }
    height = 26 * max(len(values), 1)
    parts: Spec = {
        "height": height,
        "data": {"values": values},
        "layer": [bars, *whiskers("x", "string", colour["text"])],
    }
    title = f"{found.names[1]} among reports whose {found.names[0]} is {given}"
    return Panel(title, ("With 95 % intervals.",), parts, height + 45, _WIDTH)


def _frequent(margin: Sequence[Any]) -> list[Any]:
    """The most frequent values of a field, most frequent first; as listed if nothing tells."""
    if any(math.isnan(each.share) for each in margin):
        return list(margin[:MAX_SHOWN])
    return sorted(margin, key=lambda each: (-each.share, each.value))[:MAX_SHOWN]


def _alone(value: Any) -> str:
    if math.isnan(value.share):
        return MISSING
    return str(show_share(value.share, value.low_95, value.high_95))


def _expected(share: float) -> str:
    return MISSING if math.isnan(share) else show_percent(max(share, 0.0))


def _names(field: str, title: str, order: list[str], limit: int | Spec) -> Spec:
    return {
        "field": field,
        "type": "nominal",
        "sort": order,
        "axis": {"title": title, "labelLimit": limit, "ticks": False, "domain": False},
    }


def _cut(found: Any, shown: tuple[int, int]) -> list[str]:
    return [
        f"{number} of {len(margin)} values of {name} are shown."
        if math.isnan(margin[0].share)
        else f"The {number} most frequent of {len(margin)} values of {name} are shown."
        for number, margin, name in zip(shown, found.margins, found.names, strict=True)
        if len(margin) > number
    ]
