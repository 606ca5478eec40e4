"""A histogram of numbers, and its cumulative distribution, with intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rappor.charts.marks import FILE_WIDTH, ON_PHONE, Panel, percent_axis, whiskers
from rappor.charts.numbers import show_finding, show_share
from rappor.charts.theme import Spec, colours, message

_RULES = (0.5, 0.9)
_SHORT_LABELS = f"{ON_PHONE} ? split(datum.label, ' to ')[0] : datum.label"
_MANY = 40  # with more ranges, the ends of whiskers have no room


def histogram(hist: Any, *, theme: str = "light") -> Spec:
    """Each range's raw share as a bar, with its 95 % interval; hollow if it was not detected.

    Args:
        hist: a Histogram, or anything with its attributes.
        theme: "light" or "dark".
    """
    if not hist.reports:
        return message("No reports yet", "Nothing arrived, so nothing can be said.", theme)
    panel = histogram_panel(hist, theme=theme)
    checks = tuple(f"Check: {warning}" for warning in hist.warnings[:2])
    return replace(panel, words=(*panel.words, *checks)).in_file(theme)


def histogram_panel(
    hist: Any, *, theme: str = "light", unit: str = "share", page: bool = False
) -> Panel:
    """The histogram by itself, of shares or counts; there must be reports.

    Args:
        hist: a Histogram, or anything with its attributes.
        theme: "light" or "dark".
        unit: "share" or "count".
        page: True for a page, which may be narrow; False for a file.
    """
    colour = colours(theme)
    factor = 1 if unit == "share" else hist.reports
    values = [
        _range_values(row, factor * raw, unit, hist.reports)
        for row, raw in zip(hist.rows, hist.share.tolist(), strict=True)
    ]
    hollow = "!datum.detected"
    bars = {
        "mark": {"type": "bar", "strokeWidth": 1},
        "encoding": {
            "x": _ranges(hist, 0.08, page),
            "y": _upwards(values, unit),
            "fill": {"condition": {"test": hollow, "value": colour["bg"]}, "value": colour["bar"]},
            "stroke": {
                "condition": {"test": hollow, "value": colour["edge"]},
                "value": colour["bar-edge"],
            },
            "tooltip": _tooltip("Share"),
        },
    }
    words = median_in_words(hist)
    if not all(row["detected"] for row in values):
        words.append("Hollow bars may be empty: their whiskers end at an upper limit.")
    words.append("Bars are raw estimates, which keep the shape; the table allows for noise.")
    layers = [bars, *whiskers("y", "range", colour["text"], len(values) <= _MANY)]
    title = f"Shares of {hist.reports:,} reports by range"
    return Panel(title, tuple(words), _layers(values, 220, layers), 220 + _labels_room(hist))


def cumulative(hist: Any, *, theme: str = "light") -> Spec:
    """The share of reports up to each range, with pointwise 95 % intervals, and 50 and 90 % rules.

    Args:
        hist: a Histogram, or anything with its attributes.
        theme: "light" or "dark".
    """
    if not hist.reports:
        return message("No reports yet", "Nothing arrived, so nothing can be said.", theme)
    return cumulative_panel(hist, theme=theme).in_file(theme)


def cumulative_panel(
    hist: Any, *, theme: str = "light", height: int = 200, page: bool = False
) -> Panel:
    """The cumulative shares by themselves; there must be reports. `page` as for the histogram."""
    colour = colours(theme)
    values = [_values(share_of_range) for share_of_range in hist.cumulative()]
    ranges, share = _ranges(hist, 0.5, page), _share("share", "Share up to this range")
    share["axis"]["values"] = [0, 0.25, 0.5, 0.75, 0.9, 1]
    ends = [row[end] for row in values for end in ("share", "low", "high")]
    share["scale"] = {"domain": [min(0.0, *ends), max(1.0, *ends)], "nice": False}
    point = {"type": "line", "color": colour["bar-edge"], "strokeWidth": 1.75}
    # The line comes first: its axis is drawn.
    layers: list[Spec] = [{"mark": point, "encoding": {"x": ranges, "y": share}}]
    layers += [
        {
            "data": {"values": [{"at": at}]},
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": colour["threshold"]},
            "encoding": {"y": {"field": "at", "type": "quantitative"}},
        }
        for at in _RULES
    ]
    layers += whiskers("y", "range", colour["muted"], len(values) <= _MANY)
    layers.append(
        {
            "mark": {
                "type": "point",
                "filled": True,
                "opacity": 1,
                "size": 28,
                "color": colour["bar-edge"],
            },
            "encoding": {
                "x": {"field": "range", "type": "nominal", "sort": None},
                "y": {"field": "share", "type": "quantitative"},
                "tooltip": _tooltip("Share up to here"),
            },
        }
    )
    words = [*median_in_words(hist), "Dashed lines: 50 % and 90 % of the reports."]
    title = f"How {hist.reports:,} reports add up, lowest range first"
    parts = _layers(values, height, layers)
    return Panel(title, tuple(words), parts, height + _labels_room(hist))


def _range_values(row: Any, raw: float, unit: str, reports: int) -> Spec:
    """A range as data: its bar has the raw height, its words and its interval are the row's."""
    in_shares = (row.proportion, row.prop_low_95, row.prop_high_95)
    value, low, high = in_shares if unit == "share" else (row.estimate, *row.interval)
    text = str(show_finding(value, low, high, row.detected, unit, reports))
    ends = {"low": low, "high": high, "detected": row.detected}
    return {"range": row.string, "share": raw, **ends, "text": text}


