"""Charts of the Diagnostics page: the heat map of cohorts and bits, and reports by cohort."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rappor.charts.marks import Panel, reports_up
from rappor.charts.theme import Spec, colours
from rappor.checks import plural

RESIDUALS = (-6.0, -4.0, -2.0, 2.0, 4.0, 6.0)  # the values of the colours d1 to d6
_SHADES = 5  # the colours s1 to s5
_MAX_WIDTH = 1024  # pixels of the plot, unless squares would be smaller than the smallest
_MIN_CELL, _MAX_CELL = 2, 20  # pixels
_HEIGHT = 120


def heat_panel(
    table: Sequence[Sequence[float]],
    *,
    residuals: bool,
    block: tuple[int, int] = (1, 1),
    theme: str = "light",
) -> Panel:
    """A square for each number of a table, with its legend; nan is left blank.

    Residuals between -2 and 2 standard deviations have one colour: noise stays quiet, so that
    what stands out does. Beyond 6 the colour does not change further.

    Args:
        table: numbers by row of cohorts and column of bits.
        residuals: whether the numbers are residuals; reports otherwise.
        block: cohorts and bits that one square stands for.
        theme: "light" or "dark".
    """
    rows, columns = len(table), len(table[0])
    size = min(max(_MAX_WIDTH // columns, _MIN_CELL), _MAX_CELL)
    values = [
        {"cohort": row, "bit": column, "value": number}
        for row, numbers in enumerate(table)
        for column, number in enumerate(numbers)
        if not math.isnan(number)
    ]
    mean = "" if block == (1, 1) else ", mean of each square"
    title = "Residuals in standard deviations" if residuals else "Reports with the bit set"
    parts: Spec = {
        "width": size * columns,
        "height": size * rows,
        "data": {"values": values},
        "mark": {"type": "rect"},
        "encoding": {
            "x": _side("bit", "Bit", columns, block[1], labels=16),
            "y": _side("cohort", "Cohort", rows, block[0], labels=max(2, size * rows // 24)),
            "color": {
                "field": "value",
                "type": "quantitative",
                "scale": _scale([cell["value"] for cell in values], residuals, theme),
                "legend": {
                    "title": None,
                    "gradientLength": 100,
                    "labelColor": colours(theme)["muted"],
                    "values": [-6, -2, 2, 6] if residuals else None,
                    "format": "+" if residuals else "~s",
                },
            },
        },
    }
    words = ("From −2 to 2 is noise.",) if residuals else ()
    return Panel(f"{title} by cohort and bit{mean}", words, parts, size * rows + 48, size * columns)


def _side(field: str, title: str, cells: int, block: int, labels: int) -> Spec:
    """An axis of squares, labelled with the first cohort or bit of a square."""
    step = max(1, math.ceil(cells / labels))
    axis = {
        "title": title,
        "values": list(range(0, cells, step)),
        "labelExpr": f"datum.value * {block}",
        "labelAngle": 0,
        "ticks": False,
        "domain": False,
    }
    return {
        "field": field,
        "type": "ordinal",
        "scale": {"domain": list(range(cells)), "padding": 0},
        "axis": axis,
    }


def _scale(numbers: Sequence[float], residuals: bool, theme: str) -> Spec:
    """The colours of numbers, interpolated between those of the theme."""
    colour = colours(theme)
    if residuals:
        domain = list(RESIDUALS)
        codes = [colour[f"d{number}"] for number in range(1, len(RESIDUALS) + 1)]
    else:
        low, high = min(numbers, default=0.0), max(numbers, default=0.0)
        steps = range(_SHADES)
        domain = [low + (max(high, low + 1) - low) * step / (_SHADES - 1) for step in steps]
        codes = [colour[f"s{number}"] for number in range(1, _SHADES + 1)]
    return {"domain": domain, "range": codes, "interpolate": "rgb", "clamp": True}


def balance_panel(totals: Sequence[int], *, theme: str = "light") -> Panel:
    """Reports by cohort, with a dashed rule at the mean.

    Clients draw their cohort at random, so all cohorts should have about the same size.

    Args:
        totals: reports in cohorts 0, 1, …; not all 0.
        theme: "light" or "dark".
    """
    colour = colours(theme)
    equal = sum(totals) / len(totals)
    values = [
        {"cohort": number, "reports": total, "text": f"{total:,}"}
        for number, total in enumerate(totals)
    ]
    step = max(1, -(-len(totals) // 16))
    bars: Spec = {
        "mark": {"type": "bar", "fill": colour["bar"], "stroke": colour["bar-edge"]},
        "encoding": {
            "x": {
                "field": "cohort",
                "type": "ordinal",
                "scale": {"paddingInner": 0.2, "paddingOuter": 0.1},
                "axis": {
                    "title": "Cohort",
                    "labelAngle": 0,
                    "values": list(range(0, len(totals), step)),
                },
            },
            "y": reports_up(),
            "tooltip": [
                {"field": "cohort", "type": "ordinal", "title": "Cohort"},
                {"field": "text", "type": "nominal", "title": "Reports"},
            ],
        },
    }
    if len(totals) > 32:
        bars["mark"] = {"type": "bar", "fill": colour["bar"]}
        narrow = {"paddingInner": 0.1 if len(totals) <= 256 else 0, "paddingOuter": 0}
        bars["encoding"]["x"]["scale"] = narrow
    rule = {
        "data": {"values": [{"equal": equal}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": colour["threshold"]},
        "encoding": {"y": {"field": "equal", "type": "quantitative"}},
    }
    parts = {"height": _HEIGHT, "data": {"values": values}, "layer": [bars, rule]}
    words = (f"Dashed line: {equal:,.0f}, the same number in each cohort.",)
    low, high = min(totals), max(totals)
    sizes = f"{low:,} to {high:,} reports" if low < high else f"{low:,} reports"
    title = f"{sizes} in each of {plural(len(totals), 'cohort', 'cohorts')}"
    return Panel(title, words, parts, _HEIGHT + 48)
