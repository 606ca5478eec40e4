"""The chart of plans: the share that each detects by number of reports, with the request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.marks import PERCENT_LABELS, wrapped
from rappor.charts.theme import Spec, colours, whole_chart

_WIDTH, _HEIGHT = 560, 340
_SHARE = {"field": "frequency", "type": "quantitative"}


class PowerLine(NamedTuple):
    """A plan's label, and the share that it detects at each number of reports."""

    label: str
    reports: Sequence[float]
    frequency: Sequence[float]


def plans(
    lines: Sequence[PowerLine],
    reports: float,
    frequency: float,
    title: str,
    words: Sequence[str],
    *,
    theme: str = "light",
) -> Spec:
    """Smallest detectable share over the number of reports, both on logarithmic scales.

    Args:
        lines: at most five plans, best first.
        reports: the number of reports in the request.
        frequency: the share that the best plan detects there.
        title: the chart's title.
        words: sentences below it.
        theme: "light" or "dark".
    """
    colour = colours(theme)
    shown = list(lines)[:5]
    values = [
        {"plan": line.label, "reports": at, "frequency": share}
        for line in shown
        for at, share in zip(line.reports, line.frequency, strict=True)
        if share <= 1
    ]
    order = [line.label for line in shown]
    shades = [colour[f"c{number}"] for number in range(1, len(shown) + 1)]
    across = {
        "field": "reports",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"title": "Reports", "format": "~s", "tickCount": 4, "grid": False},
    }
    up = {
        **_SHARE,
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": "Smallest detectable share of reports",
            "labelExpr": PERCENT_LABELS,
            "values": _ticks([share for line in shown for share in line.frequency]),
        },
    }
    drawn: Spec = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": across,
            "y": up,
            "color": {
                "field": "plan",
                "type": "nominal",
                "scale": {"domain": order, "range": shades},
                "legend": {
                    "title": None,
                    "orient": "bottom",
                    "columns": 1,
                    "labelLimit": _WIDTH,
                    "labelColor": colour["text"],
                    "symbolStrokeWidth": 3,
                },
            },
            "strokeDash": {
                "field": "plan",
                "type": "nominal",
                "scale": {
                    "domain": order,
                    "range": [[1, 0], [8, 3], [2, 3], [8, 3, 2, 3], [4, 4]][: len(order)],
                },
                "legend": None,
            },
        },
    }
    point = {"reports": reports, "frequency": frequency}
    at = {"x": {"field": "reports", "type": "quantitative"}, "y": _SHARE}
    mark = {
        "data": {"values": [point]},
        "layer": [
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "opacity": 1,
                    "size": 80,
                    "color": colour["threshold"],
                },
                "encoding": at,
            },
            {
                "mark": {
                    "type": "text",
                    "align": "right",
                    "dx": -10,
                    "dy": 12,
                    "color": colour["threshold"],
                    "text": f"{100 * frequency:.3g} % of {reports:,.0f}",
                },
                "encoding": at,
            },
        ],
    }
    parts: Spec = {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": values},
        "layer": [drawn, mark],
    }
    return whole_chart(parts, title, wrapped(words), theme)


def _ticks(shares: Sequence[float]) -> list[float]:
    """1, 2 and 5 times the powers of ten that the shares span.

    >>> _ticks([0.03, 0.4])
    [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    """
    smallest, largest = min(shares, default=0.01), min(max(shares, default=1.0), 1.0)
    low, high = math.floor(math.log10(smallest)), math.ceil(math.log10(largest))
    steps = (1, 2, 5) if high - low <= 4 else (1,)
    found = [float(f"{step}e{place}") for place in range(low, high + 1) for step in steps]
    return [tick for tick in found if smallest / 2.5 <= tick <= min(2.5 * largest, 1.0)]
