"""The chart of the Ingest page: reports a second by minute."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rappor.charts.theme import SCHEMA, Spec, colours, config

_MAX_TICKS = 6  # labels that fit next to each other on a phone


def rates(minutes: Sequence[tuple[float, float]], theme: str = "light") -> Spec:
    """A line of reports a second over minutes; each tick is a minute, so none repeats.

    Args:
        minutes: (start of the minute in seconds since 1970, reports a second), oldest first.
        theme: light or dark.

    >>> rates([(0.0, 12.5), (60.0, 13.0)])["data"]["values"][1]
    {'at': 60000.0, 'time': '00:01', 'rate': 13.0}
    """
    colour = colours(theme)
    # Without a report the axis goes up to 1, so that the line lies at its foot.
    top = {} if any(rate for _, rate in minutes) else {"domainMax": 1}
    step = -(-len(minutes) // _MAX_TICKS)
    ticks = [1000 * start for start, _ in minutes[::-1][::step]][::-1]
    values = [
        {
            "at": 1000 * start,
            "time": datetime.fromtimestamp(start, UTC).strftime("%H:%M"),
            "rate": rate,
        }
        for start, rate in minutes
    ]
    tooltip = [
        {"field": "time", "type": "nominal", "title": "UTC"},
        {"field": "rate", "type": "quantitative", "format": ",.3~r", "title": "Reports a second"},
    ]
    return {
        "$schema": SCHEMA,
        "description": "Reports a second by minute.",
        "width": "container",
        "height": 140,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 4,
        "data": {"values": values},
        "mark": {
            "type": "line",
            "color": colour["bar-edge"],
            "strokeWidth": 1.75,
            "point": {"color": colour["bar-edge"], "size": 16},
        },
        "encoding": {
            "x": {
                "field": "at",
                "type": "quantitative",
                "scale": {"zero": False, "nice": False},
                "axis": {
                    "labelExpr": "utcFormat(datum.value, '%H:%M')",
                    "title": None,
                    "values": ticks,
                    "labelFlush": True,
                    "grid": False,
                },
            },
            "y": {
                "field": "rate",
                "type": "quantitative",
                "scale": {"domainMin": 0, "nice": True, **top},
                "axis": {"title": None, "format": ",.12~r", "tickCount": 4, "tickMinStep": 1},
            },
            "tooltip": tooltip,
        },
        "config": config(theme),
    }
