"""Reports by cohort: clients draw theirs at random, so all should be about as large."""

from __future__ import annotations

from collections.abc import Sequence

from rappor.charts.marks import Panel, reports_up
from rappor.charts.theme import Spec, colours
from rappor.checks import plural

_HEIGHT = 120


def balance_panel(totals: Sequence[int], *, theme: str = "light") -> Panel:
    """A bar for each cohort, from 0, with a dashed rule where all would be the same.

    Args:
        totals: reports in cohorts 0, 1, …; not all 0.
        theme: "light" or "dark".
    """
    colour = colours(theme)
    equal = sum(totals) / len(totals)
    values = [
        {"cohort": number, "reports": each, "text": f"{each:,}"}
        for number, each in enumerate(totals)
    ]
    step = max(1, -(-len(totals) // 16))
    bars: Spec = {
        "mark": {"type": "bar", "fill": colour["bar"], "stroke": colour["bar-edge"]},
        "encoding": {
            "x": {
                "field": "cohort",
                "type": "ordinal",
                "scale": {"paddingInner": 0.2, "paddingOuter": 0.1},
                "axis": {
                    "title": "Cohort",
                    "labelAngle": 0,
                    "values": list(range(0, len(totals), step)),
                },
            },
            "y": reports_up(),
            "tooltip": [
                {"field": "cohort", "type": "ordinal", "title": "Cohort"},
                {"field": "text", "type": "nominal", "title": "Reports"},
            ],
        },
    }
    if len(totals) > 32:
        bars["mark"] = {"type": "bar", "fill": colour["bar"]}
        narrow = {"paddingInner": 0.1 if len(totals) <= 256 else 0, "paddingOuter": 0}
        bars["encoding"]["x"]["scale"] = narrow
    rule = {
        "data": {"values": [{"equal": equal}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": colour["threshold"]},
        "encoding": {"y": {"field": "equal", "type": "quantitative"}},
    }
    parts = {"height": _HEIGHT, "data": {"values": values}, "layer": [bars, rule]}
    words = (f"Dashed line: {equal:,.0f}, the same number in each cohort.",)
    low, high = min(totals), max(totals)
    sizes = f"{low:,} to {high:,} reports" if low < high else f"{low:,} reports"
    title = f"{sizes} in each of {plural(len(totals), 'cohort', 'cohorts')}"
    return Panel(title, words, parts, _HEIGHT + 48)
