"""The drawing of Figure 2: the population, and the same points labelled by k, by h and by m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.marks import percent_axis
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.experiment import Figure
from rappor.experiments.shared_charts import legend, named

_SIDE = 300
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
    shares: Sequence[float], points: Sequence[RecallPoint], name: str, title: str, rule: str
) -> Figure:
    """Four panels: shares of the population; recall against precision, labelled three ways."""
    low = min(point.precision for point in points)
    step = 0.01 if low > 0.95 else 0.02
    floor = step * int((low - step) / step)
    most = 0.1 * int(max(point.recall for point in points) / 0.1 + 1.5)
    panels = [
        _points(points, field, about, (floor, step), most)
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
        "the number of hash functions: the fewer, the further right. "
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
        "height": _SIDE - 60,
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
    most: float,
) -> Spec:
    colour = colours()
    floor, step = precision
    ticks = [1 - step * i for i in range(round((1 - floor) / step) + 1)]
    key = legend(about, orient="bottom-left", direction="vertical", offset=10)
    values = sorted({getattr(point, field) for point in points})
    inks = [colour[name] for name in ("c4", "c1", "c3", "c2")]
    colour_of = dict(zip(map(str, values), inks, strict=False))
    shape_of = dict(zip(map(str, values), _SHAPES, strict=False))
    return {
        "width": _SIDE,
        "height": _SIDE - 60,
        "title": _heading(f"By {about}"),
        "data": {
            "values": [
                {
                    "recall": point.recall,
                    "precision": point.precision,
                    "label": str(getattr(point, field)),
                    "about": f"k = {point.k}, h = {point.h}, m = {point.m}",
                }
                for point in points
            ]
        },
        "mark": {  # an edge and some light: many settings lie on top of each other
            "type": "point",
            "filled": True,
            "size": 64,
            "fillOpacity": 0.7,
            "stroke": colour["bg"],
            "strokeWidth": 0.8,
        },
        "encoding": {
            "x": {
                "field": "recall",
                "type": "quantitative",
                "scale": {"domain": [0, most], "nice": False},
                "axis": percent_axis(title="Recall"),
            },
            "y": {
                "field": "precision",
                "type": "quantitative",
                "scale": {"domain": [floor, 1 + step / 4], "nice": False, "zero": False},
                "axis": percent_axis(title="Precision", values=ticks),
            },
            "color": named("label", colour_of, key),
            "shape": named("label", shape_of, key),
            "tooltip": [{"field": "about", "title": "Setting"}],
        },
    }
