"""The drawings of Figure 4: true and estimated shares of a hundred numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.marks import percent_axis
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.decoding.intervals import Z_95
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import legend, named

TRUTH, ESTIMATE, SMOOTH = "true share", "estimate, with its 95 % interval", "smoothed: a prior"


class NormalPanel(NamedTuple):
    """One collection: shares of the numbers 1, 2, ... with their standard errors."""

    reports: int
    truth: list[float]
    estimate: list[float]
    error: list[float]
    prior: list[float]


def draw(panels: Sequence[NormalPanel]) -> Figure:
    """Truth and estimates with intervals, a panel for each number of reports."""
    sizes = ", ".join(f"{panel.reports:,}" for panel in panels)
    return Figure(
        "normal-shape",
        "The shape that comes back",
        f"True shares (line) and estimates with their 95 % intervals (points) from {sizes} "
        "reports, one collection each. Each panel has its own vertical scale.",
        _stacked(
            panels,
            [ESTIMATE, TRUTH],
            "A bell curve out of noise",
            "Normal(50, 10), Basic One-time RAPPOR, q = 0.75, p = 0.5 (ε = ln 3)",
        ),
    )


def draw_smooth(panels: Sequence[NormalPanel]) -> Figure:
    """Truth and the smoothed estimate: what a prior adds."""
    return Figure(
        "normal-smoothed",
        "With a smoothness prior",
        "True shares and the same estimates smoothed (penalised second differences, strength by "
        "cross-validation). The smoothed curve assumes that neighbouring numbers are about equally "
        "frequent, and therefore carries no interval.",
        _stacked(
            panels,
            [SMOOTH, TRUTH],
            "The same, if the curve may be assumed to be smooth",
            "The smoothed line depends on that assumption: it has no ordinary interval",
        ),
    )


def _stacked(panels: Sequence[NormalPanel], kinds: list[str], title: str, words: str) -> Spec:
    parts: Spec = {
        "vconcat": [
            _panel(panel, kinds, last=number == len(panels) - 1)
            for number, panel in enumerate(panels)
        ],
        "spacing": 14,
        "resolve": {"scale": {"color": "independent"}},
    }
    return whole_chart(parts, title, [words], "light")


def _panel(panel: NormalPanel, kinds: list[str], last: bool) -> Spec:
    colour = colours()
    look = {TRUTH: colour["text"], ESTIMATE: colour["c1"], SMOOTH: colour["c2"]}
    key = named("kind", {kind: look[kind] for kind in kinds}, legend() if last else None)
    x: Spec = {
        "field": "number",
        "type": "quantitative",
        "scale": {"domain": [0, 101], "nice": False},
        "axis": {
            "title": "Number" if last else None,
            "labels": last,
            "values": list(range(0, 101, 10)),
            "grid": False,
        },
    }
    axis = percent_axis(title="Share of reports", minExtent=52, tickCount=5)
    y: Spec = {"field": "share", "type": "quantitative", "axis": axis}
    values = {
        TRUTH: [{"share": share} for share in panel.truth],
        SMOOTH: [{"share": share} for share in panel.prior],
        ESTIMATE: [
            {"share": share, "low": share - Z_95 * error, "high": share + Z_95 * error}
            for share, error in zip(panel.estimate, panel.error, strict=True)
        ],
    }
    data = [
        {"number": number, "kind": kind, **value}
        for kind in kinds
        for number, value in enumerate(values[kind], 1)
    ]
    line = {"type": "line", "strokeWidth": 2}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": colour["edge"], "strokeWidth": 1},
            "encoding": {"y": {"datum": 0}},
        }
    ]
    if ESTIMATE in kinds:
        low_high: Spec = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        only = [{"filter": {"field": "kind", "equal": ESTIMATE}}]
        layers += [
            {
                "transform": only,
                "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.45},
                "encoding": {"x": x, **low_high, "color": key},
            },
            {
                "transform": only,
                "mark": {"type": "point", "filled": True, "size": 20, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": key},
            },
        ]
    lines = [kind for kind in kinds if kind != ESTIMATE]
    layers.append(
        {
            "transform": [{"filter": {"field": "kind", "oneOf": lines}}],
            "mark": line,
            "encoding": {"x": x, "y": y, "color": key},
        }
    )
    return {
        "width": 700,
        "height": 150,
        "title": {"text": f"{panel.reports:,} reports", "fontSize": 13, "offset": 4},
        "data": {"values": data},
        "layer": layers,
    }
