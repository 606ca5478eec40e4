"""The drawings of Figure 3: seven lines of the bound, its rule of thumb, its power."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rappor.charts.marks import percent_axis
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.experiment import Figure
from rappor.experiments.seeds import spread
from rappor.experiments.shared_charts import in_words, legend, powers_of_ten


def draw_lines(
    lines: Sequence[tuple[float, int, float]], marked: Sequence[tuple[float, float, int]]
) -> Figure:
    """Reports against strings, a line for each number of candidates; some points labelled."""
    colour = colours()
    x = powers_of_ten("reports", "Reports N", 3, 10)
    y = powers_of_ten("strings", "Strings that can be learnt, at most", 0, 5)
    low, high = min(line[0] for line in lines), max(line[0] for line in lines)
    exponents = sorted({round(math.log10(line[1])) for line in lines})
    labels = ", ".join(f"'{in_words(10**exponent)}'" for exponent in exponents)
    key = legend(
        "Candidates M",
        type="symbol",
        values=exponents,
        symbolType="stroke",
        symbolStrokeWidth=3,
        labelExpr=f"[{labels}][datum.value - {exponents[0]}]",
    )
    shade = {
        "field": "exponent",
        "type": "quantitative",
        "scale": {"range": [colour["c3"], colour["c1"], colour["c4"]], "interpolate": "lab"},
        "legend": key,
    }
    points = [
        {
            "reports": n,
            "strings": value,
            "text": f"{value:,.0f} at N = {in_words(n)}, M = {in_words(m)}",
        }
        for n, value, m in marked
    ]
    text: Spec = {"type": "text", "fontSize": 12, "color": colour["text"]}
    parts: Spec = {
        "width": 640,
        "height": 400,
        "layer": [
            {
                "data": {
                    "values": [
                        {"reports": n, "exponent": round(math.log10(m)), "strings": value}
                        for n, m, value in lines
                        if value >= 1
                    ]
                },
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "color": shade},
            },
            {
                "data": {
                    "values": [{"reports": n, "strings": math.sqrt(n) / 10} for n in (low, high)]
                },
                "mark": {
                    "type": "line",
                    "strokeDash": [6, 4],
                    "strokeWidth": 1.5,
                    "color": colour["c2"],
                },
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": [{"reports": 2e4, "strings": 5, "text": "√N / 10 (dashed)"}]},
                "mark": {**text, "align": "left", "color": colour["c2"], "fontWeight": 600},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            },
            {
                "data": {"values": points},
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 70,
                    "opacity": 1,
                    "color": colour["text"],
                },
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": points},
                "mark": {**text, "align": "right", "dx": -2, "dy": -36},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            },
        ],
    }
    return Figure(
        "learnable-lines",
        "Reports and strings",
        "The most strings that can be learnt from N reports, for seven sizes M of the candidate "
        "list, with the paper’s rule of thumb √N/10 and the two sizes that the paper quotes.",
        whole_chart(
            parts,
            "A hundred times the reports for ten times the strings",
            ["Basic One-time RAPPOR, p = 0.5, q = 0.75, f = 0 (ε = ln 3); 50 % power, 5 % level"],
            "light",
        ),
    )


def draw_rule(factors: Sequence[tuple[int, float]]) -> Figure:
    """Strings over √N for each number of candidates, with the rule's 1/10."""
    colour = colours()
    values = [
        {"m": in_words(m), "factor": factor, "text": f"{factor:.3f}"} for m, factor in factors
    ]
    x: Spec = {
        "field": "m",
        "type": "nominal",
        "sort": None,
        "axis": {"title": "Candidates M", "labelAngle": 0, "ticks": False, "labelFontSize": 12},
        "scale": {"paddingInner": 0.35, "paddingOuter": 0.2},
    }
    y: Spec = {
        "field": "factor",
        "type": "quantitative",
        "axis": {"title": "Learnable strings, divided by √N", "tickCount": 5, "format": ".2f"},
    }
    words: Spec = {"type": "text", "fontSize": 12, "color": colour["text"]}
    parts: Spec = {
        "width": 620,
        "height": 220,
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "bar", "color": colour["bar"]},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {**words, "dy": -12},
                "encoding": {"x": x, "y": {"datum": 0}, "text": {"field": "text"}},
            },
            {
                "data": {"values": [{"at": 0.1}]},
                "mark": {
                    "type": "rule",
                    "strokeDash": [6, 4],
                    "strokeWidth": 1.5,
                    "color": colour["c2"],
                },
                "encoding": {"y": {"field": "at", "type": "quantitative"}},
            },
            {
                "data": {"values": [{"at": 0.1, "text": "√N / 10"}]},
                "mark": {**words, "align": "left", "color": colour["c2"], "fontWeight": 600},
                "encoding": {
                    "x": {"value": 628},
                    "y": {"field": "at", "type": "quantitative"},
                    "text": {"field": "text"},
                },
            },
        ],
    }
    return Figure(
        "learnable-rule",
        "The rule of thumb",
        "The bound divided by √N is (2q-1)/Q, which depends on the number of candidates only. "
        "The dashed line is the rule of thumb, 1/10.",
        whole_chart(parts, "How good is √N/10?", ["(2q-1)/Q for seven candidate lists"], "light"),
    )


def draw_power(
    curve: Sequence[tuple[float, float]],
    points: Sequence[tuple[int, Sequence[float]]],
    reports: int,
    candidates: int,
) -> Figure:
    """The chance to find each of x equal strings: the formula, and simulated collections."""
    colour = colours()
    most = max(strings for strings, _ in points) * 1.7
    x: Spec = {
        "field": "strings",
        "type": "quantitative",
        "scale": {"domain": [0, most], "nice": False},
        "axis": {"title": "Equally frequent strings in the population", "tickCount": 8},
    }
    y: Spec = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": percent_axis(title="Share of them that is found"),
    }
    values = [
        {
            "strings": strings,
            "share": spread(shares).mean,
            "low": spread(shares).mean - spread(shares).sd,
            "high": spread(shares).mean + spread(shares).sd,
            "text": f"{strings} strings: {100 * spread(shares).mean:.1f} %",
        }
        for strings, shares in points
    ]
    parts: Spec = {
        "width": 560,
        "height": 260,
        "layer": [
            {
                "data": {
                    "values": [
                        {"strings": strings, "share": share}
                        for strings, share in curve
                        if strings <= most
                    ]
                },
                "mark": {"type": "line", "strokeWidth": 2, "color": colour["c1"]},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": values},
                "mark": {"type": "rule", "strokeWidth": 2, "color": colour["c2"]},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": values},
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 60,
                    "opacity": 1,
                    "color": colour["c2"],
                },
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": values},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "dx": 12,
                    "dy": -4,
                    "color": colour["text"],
                },
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            },
        ],
    }
    return Figure(
        "learnable-power",
        "What “can be learnt” means",
        f"The chance to find each of x equally frequent strings among {candidates:,} candidates in "
        f"{reports:,} reports: by formula (line) and in simulated collections (points, ± one "
        "standard deviation between seeds), at the numbers of strings with 50, 80 and 95 % power.",
        whole_chart(
            parts,
            "At the limit, half of the strings are found",
            [f"N = {reports:,}, M = {candidates:,}; line: formula; points: simulation, ± sd"],
            "light",
        ),
    )
