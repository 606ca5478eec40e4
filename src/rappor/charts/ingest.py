"""The chart of the Ingest page: reports a second by minute."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rappor.charts.theme import SCHEMA, Spec, colours, config


def rates(minutes: Sequence[tuple[float, float]], theme: str = "light") -> Spec:
    """A line of reports a second over minutes.

    Args:
        minutes: (start of the minute in seconds since 1970, reports a second), oldest first.
        theme: light or dark.

    >>> rates([(0.0, 12.5), (60.0, 13.0)])["data"]["values"][1]["time"]
    '1970-01-01T00:01:00Z'
    """
    colour = colours(theme)
    values = [
        {"time": datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "rate": rate}
        for start, rate in minutes
    ]
    tooltip = [
        {"field": "time", "type": "temporal", "timeUnit": "utchoursminutes", "title": "UTC"},
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
                "field": "time",
                "type": "temporal",
                "scale": {"type": "utc"},
                "axis": {
                    "format": "%H:%M",
                    "title": None,
                    "tickCount": 6,
                    "labelFlush": True,
                    "grid": False,
                },
            },
            "y": {
                "field": "rate",
                "type": "quantitative",
                "scale": {"zero": True, "nice": True},
                "axis": {"title": None, "format": ",~g", "tickCount": 4, "tickMinStep": 1},
            },
            "tooltip": tooltip,
        },
        "config": config(theme),
    }
