"""Table 2 as a chart, and how likely a share is to be detected (§5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rappor.charts.marks import percent_axis, wrapped
from rappor.charts.theme import MONO, Spec, colours, whole_chart
from rappor.experiments.best_test import count_for, power
from rappor.experiments.experiment import Figure
from rappor.experiments.published_tables import TABLE_2
from rappor.experiments.seeds import spread
from rappor.experiments.shared_charts import WHY_BELOW, detection_chart, legend, named
from rappor.experiments.windows.runs import PARAMS, REPORTS, SHARES, WindowsRun
from rappor.privacy.limits import standard_error

_COLOUR = colours()
_SHOWN = 40  # names, most frequent first, whose detections are dots
_PUBLISHED, _OURS = "published, ± 1.96 standard errors", "stand-in: mean of seeds, ± 1.96 sd"


def estimates(runs: Sequence[WindowsRun]) -> Figure:
    """Each name's published estimate with its interval, and the spread of ours."""
    values: list[Spec] = []
    for at, row in enumerate(TABLE_2):
        ours = spread([float(run.estimate[at]) for run in runs])
        for whose, middle, sd in (
            (_PUBLISHED, row.estimate, row.stdev),
            (_OURS, ours.mean, ours.sd),
        ):
            values.append(
                {
                    "process": row.process,
                    "whose": whose,
                    "share": middle / REPORTS,
                    "low": (middle - 1.96 * sd) / REPORTS,
                    "high": (middle + 1.96 * sd) / REPORTS,
                }
            )
    place = {
        "field": "process",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelFont": MONO, "labelColor": _COLOUR["text"], "ticks": False},
    }
    whose_colour = named(
        "whose", {_PUBLISHED: _COLOUR["c2"], _OURS: _COLOUR["c1"]}, legend(symbolType="circle")
    )
    offset = {"field": "whose", "type": "nominal", "sort": [_PUBLISHED, _OURS]}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "y": place,
                "yOffset": offset,
                "x": {
                    "field": "low",
                    "type": "quantitative",
                    "scale": {"domain": [0, 0.06]},
                    "axis": percent_axis(title="Share of reports"),
                },
                "x2": {"field": "high"},
                "color": whose_colour,
            },
        },
        {
            "mark": {"type": "circle", "size": 70, "opacity": 1},
            "encoding": {
                "y": place,
                "yOffset": offset,
                "x": {"field": "share", "type": "quantitative"},
                "color": whose_colour,
            },
        },
    ]
    words = [
        f"Synthetic stand-in, {len(runs)} seeds; its true shares are the published estimates.",
    ]
    parts: Spec = {
        "width": 500,
        "height": {"step": 30, "for": "position"},
        "data": {"values": values},
        "layer": layers,
    }
    return Figure(
        "windows-estimates",
        "Table 2: published and simulated",
        "The published estimates with their standard errors, and how far estimates scatter over "
        "simulated collections with those shares: equally far.",
        whole_chart(parts, "Ten Windows processes", wrapped(words), "light"),
    )


def detection(runs: Sequence[WindowsRun], level: float, expected: float) -> Figure:
    """How often a name is detected, against its true share: the best test and the stand-in."""
    error = standard_error(PARAMS, REPORTS)
    half, most = (100 * count_for(power, error, level) / REPORTS for power in (0.5, 0.8))
    chance = 100 * float(power([REPORTS * expected], error, level)[0])
    hits = np.mean([run.detected[:_SHOWN] for run in runs], axis=0)
    spec = detection_chart(
        "Chance that a process is detected",
        "Line: the best possible test at a false discovery rate of 5 %. Dots: the "
        f"{_SHOWN} most frequent names of the synthetic stand-in, over {len(runs)} seeds.",
        reports=REPORTS,
        error=error,
        level=level,
        dots=list(zip(SHARES[:_SHOWN].tolist(), hits.tolist(), strict=True)),
        claimed=expected,
        claim=(
            f"expected to be found: {100 * expected:g} %,",
            f"{expected * REPORTS / error:.1f} standard errors",
        ),
        most=0.05,
        side="left",
    )
    return Figure(
        "windows-detection",
        "How frequent a process must be",
        f"A name of {100 * expected:g} % is found in {chance:.0f} % of collections; the curve "
        f"reaches one half at {half:.1f} % and four fifths at {most:.1f} %. {WHY_BELOW} A share of "
        f"{len(runs)} seeds is itself uncertain by up to {50 / len(runs) ** 0.5:.0f} points (one "
        "standard error).",
        spec,
    )
