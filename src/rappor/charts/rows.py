"""Which rows of a result a chart shows, and what it knows about each."""

from __future__ import annotations

import math
from typing import Any

from rappor.charts.marks import percent_axis
from rappor.charts.numbers import show_count, show_p, show_share
from rappor.charts.theme import MONO, Spec

MOST_ROWS = 30  # of a chart in a file
PAGE_ROWS = 40  # of a chart in a page, which scrolls
NOT_DETECTED = 10  # shown after the detected ones, so that the threshold can be seen at work
COUNT_LABELS = "format(datum.value, ',')"
FIELDS = {"share": "share", "count": "reports"}  # what is drawn, by unit
AXIS_TITLES = {
    "share": "Share of reports, with 95 % interval",
    "count": "Reports, with 95 % interval",
}
TOOLTIP = [
    {"field": "string", "type": "nominal", "title": "Value"},
    {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
    {"field": "count", "type": "nominal", "title": "Reports (95 % interval)"},
    {"field": "p", "type": "nominal", "title": "Adjusted p-value"},
    {"field": "verdict", "type": "nominal", "title": "Verdict"},
]


def chosen(decoded: Any, most: int = MOST_ROWS) -> list[Any]:
    """Detected rows and the next few that are not; every one of a short list."""
    rows = decoded.rows
    pool = list(rows) if len(rows) <= 4096 else [*decoded.detected, *rows[: 2 * most]]
    ordered = sorted({row.string: row for row in pool}.values(), key=by_size)
    detected = [row for row in ordered if row.detected][:most]
    room = most - len(detected)
    if decoded.kind == "string":
        room = min(room, NOT_DETECTED)
    others = [row for row in ordered if not row.detected][:room]
    return sorted([*detected, *others], key=by_size)


def by_size(row: Any) -> tuple[float, str]:
    """Largest first, equal ones by string."""
    return -row.estimate, row.string


def row_values(row: Any, unit: str = "share") -> Spec:
    """What a chart knows about a row; `low` and `high` are in the unit."""
    low, high = row.interval
    share = show_share(row.proportion, row.prop_low_95, row.prop_high_95)
    count = show_count(row.estimate, low, high)
    drawn = (
        {"share": row.proportion, "low": row.prop_low_95, "high": row.prop_high_95}
        if unit == "share"
        else {"reports": row.estimate, "low": low, "high": high}
    )
    return {
        "string": row.string or "(empty)",
        **drawn,
        "detected": row.detected,
        "text": str(share),
        "count": str(count),
        "shown": str(share if unit == "share" else count),
        "p": show_p(row.adjusted_p_value),
        "verdict": "detected" if row.detected else "not detected",
    }


def unit_axis(unit: str, **more: object) -> Spec:
    """The axis of shares or counts."""
    if unit == "share":
        return percent_axis(title=AXIS_TITLES[unit], **more)
    return {"labelExpr": COUNT_LABELS, "tickCount": 6, "title": AXIS_TITLES[unit], **more}


def row_place(step_inner: float, colour: str, limit: int | Spec) -> Spec:
    """Rows one below the other, labelled left with their string."""
    return {
        "field": "string",
        "type": "nominal",
        "sort": None,
        "scale": {"paddingInner": step_inner, "paddingOuter": 0.3},
        "axis": row_axis(colour, limit),
    }


def row_axis(colour: str, limit: int | Spec) -> Spec:
    """The strings left of their rows."""
    return {
        "title": None,
        "labelFont": MONO,
        "labelColor": colour,
        "labelLimit": limit,
        "ticks": False,
        "domain": False,
        "labelPadding": 8,
    }


def detection(decoded: Any, unit: str, ends: list[float]) -> float | None:
    """Where the detection threshold is drawn, in the unit; None where there is none to see."""
    threshold = decoded.threshold / decoded.reports
    all_shares = ends if unit == "share" else [end / decoded.reports for end in ends]
    if decoded.kind == "boolean" or not math.isfinite(threshold):
        return None
    if not 0 < threshold <= max(1.0, *all_shares):
        return None
    return float(threshold if unit == "share" else decoded.threshold)
