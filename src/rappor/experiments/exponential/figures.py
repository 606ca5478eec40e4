"""Figure 5, and how many strings are detected over seeds and at best (§5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rappor.charts.marks import percent_axis, wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import legend, named
from rappor.typing import FloatArray

_COLOUR = colours()
_WIDTH = 660
_X = (  # a cross that stands on its feet, in the legend too
    "M-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0L-1,-.6Z"
)
_FOUND, _MISSED, _FALSE = "detected", "not detected", "detected, but held by nobody"


def population(
    shares: FloatArray, detected: Mapping[str, NDArray[np.bool_]], rules: Sequence[str]
) -> Figure:
    """Figure 5: the population, what is detected of it, and false finds, a panel for each rule."""
    panels = [_panel(shares, detected[rule], rule) for rule in rules]
    title = "Which strings of the population are detected"
    words = ["One collection of a million reports, the first seed."]
    spec = whole_chart({"vconcat": panels, "spacing": 18}, title, wrapped(words), "light")
    return Figure(
        "exponential-population",
        "Figure 5: the population and what is detected",
        "Bars are the true frequencies of the 100 strings, red where detected; crosses are "
        "candidates that nobody holds and that were detected all the same.",
        spec,
    )


def _panel(shares: FloatArray, hits: NDArray[np.bool_], rule: str) -> Spec:
    present = len(shares)
    values = [
        {"rank": rank, "share": float(share), "what": _FOUND if hit else _MISSED}
        for rank, (share, hit) in enumerate(zip(shares, hits, strict=False), 1)
    ]
    false = [
        {"rank": present + 1 + int(at), "share": 0.0, "what": _FALSE}
        for at in np.flatnonzero(hits[present:])
    ]
    true = int(hits[:present].sum())
    ink = {_FOUND: _COLOUR["bad"], _MISSED: _COLOUR["bar"], _FALSE: _COLOUR["c4"]}
    key = legend(orient="top-right", direction="vertical", fillColor=_COLOUR["bg"])
    what = named("what", ink, key)
    shape = named("what", {_FOUND: "square", _MISSED: "square", _FALSE: _X}, key)
    rank = {
        "field": "rank",
        "type": "quantitative",
        "scale": {"domain": [0, 2 * present + 1], "nice": False},
        "axis": {
            "title": "Candidate: 1 to 100 by frequency, 101 to 200 held by nobody",
            "grid": False,
            "values": [1, *range(20, 2 * present + 1, 20)],
        },
    }
    share = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [-0.002, 0.055], "nice": False},
        "axis": percent_axis(
            title="True share of reports", values=[0, 0.01, 0.02, 0.03, 0.04, 0.05]
        ),
    }
    return {
        "title": {
            "text": f"{rule}: {true + len(false)} detected, {len(false)} of them false",
            "fontSize": 13,
            "offset": 4,
        },
        "width": _WIDTH,
        "height": 190,
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "bar", "size": 2.6},
                "encoding": {"x": rank, "y": share, "y2": {"datum": 0}, "color": what},
            },
            {
                "data": {"values": false},
                "mark": {
                    "type": "point",
                    "size": 110,
                    "filled": True,
                    "opacity": 1,
                },
                "encoding": {"x": rank, "y": share, "color": what, "shape": shape},
            },
        ],
    }


def over_seeds(found: Mapping[str, Sequence[tuple[int, int]]], published: int) -> Figure:
    """How many strings each rule detects in each seed, and the published number."""
    values = [
        {"rule": rule, "strings": true + false, "false": false}
        for rule, seeds in found.items()
        for true, false in seeds
    ]
    place = {
        "field": "rule",
        "type": "nominal",
        "sort": list(found),
        "axis": {"title": None, "labelLimit": 200, "labelPadding": 8, "ticks": False, "grid": True},
    }
    totals = [true + false for seeds in found.values() for true, false in seeds]
    tallest = max(Counter((value["rule"], value["strings"]) for value in values).values())
    half = max(tallest / 2, 3.5)  # dots of equal numbers are stacked around the line
    domain = [min(*totals, published) - 3, max(*totals, published) + 3]
    count = {
        "field": "strings",
        "type": "quantitative",
        "scale": {"domain": domain, "nice": False},
        "axis": {"title": "Strings detected, false ones included", "tickMinStep": 5},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "circle", "size": 36, "opacity": 0.5, "color": _COLOUR["c1"]},
            "transform": [
                {"window": [{"op": "row_number", "as": "nth"}], "groupby": ["rule", "strings"]},
                {
                    "joinaggregate": [{"op": "count", "as": "of"}],
                    "groupby": ["rule", "strings"],
                },
                {"calculate": "datum.nth - (datum.of + 1) / 2", "as": "off"},
            ],
            "encoding": {
                "y": place,
                "x": count,
                "yOffset": {
                    "field": "off",
                    "type": "quantitative",
                    "scale": {"domain": [-half, half]},
                },
            },
        },
        {
            "transform": [
                {"aggregate": [{"op": "mean", "field": "strings", "as": "m"}], "groupby": ["rule"]}
            ],
            "mark": {"type": "tick", "thickness": 3, "size": 46, "color": _COLOUR["text"]},
            "encoding": {"y": place, "x": {"field": "m", "type": "quantitative"}},
        },
        {
            "data": {"values": [{"at": published}]},
            "mark": {"type": "rule", "strokeDash": [5, 3], "color": _COLOUR["threshold"]},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        },
        {
            "data": {"values": [{"at": published}]},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "bottom",
                "dx": 4,
                "dy": -4,
                "color": _COLOUR["threshold"],
                "text": f"published: {published}",
            },
            "encoding": {"x": {"field": "at", "type": "quantitative"}, "y": {"value": 0}},
        },
    ]
    seeds = len(next(iter(found.values())))
    words = [f"A dot is one of {seeds} seeds, the tall tick their mean."]
    parts: Spec = {
        "width": 520,
        "height": {"step": 64},
        "data": {"values": values},
        "layer": layers,
    }
    return Figure(
        "exponential-seeds",
        "How many strings each rule detects",
        "Rules that keep the family-wise error find about 33 strings; the published number lies "
        "where the false discovery rate and no correction at all put it.",
        whole_chart(parts, "Strings detected, by rule", wrapped(words), "light"),
    )


def possible(strict: FloatArray, loose: FloatArray, published: int) -> Figure:
    """How many true strings the best possible test finds, at the two levels."""
    names = ("level .05/200, one-sided (Bonferroni)", "level .05, two-sided (uncorrected)")
    values = [
        {"strings": number, "chance": float(chance), "level": name}
        for name, law in zip(names, (strict, loose), strict=True)
        for number, chance in enumerate(law)
        if 22 <= number <= 60
    ]
    ink = (_COLOUR["c1"], _COLOUR["c2"])
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "size": 7, "opacity": 0.85},
            "encoding": {
                "x": {
                    "field": "strings",
                    "type": "quantitative",
                    "scale": {"domain": [22, 60], "nice": False},
                    "axis": {"title": "Strings of the population that are detected", "grid": False},
                },
                "y": {
                    "field": "chance",
                    "type": "quantitative",
                    "stack": None,
                    "axis": percent_axis(title="Probability"),
                },
                "color": named("level", dict(zip(names, ink, strict=True)), legend()),
            },
        },
        {
            "data": {"values": [{"at": published}]},
            "mark": {"type": "rule", "strokeDash": [5, 3], "color": _COLOUR["text"]},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        },
        {
            "data": {"values": [{"at": published}]},
            "mark": {
                "type": "text",
                "align": "right",
                "baseline": "top",
                "dx": -5,
                "dy": 2,
                "text": f"published: {published} true",
            },
            "encoding": {"x": {"field": "at", "type": "quantitative"}, "y": {"value": 0}},
        },
    ]
    beyond = float(strict[published:].sum())
    words = [
        f"Exact. {published} or more: about once in {1 / beyond / 1e6:.0f} million collections at "
        f"the corrected level; in {100 * loose[published:].sum():.0f} % without a correction."
    ]
    parts: Spec = {"width": 620, "height": 220, "data": {"values": values}, "layer": layers}
    return Figure(
        "exponential-possible",
        "What the best possible test finds",
        "The number of true strings found by a test that knows everything but the one string it "
        "asks about, with the standard error of Table 1.",
        whole_chart(parts, "How many strings can be detected at all", wrapped(words), "light"),
    )
