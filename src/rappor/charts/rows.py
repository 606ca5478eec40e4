"""Rows of a result as bars, or as dots on a logarithmic scale, with their intervals."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rappor.charts.marks import ON_PHONE, Panel, percent_axis, unless_phone, whiskers
from rappor.charts.numbers import NO_BREAK, show_count, show_finding, show_p, show_percent
from rappor.charts.theme import MONO, Spec, colours

MAX_ROWS = 30  # of a chart in a file
PAGE_ROWS = 40  # of a chart in a page, which scrolls
NOT_DETECTED = 10  # rows after the detected ones, to show the effect of the threshold
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
STEP, LABELS, PHONE_LABELS = 22, 240, 118
_INNER = 0.36
ROWS_WIDTH = 420  # pixels of the plot in a file
_AROUND = 62  # pixels above and below the rows: axis, its title, the threshold's label
_EARLY = 0.25  # of the plot: up to here a label right of the threshold fits on a phone
_BELOW = 3.0  # how far below the smallest number the scale begins, as a factor
FALSE_FINDS = {
    "fdr": "On average at most {alpha} of the detected ones are false finds (adaptive FDR).",
    "bh": "On average at most {alpha} of the detected ones are false finds (Benjamini-Hochberg).",
    "holm": "The chance of any false find is at most {alpha}.",
    "bonferroni": "The chance of any false find is at most {alpha}.",
    "none": "Not corrected for the number of candidates: {alpha} of absent ones look detected.",
}


def chosen(decoded: Any, max_rows: int = MAX_ROWS) -> list[Any]:
    """Detected rows and the next few that are not; all rows of a short list."""
    rows = decoded.rows
    pool = list(rows) if len(rows) <= 4096 else [*decoded.detected, *rows[: 2 * max_rows]]
    ordered = sorted({row.string: row for row in pool}.values(), key=by_size)
    detected = [row for row in ordered if row.detected][:max_rows]
    room = max_rows - len(detected)
    if decoded.kind == "string":
        room = min(room, NOT_DETECTED)
    others = [row for row in ordered if not row.detected][:room]
    return sorted([*detected, *others], key=by_size)


def by_size(row: Any) -> tuple[float, str]:
    """Sort key: largest first, equal rows by string."""
    return -row.raw_estimate, row.string


def row_values(row: Any, unit: str = "share", reports: int | None = None) -> Spec:
    """The data of a row; `low` and `high` are in the unit.

    Without an interval on both sides there is no estimate either, and no `low`: the row is known to
    be at most `high`.

    Args:
        row: a Row, or anything with its attributes.
        unit: "share" or "count".
        reports: N, if it is known.
    """
    low, high = row.interval
    share = show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    count = show_finding(row.estimate, low, high, row.detected, "count", reports)
    drawn = (
        {"share": row.proportion, "low": row.prop_low_95, "high": row.prop_high_95}
        if unit == "share"
        else {"reports": row.estimate, "low": low, "high": high}
    )
    sized = row.detected and not row.presence_only
    if not sized:
        drawn[FIELDS[unit]] = drawn["low"] = None
    return {
        "string": row.string or "(empty)",
        **drawn,
        "end": drawn[FIELDS[unit]] if sized else drawn["high"],
        "sized": sized,
        "detected": row.detected,
        "text": str(share),
        "count": str(count),
        "shown": str(share if unit == "share" else count),
        "p": show_p(row.adjusted_p_value),
        "verdict": "detected" if row.detected else "not detected",
    }


def ends_of(values: list[Spec]) -> list[float]:
    """Where bars and whiskers end; there is at least one row."""
    return [row[end] for row in values for end in ("low", "high", "end") if row[end] is not None]


def unit_axis(unit: str, **more: object) -> Spec:
    """The axis of shares or counts."""
    room: Spec = {"labelOverlap": "parity", "labelSeparation": 8}
    if unit == "share":
        return percent_axis(title=AXIS_TITLES[unit], **room | more)
    axis: Spec = {"labelExpr": COUNT_LABELS, "tickCount": 6, "title": AXIS_TITLES[unit]}
    return axis | room | more


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


class Threshold(NamedTuple):
    """Where detected rows begin and undetected ones end; a band if they overlap."""

    low: float
    high: float


def detection(decoded: Any, unit: str, ends: list[float]) -> Threshold | None:
    """The detection threshold in the unit; None if it is not drawn."""
    band = decoded.threshold_band
    limit = max(1.0, *(ends if unit == "share" else [end / decoded.reports for end in ends]))
    if decoded.kind == "boolean" or not all(0 < end <= limit * decoded.reports for end in band):
        return None
    scale = decoded.reports if unit == "share" else 1
    return Threshold(*(float(end / scale) for end in band))


def bars(
    decoded: Any, shown: list[Any] | None = None, *, theme: str, unit: str = "share", page: bool
) -> Spec:
    """Data and layers of the bars: filled to the estimate, or hollow to an upper limit.

    Args:
        decoded: a Decoded, or anything with its attributes.
        shown: the rows to draw; by default those of `chosen`.
        theme: "light" or "dark".
        unit: "share" or "count".
        page: True for a page, which may be narrow; False for a file.
    """
    colour = colours(theme)
    rows = chosen(decoded) if shown is None else shown
    values = [row_values(row, unit, decoded.reports) for row in rows]
    ends = ends_of(values)
    threshold = detection(decoded, unit, ends)
    domain = [0.0, max(*ends, threshold.high if threshold else 0.0, 1e-9)]
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "strokeWidth": 1, "cornerRadiusEnd": 2},
            "encoding": {
                "y": row_place(_INNER, colour["text"], label_limit(page)),
                "x": {
                    "field": "end",
                    "type": "quantitative",
                    "scale": {"domain": domain, "nice": True},
                    "axis": unit_axis(unit, orient="top"),
                },
                "x2": {"datum": 0},
                "fill": either("datum.sized", colour["bar"], colour["bg"]),
                "stroke": either("datum.detected", colour["bar-edge"], colour["edge"]),
                "tooltip": TOOLTIP,
            },
        },
        *whiskers("x", "string", colour["text"], only="datum.sized"),
        text_right("shown", page),
    ]
    if threshold is not None:
        late = threshold.high > _EARLY * domain[1]
        layers += threshold_rule(threshold, unit, colour["threshold"], "right" if late else "left")
    height = STEP * len(values) if page else {"step": STEP}  # a page reserves the height
    return {"height": height, "data": {"values": values}, "layer": layers}


def label_limit(page: bool) -> int | Spec:
    """The largest width of a string left of the plot, in pixels."""
    return unless_phone(LABELS, PHONE_LABELS) if page else LABELS


def either(test: str, if_so: str, otherwise: str) -> Spec:
    """One value if a test holds, another if it does not."""
    return {"condition": {"test": test, "value": if_so}, "value": otherwise}


def text_right(field: str, page: bool, **more: Any) -> Spec:
    """A text right of the plot for each row."""
    text: Spec = {"field": field}
    if page:
        text["condition"] = {"test": ON_PHONE, "value": ""}
    return {
        "mark": {"type": "text", "align": "left", "dx": 12},
        "encoding": {
            "y": {"field": "string", "type": "nominal", "sort": None},
            "x": {"value": "width"},
            "text": text,
            **more,
        },
    }


def threshold_rule(threshold: Threshold, unit: str, colour: str, align: str) -> list[Spec]:
    """A dashed rule from top to bottom, with its label below; two and a band if rows overlap."""
    low, high = threshold
    shown = [
        show_percent(end) if unit == "share" else show_count(end, math.nan, math.nan).value
        for end in dict.fromkeys(threshold)
    ]
    label = f"detection threshold ≈ {shown[0]}"
    if len(shown) > 1:
        label = f"detection threshold: {shown[0].removesuffix(f'{NO_BREAK}%')} – {shown[1]}"
    at = {"field": "threshold", "type": "quantitative"}
    rules: list[Spec] = [
        {
            "data": {"values": [{"threshold": end} for end in dict.fromkeys(threshold)]},
            "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5, "color": colour},
            "encoding": {"x": at},
        }
    ]
    if high > low:
        band = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
        rules.insert(
            0,
            {
                "data": {"values": [{"low": low, "high": high}]},
                "mark": {"type": "rect", "color": colour, "opacity": 0.12, "aria": False},
                "encoding": band,
            },
        )
    return [
        *rules,
        {
            "data": {"values": [{"threshold": high if align == "right" else low}]},
            "mark": {
                "type": "text",
                "align": align,
                "baseline": "top",
                "dx": -4 if align == "left" else 4,
                "dy": 6,
                "color": colour,
                "text": label,
            },
            "encoding": {"x": at, "y": {"value": "height"}},
        },
    ]


def dots_panel(decoded: Any, *, theme: str = "light", unit: str = "share", page: bool) -> Panel:
    """Estimates as dots with their intervals; one that reaches 0 ends in ◂.

    A logarithmic scale has no 0, where bars would begin. Of rows without an estimate only the
    upper limit is drawn.
    """
    shown = chosen(decoded, PAGE_ROWS)
    title, words = said(decoded, shown)
    words = [line.replace("Hollow bars end at", "Without a dot:") for line in words]
    values = [row_values(row, unit, decoded.reports) for row in shown]
    field = FIELDS[unit]
    domain = log_domain(ends_of(values))
    for row in values:
        open_ended(row, field, domain[0])
    if any(row["open"] for row in values):
        words.append("◂: no lower limit.")
    return Panel(
        title,
        tuple(words),
        _dots_parts(decoded, values, domain, theme, unit, page),
        STEP * len(shown) + _AROUND,
        ROWS_WIDTH,
    )


def log_domain(numbers: list[float]) -> list[float]:
    """The range from below the smallest positive number to the largest.

    >>> log_domain([0.01, 0.2, -0.1])
    [0.0033333333333333335, 0.2]
    """
    positive = [number for number in numbers if number > 0] or [1e-6]
    return [min(positive) / _BELOW, max(positive)]


def open_ended(each: Spec, field: str, floor: float) -> None:
    """Cut values at the lower end of the scale, and mark that they were cut."""
    low = each["low"] or 0.0
    each["open"] = not low > floor
    each["low"], each["high"] = max(low, floor), max(each["high"], floor)
    if not (each[field] or 0.0) > 0:
        each[field] = None


def log_ticks(domain: list[float]) -> list[float]:
    """1, 2 and 5 times powers of ten; only powers if the range is wide.

    >>> log_ticks([0.003, 0.2])
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    """
    low, high = (math.floor(math.log10(end)) for end in domain)
    digits = (1, 2, 5) if high - low < 3 else (1,)
    ticks = [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in digits]
    return [tick for tick in ticks if domain[0] <= tick <= domain[1]]


def _dots_parts(
    decoded: Any, values: list[Spec], domain: list[float], theme: str, unit: str, page: bool
) -> Spec:
    colour = colours(theme)
    scale = {"type": "log", "domain": domain, "nice": False}
    axis = unit_axis(unit, orient="top", values=log_ticks(domain), labelOverlap=True)
    place = row_place(0.36, colour["text"], label_limit(page))
    along: Spec = {"field": "low", "type": "quantitative", "scale": scale, "axis": axis}
    row: Spec = {"field": "string", "type": "nominal", "sort": None}
    layers: list[Spec] = [
        *_interval(place, row, along, colour["text"]),
        {
            "transform": [{"filter": f"datum.{FIELDS[unit]} !== null"}],
            "mark": {"type": "point", "size": 64, "strokeWidth": 1.5, "opacity": 1},
            "encoding": {
                "y": row,
                "x": {"field": FIELDS[unit], "type": "quantitative"},
                "fill": either("datum.detected", colour["bar-edge"], colour["bg"]),
                "stroke": either("datum.detected", colour["bar-edge"], colour["edge"]),
                "tooltip": TOOLTIP,
            },
        },
        text_right("shown", page),
    ]
    threshold = detection(decoded, unit, domain)
    if threshold is not None and domain[0] < threshold.low <= threshold.high < domain[1]:
        late = math.log(threshold.high / domain[0]) > _EARLY * math.log(domain[1] / domain[0])
        side = "right" if late else "left"
        layers += threshold_rule(threshold, unit, colour["threshold"], side)
    return {"height": STEP * len(values), "data": {"values": values}, "layer": layers}


def _interval(place: Spec, row: Spec, along: Spec, ink: str) -> list[Spec]:
    """A line from low to high; its lower end is an arrow if it goes on below the scale."""
    rule = {"type": "rule", "strokeWidth": 1.5, "color": ink}
    end = {"orient": "vertical", "size": 8, "thickness": 1.5, "color": ink, "aria": False}
    tick = {"type": "tick", **end}
    arrow = {"shape": "triangle-left", "filled": True, "size": 50, "opacity": 1, "color": ink}
    low, high = ({"field": name, "type": "quantitative"} for name in ("low", "high"))
    return [
        {"mark": rule, "encoding": {"y": place, "x": along, "x2": {"field": "high"}}},
        {"mark": tick, "encoding": {"y": row, "x": high}},
        {
            "transform": [{"filter": "!datum.open"}],
            "mark": tick,
            "encoding": {"y": row, "x": low},
        },
        {
            "transform": [{"filter": "datum.open"}],
            "mark": {"type": "point", **arrow, "aria": False},
            "encoding": {"y": row, "x": low},
        },
    ]


def said(decoded: Any, shown: list[Any]) -> tuple[str, list[str]]:
    """The title and the sentences below it."""
    candidates, found = len(decoded.rows), len(decoded.detected)
    words = []
    if decoded.kind == "boolean":
        title = f"{row_values(decoded.rows[0])['text']} {decoded.rows[0].string}"
    else:
        noun = {"string": "candidates", "category": "categories"}.get(decoded.kind, "values")
        title = f"{found:,} of {candidates:,} {noun} detected"
        if not found:
            title = f"None of {candidates:,} {noun} detected"
            words.append("All are absent, or too rare to see in this many reports.")
        else:
            alpha = show_percent(decoded.alpha)
            words.append(FALSE_FINDS[decoded.correction].format(alpha=alpha))
            if any(not row.detected or row.presence_only for row in shown):
                words.append("Hollow bars end at an upper limit.")
    if len(shown) < candidates:
        words.append(f"Showing {len(shown)} of {candidates:,}, largest first.")
    return f"{title} in {decoded.reports:,} reports", words


def bars_panel(decoded: Any, *, theme: str = "light", unit: str = "share", page: bool) -> Panel:
    """The bars alone, at most 40; the table must have reports and rows."""
    shown = chosen(decoded, PAGE_ROWS)
    title, words = said(decoded, shown)
    return Panel(
        title,
        tuple(words),
        bars(decoded, shown, theme=theme, unit=unit, page=page),
        STEP * len(shown) + _AROUND,
        ROWS_WIDTH,
    )
