"""Figure 6, the effect of concentration, and how frequent a homepage must be (§5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rappor.charts.marks import percent_axis, wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.best_test import power
from rappor.experiments.chrome.runs import (
    CANDIDATES,
    PARAMS,
    POWERS,
    REPORTS,
    ChromeRun,
    best_possible,
    zipf_shares,
)
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import detection_chart, legend, named
from rappor.privacy.limits import standard_error
from rappor.typing import FloatArray

_COLOUR = colours()
_ESTIMATE, _TRUTH = "estimate with 95 % interval", "true share"


def top(rows: Sequence[tuple[int, float, float, float, float]]) -> Figure:
    """Figure 6: the largest estimates with their intervals, and the true shares."""
    values = [
        {"place": place, "share": share, "low": low, "high": high, "true": true}
        for place, (_, share, low, high, true) in enumerate(rows, 1)
    ]
    place: Spec = {
        "field": "place",
        "type": "ordinal",
        "axis": {"title": "Homepage, by estimate", "labelAngle": 0, "ticks": False},
    }
    key = {_ESTIMATE: _COLOUR["bar"], _TRUTH: _COLOUR["c2"]}
    layers: list[Spec] = [
        {
            "transform": [{"calculate": f"'{_ESTIMATE}'", "as": "what"}],
            "mark": {"type": "bar", "width": {"band": 0.7}},
            "encoding": {
                "x": place,
                "y": {
                    "field": "share",
                    "type": "quantitative",
                    "axis": percent_axis(title="Share of reports"),
                },
                "color": named("what", key, legend(symbolType="square")),
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": _COLOUR["text"]},
            "encoding": {
                "x": place,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
            },
        },
        {
            "transform": [{"calculate": f"'{_TRUTH}'", "as": "what"}],
            "mark": {
                "type": "tick",
                "orient": "horizontal",
                "thickness": 2.5,
                "size": 15,
                "opacity": 1,
            },
            "encoding": {
                "x": place,
                "y": {"field": "true", "type": "quantitative"},
                "color": named("what", key, legend(symbolType="square")),
            },
        },
    ]
    words = [
        f"The {len(values)} largest of those detected at a false discovery rate of 5 %, in the "
        "first seed of the synthetic stand-in 'head and tail'. Not the paper's homepages."
    ]
    parts: Spec = {"width": 660, "height": 260, "data": {"values": values}, "layer": layers}
    return Figure(
        "chrome-top",
        "Figure 6: the most frequent homepages found",
        "Estimated shares of the 31 largest homepages found in 14 million reports, with 95 % "
        "intervals, and the true shares of the synthetic population.",
        whole_chart(parts, "Homepages found in 14 million reports", wrapped(words, 110), "light"),
    )


def concentration(
    by_name: Mapping[str, Sequence[ChromeRun]], mass: float, significant: float
) -> Figure:
    """Mass found and number detected against the exponent of a Zipf law."""
    grid = np.linspace(POWERS[0], POWERS[-1], 33)
    chances = [(power, zipf_shares(power)) for power in grid.tolist()]
    best = [
        {
            "power": power,
            "mass": float(best_possible(s) @ s),
            "number": float(best_possible(s).sum()),
        }
        for power, s in chances
    ]
    dots = [
        {
            "power": power,
            "mass": float(np.mean([found.mass for found in by_name[f"Zipf {power:.1f}"]])),
            "number": float(np.mean([found.number for found in by_name[f"Zipf {power:.1f}"]])),
        }
        for power in POWERS
    ]
    most = significant * CANDIDATES
    panels = [
        _panel(
            best, dots, "mass", percent_axis(title="Mass found"), [0, 1], mass, "published: 85 %"
        ),
        _panel(
            best,
            dots,
            "number",
            {"title": "Homepages detected", "tickCount": 6},
            [0, 50],
            most,
            f"published: fewer than {most:.0f} (0.5 %)",
        ),
    ]
    words = [
        "Line: the best possible test at a false discovery rate of 5 %. Dots: our decoder, mean of "
        f"{len(next(iter(by_name.values())))} seeds."
    ]
    return Figure(
        "chrome-concentration",
        "How concentrated the population has to be",
        "The share of the mass that can be found depends on the population: for Zipf laws it grows "
        "with the exponent while the number of homepages found falls.",
        whole_chart(
            {"hconcat": panels, "spacing": 40},
            "What 14 million reports reveal of a Zipf population",
            wrapped(words),
            "light",
        ),
    )


def _panel(
    best: list[Spec],
    dots: list[Spec],
    field: str,
    axis: Spec,
    domain: list[float],
    published: float,
    label: str,
) -> Spec:
    place = {
        "x": {
            "field": "power",
            "type": "quantitative",
            "scale": {"domain": [POWERS[0] - 0.05, POWERS[-1] + 0.05], "nice": False},
            "axis": {"title": "Exponent of the Zipf law", "values": list(POWERS), "format": ".1f"},
        },
        "y": {"field": field, "type": "quantitative", "scale": {"domain": domain}, "axis": axis},
    }
    at = {"field": "at", "type": "quantitative"}
    once = {"values": [{"at": published}]}
    return {
        "width": 290,
        "height": 240,
        "layer": [
            {
                "data": {"values": best},
                "mark": {"type": "line", "color": _COLOUR["c1"], "strokeWidth": 2},
                "encoding": place,
            },
            {
                "data": {"values": dots},
                "mark": {"type": "circle", "size": 70, "opacity": 1, "color": _COLOUR["c4"]},
                "encoding": place,
            },
            {
                "data": once,
                "mark": {"type": "rule", "strokeDash": [5, 3], "color": _COLOUR["threshold"]},
                "encoding": {"y": at},
            },
            {
                "data": once,
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom",
                    "dx": 6,
                    "dy": -3,
                    "color": _COLOUR["threshold"],
                    "text": label,
                },
                "encoding": {"y": at, "x": {"value": 0}},
            },
        ],
    }


def detection(
    found: Sequence[ChromeRun], shares: FloatArray, level: float, claimed: float
) -> Figure:
    """How often a homepage is detected, against its true share."""
    error = standard_error(PARAMS, REPORTS)
    order = np.argsort(-shares)[:60]
    hits = np.mean([run.detected[order] for run in found], axis=0)
    chance = float(power([REPORTS * claimed], error, level)[0])
    spec = detection_chart(
        "Chance that a homepage is detected",
        "Line: the best possible test at a false discovery rate of 5 %. Dots: homepages of the "
        f"synthetic stand-in 'head and tail', over {len(found)} seeds.",
        reports=REPORTS,
        error=error,
        level=level,
        dots=list(zip(shares[order].tolist(), hits.tolist(), strict=True)),
        claimed=claimed,
        claim=(
            f"said to be detectable: {100 * claimed:g} %,",
            f"{claimed * REPORTS / error:.2f} standard errors",
        ),
        most=0.015,
    )
    return Figure(
        "chrome-detection",
        "How frequent a homepage must be",
        f"A homepage of {100 * claimed:g} % is found in {100 * chance:.1f} % of collections.",
        spec,
    )
