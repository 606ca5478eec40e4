"""How likely a share is to be detected: the best test's curve, simulated dots, a claimed share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rappor.charts.marks import percent_axis, wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.best_test import power

_COLOUR = colours()
WHY_BELOW = (
    "Most dots lie a little below the line: it is for a test that knows the noise, every other "
    "string and the level at which the false discovery rate settles; a decoder has to learn all "
    "three from the same counts."
)


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
    beside: str = "right",
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
        beside: on which side of the rule the words stand, "left" or "right".
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
                "align": "left" if beside == "right" else "right",
                "baseline": "top",
                "dx": 6 if beside == "right" else -6,
                "dy": 4,
                "color": _COLOUR["threshold"],
                "text": list(claim),
            },
            "encoding": {"x": at, "y": {"value": 0}},
        },
    ]
    parts: Spec = {"width": 560, "height": 250, "layer": layers}
    return whole_chart(parts, title, wrapped([words], 95), "light")
