"""Parts of charts that several figures share: legends, axes, scales, and the detection chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rappor.charts.marks import percent_axis, wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.best_test import power

_COLOUR = colours()
WHY_BELOW = (
    "Most dots lie a little below the line: the line is for a test that knows the noise, every "
    "other string and the level at which the false discovery rate settles; a decoder has to learn "
    "all three from the same counts."
)


def legend(title: str | None = None, **more: object) -> Spec:
    """A horizontal legend below the chart, with wide gaps: readers' fonts differ from ours."""
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
    """A round number in words, because many fonts lack superscript digits.

    >>> in_words(10_000), in_words(10**6), in_words(10**10)
    ('10,000', '1 million', '10 billion')
    """
    for size, name in ((10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:g} {name}"
    return f"{number:,.0f}"


def detection_chart(
    title: str,
    words: str,
    *,
    reports: int,
    error: float,
    level: float,
    dots: Sequence[tuple[float, float]],
    claimed: float,
    claim: Sequence[str],
    most: float,
    side: str = "right",
) -> Spec:
    """A chart of the chance of detection against the true share.

    Args:
        title: the heading.
        words: the line below it.
        reports: N.
        error: standard error of a count.
        level: the one-sided level of one test.
        dots: true shares and the shares of seeds in which they were detected.
        claimed: a share that was said to be detectable.
        claim: words for it, a line each.
        most: the largest share drawn.
        side: the side of the rule on which the words stand, "left" or "right".
    """
    grid = np.linspace(0, most, 201)
    curve = power(reports * grid, error, level)
    line = [{"share": float(x), "chance": float(y)} for x, y in zip(grid, curve, strict=True)]
    seen = [{"share": x, "chance": y} for x, y in dots if x <= most]
    place = {
        "x": {
            "field": "share",
            "type": "quantitative",
            "scale": {"domain": [0, most], "nice": False},
            "axis": percent_axis(title="True share of reports"),
        },
        "y": {
            "field": "chance",
            "type": "quantitative",
            "scale": {"domain": [0, 1]},
            "axis": percent_axis(title="Detected in"),
        },
    }
    mark = [{"share": claimed}]
    at = {"field": "share", "type": "quantitative"}
    layers: list[Spec] = [
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": _COLOUR["c1"], "strokeWidth": 2},
            "encoding": place,
        },
        {
            "data": {"values": seen},
            "mark": {"type": "circle", "size": 55, "opacity": 0.85, "color": _COLOUR["c4"]},
            "encoding": place,
        },
        {
            "data": {"values": mark},
            "mark": {"type": "rule", "strokeDash": [5, 3], "color": _COLOUR["threshold"]},
            "encoding": {"x": at},
        },
        {
            "data": {"values": mark},
            "mark": {
                "type": "text",
                "align": "left" if side == "right" else "right",
                "baseline": "top",
                "dx": 6 if side == "right" else -6,
                "dy": 4,
                "color": _COLOUR["threshold"],
                "text": list(claim),
            },
            "encoding": {"x": at, "y": {"value": 0}},
        },
    ]
    parts: Spec = {"width": 560, "height": 250, "layer": layers}
    return whole_chart(parts, title, wrapped([words], 95), "light")
