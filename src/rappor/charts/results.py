"""Decoded strings or categories as bars with their intervals, and the mass that none explains."""

from __future__ import annotations

import math
from typing import Any

from rappor.charts.marks import percent_axis, whiskers, wrapped
from rappor.charts.numbers import show_count, show_p, show_percent, show_share
from rappor.charts.theme import MONO, Spec, colours, message, whole_chart

MOST_ROWS = 30
_NOT_DETECTED = 10  # shown after the detected ones, so that the threshold can be seen at work
_WIDTH, _STEP = 420, 22

FALSE_FINDS = {
    "fdr": "On average at most {alpha} of what is detected are false finds.",
    "holm": "The chance of any false find is at most {alpha}.",
    "bonferroni": "The chance of any false find is at most {alpha}.",
    "none": "Not corrected for the number of candidates: {alpha} of absent ones look detected.",
}
_MASS = {
    "category": ("in a listed category", "in none of the listed categories"),
    "string": ("detected", "unlisted mass: not on the list, or too rare to see"),
}


def results(decoded: Any, *, theme: str = "light") -> Spec:
    """The largest rows as bars, 95 % intervals as whiskers, the detection threshold as a rule.

    Filled bars are detected, hollow ones are not. A strip below shows the mass that no detected
    string (or no listed category) explains. At most 30 rows; the subtitle says how many there are.

    Args:
        decoded: a Decoded, or anything with its attributes.
        theme: "light" or "dark".

    Returns:
        A Vega-Lite specification.
    """
    candidates = len(decoded.rows)
    if not decoded.reports or not candidates:
        why = (
            "Nothing arrived, so nothing can be said." if candidates else "There are no candidates."
        )
        return message("No reports yet" if candidates else "Nothing to look for", why, theme)
    shown = _chosen(decoded)
    title, words = _words(decoded, shown)
    panels = [_bars(decoded, shown, theme)]
    if decoded.kind in _MASS and math.isfinite(decoded.unlisted.proportion):
        panels.append(_strip(decoded, theme))
    return whole_chart({"vconcat": panels, "spacing": 28}, title, wrapped(words), theme)


def _words(decoded: Any, shown: list[Any]) -> tuple[str, list[str]]:
    """The title and the sentences below it."""
    candidates, found = len(decoded.rows), len(decoded.detected)
    words = []
    if decoded.kind == "boolean":
        title = f"{_values(decoded.rows[0])['text']} {decoded.rows[0].string}"
    else:
        noun = "candidates" if decoded.kind == "string" else "values"
        title = f"{found:,} of {candidates:,} {noun} detected"
        if not found:
            title = f"None of {candidates:,} {noun} detected"
            words.append("All are absent, or too rare to see in this many reports.")
        else:
            alpha = show_percent(decoded.alpha)
            words.append(FALSE_FINDS[decoded.correction].format(alpha=alpha))
            if any(not row.detected for row in shown):
                words.append("Hollow bars are not detected: absent, or too rare to see.")
    if len(shown) < candidates:
        words.append(f"Showing {len(shown)} of {candidates:,}, largest first.")
    words += [f"Check: {warning}" for warning in decoded.warnings[:2]]
    return f"{title} in {decoded.reports:,} reports", words


def _chosen(decoded: Any) -> list[Any]:
    """Detected rows and the next few that are not; every one of a short list."""
    rows = decoded.rows
    pool = list(rows) if len(rows) <= 4096 else [*decoded.detected, *rows[: 2 * MOST_ROWS]]
    ordered = sorted({row.string: row for row in pool}.values(), key=_by_size)
    detected = [row for row in ordered if row.detected][:MOST_ROWS]
    room = MOST_ROWS - len(detected)
    if decoded.kind == "string":
        room = min(room, _NOT_DETECTED)
    others = [row for row in ordered if not row.detected][:room]
    return sorted([*detected, *others], key=_by_size)


def _by_size(row: Any) -> tuple[float, str]:
    return -row.estimate, row.string


def _values(row: Any) -> Spec:
    low, high = row.interval
    share = show_share(row.proportion, row.prop_low_95, row.prop_high_95)
    return {
        "string": row.string or "(empty)",
        "share": row.proportion,
        "low": row.prop_low_95,
        "high": row.prop_high_95,
        "detected": row.detected,
        "text": str(share),
        "count": str(show_count(row.estimate, low, high)),
        "p": show_p(row.adjusted_p_value),
        "verdict": "detected" if row.detected else "not detected",
    }


