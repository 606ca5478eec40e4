"""The drawing of Figure 2: the population, and the same points labelled by k, by h and by m."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rappor.charts.marks import percent_axis
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import legend, named

_SIDE = 400
_SHAPES = ("circle", "square", "triangle-up", "diamond")


class RecallPoint(NamedTuple):
    """One setting: means and standard deviations over seeds."""

    k: int
    h: int
    m: int
    recall: float
    recall_sd: float
    precision: float
    precision_sd: float


def draw(
    shares: Sequence[float],
    points: Sequence[RecallPoint],
    seeds: int,
    name: str,
    title: str,
    rule: str,
) -> Figure:
    """Four panels: shares of the population; recall against precision, labelled three ways."""
    rows = [_row(point, "h", seeds) for point in points]
    low = min(row["precision_low"] for row in rows)
    step = 0.005 if low > 0.975 else 0.02
    floor = 1 - step * math.ceil((1 - low) / step + 0.25)
    least = min(row["recall_low"] for row in rows)
    most = max(row["recall_high"] for row in rows)
    recall = (0.05 * math.floor(least / 0.05), 0.05 * math.ceil(most / 0.05))
    panels = [
        _points(points, field, about, (floor, step), recall, seeds)
        for field, about in (("k", "bits k"), ("h", "hash functions h"), ("m", "cohorts m"))
    ]
    # Else the panels of a row would share one legend.
    apart: Spec = {"scale": {"color": "independent", "shape": "independent"}}
    parts: Spec = {
        "concat": [_population(shares), *panels],
        "columns": 2,
        "spacing": {"row": 24, "column": 30},
        "resolve": apart,
    }
    return Figure(
        name,
        title,
        "The population; then recall and precision of every setting of k, h and m, averaged over "
        "seeds: the same points in all three panels, labelled by k, by h and by m. Points group by "
        "the number of hash functions: the fewer, the further right. Bars show one standard error "
        "of the mean each way. "
        f"{rule}.",
        whole_chart(parts, "Fewer hash functions find more strings", [rule], "light"),
    )


def _heading(text: str) -> Spec:
    """A panel's title, where its axes begin."""
    return {"text": text, "fontSize": 13, "frame": "group", "offset": 10}


def _population(shares: Sequence[float]) -> Spec:
    colour = colours()
    return {
        "width": _SIDE,
        "height": _SIDE - 100,
        "title": _heading("Population: 100 strings, 100 absent"),
        "data": {
            "values": [
                {"rank": rank, "share": share}
                for rank, share in enumerate([*shares, *[0.0] * 100], 1)
            ]
        },
        "mark": {"type": "area", "color": colour["bar"], "line": {"color": colour["bar-edge"]}},
        "encoding": {
            "x": {
                "field": "rank",
                "type": "quantitative",
                "scale": {"domain": [1, 200], "nice": False},
                "axis": {"title": "Candidate, by rank", "values": [1, 50, 100, 150, 200]},
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [0, 1.1 * max(shares)], "nice": False},
                "axis": percent_axis(title="Share of the population"),
            },
        },
    }


def _points(
    points: Sequence[RecallPoint],
    field: str,
    about: str,
    precision: tuple[float, float],
    recall: tuple[float, float],
    seeds: int,
) -> Spec:
    """Recall against precision: hollow marks, because many settings lie on top of each other."""
    colour = colours()
    floor, step = precision
    ticks = [1 - step * i for i in range(round((1 - floor) / step) + 1)]
    key = legend(about, orient="bottom", direction="horizontal")
    values = sorted({getattr(point, field) for point in points})
    inks = [colour[name] for name in ("c4", "c1", "c3", "c2")]
    colour_of = dict(zip(map(str, values), inks, strict=False))
    shape_of = dict(zip(map(str, values), _SHAPES, strict=False))
    across: Spec = {
        "field": "recall",
        "type": "quantitative",
        "scale": {"domain": list(recall), "nice": False, "zero": False},
        "axis": percent_axis(title="Recall"),
    }
    along: Spec = {
        "field": "precision",
        "type": "quantitative",
        "scale": {"domain": [floor, 1 + step / 4], "nice": False, "zero": False},
        "axis": percent_axis(title="Precision", values=ticks),
    }
    ink = named("label", colour_of, key)
    bar: Spec = {"type": "rule", "strokeWidth": 1, "opacity": 0.55, "clip": True}
    return {
        "width": _SIDE,
        "height": _SIDE - 100,
        "title": _heading(f"By {about}"),
        "data": {"values": [_row(point, field, seeds) for point in points]},
        "layer": [
            {
                "mark": bar,
                "encoding": {
                    "x": across | {"field": "recall_low"},
                    "x2": {"field": "recall_high"},
                    "y": along,
                    "color": ink,
                },
            },
            {
                "mark": bar,
                "encoding": {
                    "x": across,
                    "y": along | {"field": "precision_low"},
                    "y2": {"field": "precision_high"},
                    "color": ink,
                },
            },
            {
                "mark": {"type": "point", "filled": False, "size": 42, "strokeWidth": 1.6},
                "encoding": {
                    "x": across,
                    "y": along,
                    "color": ink,
                    "shape": named("label", shape_of, key),
                    "tooltip": [{"field": "about", "title": "Setting"}],
                },
            },
        ],
    }


def _row(point: RecallPoint, field: str, seeds: int) -> dict[str, Any]:
    """A point with the ends of its error bars, one standard error each way."""
    recall, precision = (sd / math.sqrt(seeds) for sd in (point.recall_sd, point.precision_sd))
    return {
        "recall": point.recall,
        "recall_low": point.recall - recall,
        "recall_high": point.recall + recall,
        "precision": point.precision,
        "precision_low": point.precision - precision,
        "precision_high": min(1.0, point.precision + precision),
        "label": str(getattr(point, field)),
        "about": f"k = {point.k}, h = {point.h}, m = {point.m}",
    }
