"""Pieces that several figures share: legends with room, log axes, scales by name."""

from __future__ import annotations

from collections.abc import Mapping

from rappor.charts.marks import percent_axis
from rappor.charts.theme import Spec, colours


def legend(title: str | None = None, **more: object) -> Spec:
    """A horizontal legend below the chart; wide gaps, as readers' fonts differ from ours."""
    colour = colours()
    return {
        "title": title,
        "orient": "bottom",
        "direction": "horizontal",
        "columnPadding": 36,
        "symbolOpacity": 1,
        "labelColor": colour["text"],
        "labelFontSize": 12,
        "labelLimit": 320,
        "titleColor": colour["muted"],
        "titleFontSize": 12,
        "titleFontWeight": 400,
        **more,
    }


def named(field: str, range_of: Mapping[str, object], key: Spec | None) -> Spec:
    """An encoding that gives each name its own colour, shape or dash, in the order given."""
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(range_of), "range": list(range_of.values())},
        "sort": list(range_of),
        "legend": key,
    }


def share_axis(field: str, title: str) -> Spec:
    """An axis from 0 to 100 %."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": percent_axis(title=title),
    }


def powers_of_ten(field: str, title: str, low: int, high: int) -> Spec:
    """A log axis from 10^low to 10^high that labels each power of ten in words."""
    names = ", ".join(f"'{in_words(10**power)}'" for power in range(low, high + 1))
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": [10**low, 10**high], "nice": False},
        "axis": {
            "title": title,
            "values": [10**power for power in range(low, high + 1)],
            "labelExpr": f"[{names}][round(log(datum.value) / LN10) - {low}]",
        },
    }


def in_words(number: float) -> str:
    """A round number as people say it; raised digits are missing from many fonts.

    >>> in_words(10_000), in_words(10**6), in_words(10**10)
    ('10,000', '1 million', '10 billion')
    """
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:g} {name}"
    return f"{number:,.0f}"