def _values(each: Any) -> Spec:
    """A cumulative share as data."""
    share, low, high = each.share, each.low_95, each.high_95
    text = str(show_share(share, low, high))
    return {"range": each.label, "share": share, "low": low, "high": high, "text": text}


def median_in_words(hist: Any) -> list[str]:
    """A sentence on where the median lies; nothing where ranges contain nothing."""
    try:
        median = hist.quantile(0.5)
    except ValueError:  # DecodeError: the ranges contain nothing
        return []
    if median.low_label == median.high_label:
        return [f"The median is {median.label}, with at least 95 % confidence."]
    low, high = median.low_label, median.high_label
    if median.low_95 is not None and math.isfinite(median.high_95 - median.low_95):
        low, high = f"{median.low_95:,.6g}", f"{median.high_95:,.6g}"
    return [f"The median is about {median.label}; 95 % interval: from {low} up to {high}."]


def _tooltip(title: str) -> list[Spec]:
    return [
        {"field": "range", "type": "nominal", "title": "Range"},
        {"field": "text", "type": "nominal", "title": f"{title} (95 % interval)"},
    ]


def _tilted(hist: Any) -> bool:
    """Whether labels have no room next to each other."""
    longest = max(map(len, hist.labels))
    return 7 * longest > FILE_WIDTH / len(hist.labels) and longest > 4


def _labels_room(hist: Any) -> int:
    """Pixels below the plot for the labels of ranges, and a little above it."""
    if not _tilted(hist):
        return 36
    return 24 + round(4 * min(max(map(len, hist.labels)), 24))


def _ranges(hist: Any, padding: float, page: bool) -> Spec:
    """The axis of ranges; on a phone labels that are not tilted say where a range begins."""
    tilted = _tilted(hist)
    short: Spec = {"labelExpr": _SHORT_LABELS} if page and not tilted else {}
    return {
        "field": "range",
        "type": "nominal",
        "sort": None,
        "scale": {"paddingInner": padding, "paddingOuter": 0.1},
        "axis": {
            "title": None,
            **short,
            "labelAngle": -40 if tilted else 0,
            # The boxes of tilted labels overlap long before the labels do.
            "labelOverlap": (not tilted or len(hist.labels) > 24) and "parity",
            "labelSeparation": 6,
            "labelLimit": 160,
            "labelFlush": False,
            "ticks": False,
        },
    }


def _share(field: str, title: str) -> Spec:
    axis = percent_axis(title=title, minExtent=44)
    return {"field": field, "type": "quantitative", "axis": axis}


def _upwards(values: list[Spec], unit: str) -> Spec:
    """The axis of a histogram: from 0, or from the lowest estimate if that is below 0."""
    found = _share("share", "Share of reports")
    if unit == "count":
        found["axis"] = {"title": "Reports", "labelExpr": "format(datum.value, ',')"}
        found["axis"] |= {"minExtent": 44}
    ends = [row[end] for row in values for end in ("share", "low", "high")]
    found["scale"] = {"domain": [min(0.0, *ends), 1.04 * max(*ends, 1e-9)], "nice": False}
    return found


def _layers(values: list[Spec], height: int, layers: list[Spec]) -> Spec:
    return {"height": height, "data": {"values": values}, "layer": layers}