TOOLTIP = [
    {"field": "string", "type": "nominal", "title": "Value"},
    {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
    {"field": "count", "type": "nominal", "title": "Reports (95 % interval)"},
    {"field": "p", "type": "nominal", "title": "Adjusted p-value"},
    {"field": "verdict", "type": "nominal", "title": "Verdict"},
]


def _bars(decoded: Any, shown: list[Any], theme: str) -> Spec:
    colour = colours(theme)
    values = [_values(row) for row in shown]
    threshold = decoded.threshold / decoded.reports
    ends = [each[end] for each in values for end in ("share", "low", "high")]
    drawn = (
        decoded.kind != "boolean" and math.isfinite(threshold) and 0 < threshold <= max(1.0, *ends)
    )
    domain = [min(0.0, *ends), max(*ends, threshold if drawn else 0.0, 1e-9)]
    place = {
        "field": "string",
        "type": "nominal",
        "sort": None,
        "scale": {"paddingInner": 0.36, "paddingOuter": 0.3},
        "axis": {
            "title": None,
            "labelFont": MONO,
            "labelColor": colour["text"],
            "labelLimit": 240,
            "ticks": False,
            "domain": False,
            "labelPadding": 8,
        },
    }
    share = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": domain, "nice": True},
        "axis": percent_axis(orient="top", title="Share of reports, with 95 % interval"),
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "strokeWidth": 1, "cornerRadiusEnd": 2},
            "encoding": {
                "y": place,
                "x": share,
                "x2": {"datum": 0},
                "fill": _either(colour["bar"], colour["bg"]),
                "stroke": _either(colour["bar-edge"], colour["edge"]),
                "tooltip": TOOLTIP,
            },
        },
        *whiskers("x", "string", colour["text"]),
        {
            "mark": {"type": "text", "align": "left", "dx": 12},
            "encoding": {
                "y": {"field": "string", "type": "nominal", "sort": None},
                "x": {"value": "width"},
                "text": {"field": "text"},
            },
        },
    ]
    if drawn:
        late = threshold > 0.6 * domain[1]
        layers += _threshold(threshold, colour["threshold"], "right" if late else "left")
    return {
        "width": _WIDTH,
        "height": {"step": _STEP},
        "data": {"values": values},
        "layer": layers,
    }


def _either(if_detected: str, otherwise: str) -> Spec:
    return {"condition": {"test": "datum.detected", "value": if_detected}, "value": otherwise}


def _threshold(threshold: float, colour: str, align: str) -> list[Spec]:
    once: Spec = {"values": [{"threshold": threshold}]}
    at = {"field": "threshold", "type": "quantitative"}
    words = f"detection threshold ≈ {show_percent(threshold)}"
    return [
        {
            "data": once,
            "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": colour},
            "encoding": {"x": at},
        },
        {
            "data": once,
            "mark": {
                "type": "text",
                "align": align,
                "baseline": "top",
                "dx": -4 if align == "left" else 4,
                "dy": 6,
                "color": colour,
                "text": words,
            },
            "encoding": {"x": at, "y": {"value": "height"}},
        },
    ]


def _strip(decoded: Any, theme: str) -> Spec:
    """One bar of all reports: what is explained, and what is not, with its interval."""
    colour = colours(theme)
    inside, outside = _MASS[decoded.kind]
    mass = decoded.unlisted
    low, high = 1 - mass.prop_high_95, 1 - mass.prop_low_95
    edge = min(max(1 - mass.proportion, 0.0), 1.0)
    explained = show_share(1 - mass.proportion, low, high)
    rest = show_share(mass.proportion, mass.prop_low_95, mass.prop_high_95)
    parts = [
        {
            "from": 0.0,
            "to": edge,
            "low": low,
            "high": high,
            "what": inside,
            "text": str(explained),
            "unlisted": False,
            "row": "",
        },
        {
            "from": edge,
            "to": 1.0,
            "low": low,
            "high": high,
            "what": outside,
            "text": str(rest),
            "unlisted": True,
            "row": "",
        },
    ]
    title = [f"■ {explained} {inside}", f"□ {rest} {outside}"]
    tooltip = [
        {"field": "what", "type": "nominal", "title": "Reports"},
        {"field": "text", "type": "nominal", "title": "Share (95 % interval)"},
    ]
    bar = {
        "mark": {"type": "bar", "strokeWidth": 1},
        "encoding": {
            "y": {"field": "row", "type": "nominal", "axis": None},
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "axis": percent_axis(title=None, values=[0, 0.25, 0.5, 0.75, 1], labelFlush=True),
            },
            "x2": {"field": "to"},
            "fill": _unlisted(colour["unlisted"], colour["bar"]),
            "stroke": _unlisted(colour["edge"], colour["bar-edge"]),
            "strokeDash": {"condition": {"test": "datum.unlisted", "value": [4, 3]}, "value": []},
            "tooltip": tooltip,
        },
    }
    return {
        "title": {"text": title, "fontSize": 13, "fontWeight": 400, "offset": 6, "frame": "group"},
        "width": _WIDTH,
        "height": 24,
        "data": {"values": parts},
        "layer": [bar, *whiskers("x", "row", colour["text"])],
    }


def _unlisted(if_so: str, otherwise: str) -> Spec:
    return {"condition": {"test": "datum.unlisted", "value": if_so}, "value": otherwise}
