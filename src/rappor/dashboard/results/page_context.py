"""The values of the template of the Results page, and the job behind it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rappor.charts.comparison import Pair, comparison_panel, comparison_title
from rappor.charts.distribution import cumulative_panel, histogram_panel
from rappor.charts.marks import Panel, both
from rappor.charts.numbers import MINUS, show_count, show_difference
from rappor.charts.results import split_of, strip_panel
from rappor.charts.rows import PAGE_ROWS, bars_panel, dots_panel
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.page_choices import choices
from rappor.dashboard.page_messages import message_of
from rappor.dashboard.page_query import SCALES, UNITS, PageQuery, Selection, between
from rappor.dashboard.page_state import (
    DECODERS,
    Freshness,
    PageState,
    PageWork,
    ResultReader,
    candidates_of,
    task_arguments,
)
from rappor.dashboard.results.downloads import python_code, report_code
from rappor.dashboard.results.serialization import StoredDecode, unpack
from rappor.dashboard.results.table import chart_lines, table_of
from rappor.dashboard.state.saved import SavedResult
from rappor.decoding.histogram import Histogram, Quantile
from rappor.decoding.quality import Check
from rappor.errors import DecodeError

_PRESETS = (("Latest", 1), ("Last 4", 4), ("Last 13", 13), ("All", 0))
_QUANTILES = (0.9, 0.99)
_OUTSIDE_CONTROLS = ("unit", "scale", "q", "sort", "version", "show")
_TESTED = {"string": "candidates", "category": "categories", "ordinal": "ranges"}
_CHART_WORDS = {
    "results": "Results",
    "compared": "Comparison",
    "undetected_mass": "Undetected mass",
    "histogram": "Histogram",
    "cumulative": "Cumulative shares",
}
_CUMULATIVE_HEIGHT = 160


class Option(NamedTuple):
    """One of a list to choose from."""

    value: str
    word: str
    chosen: bool = False


class Drawing(NamedTuple):
    """One chart as the template needs it."""

    name: str
    word: str
    spec: dict[str, Any]
    sentence: str
    height: int


class Tile(NamedTuple):
    """A figure with its name and its interval."""

    word: str
    shown: str
    value: str
    interval: str


read_result = ResultReader(unpack)


def decode_work(context: Context, query: PageQuery) -> PageWork:
    """The job behind a results page: a decode, or two and their comparison."""
    collection = context.catalogue.get(query.collection, query.version)
    reports, where = _reports(context, query, query.selection), query.selection.words
    if not query.periods:
        where = " – ".join(dict.fromkeys((query.first, query.last)))
    others = None if query.against is None else _reports(context, query, query.against)
    if query.against is not None and not others and reports:
        where = query.against.words

    def freshness(saved: SavedResult) -> Freshness:
        behind = reports - int(saved.meta["reports"])
        if others is not None:
            behind += others - int(saved.meta["other"]["reports"])
        return Freshness(False, behind)

    tested = candidates_of(context, query, collection)
    noun = _TESTED.get(collection.kind, "values")
    verb = "Decoding" if query.against is None else "Comparing"
    return PageWork(
        kind="decode" if query.against is None else "compare",
        key=query.key,
        label=f"{verb} {tested:,} {noun}",
        collection=collection,
        arguments=lambda: task_arguments(context, query),
        reports=0 if others == 0 else reports,
        where=where,
        freshness=freshness,
        sample=(query.periods[-1], reports) if query.periods else None,
        needs_list=True,
    )


def _reports(context: Context, query: PageQuery, selection: Selection) -> int:
    return context.catalogue.reports(query.collection, query.version, *selection)


def page_context(
    context: Context, query: PageQuery, visitor: Visitor, state: PageState
) -> dict[str, Any]:
    """Everything that results.html shows."""
    collection = state.collection
    stored = [period for period, _ in context.catalogue.periods(query.collection, query.version)]
    result = None if state.saved is None else read_result(state.saved)
    has_rows = result is not None and bool(result.decoded.reports) and len(result.decoded.rows) > 0
    return {
        "query": query,
        "entry": context.catalogue.entry(query.collection),
        "collection": collection,
        "state": state,
        "result": result,
        "message": message_of(state, visitor),
        "may_decode": visitor.may(DECODERS),
        "choices": choices(context, query, stored, ""),
        "presets": _presets(query, stored),
        "default_note": _default_note(query, stored),
        "difference_words": difference_words(query),
        "comparisons": _comparisons(context, query, stored),
        "units": _options(UNITS, query.unit),
        "scales": _options(SCALES, query.scale),
        "drawings": _drawings(result, query) if result is not None and has_rows else [],
        "table": table_of(result, query) if result is not None and has_rows else None,
        "split": split_of(result.decoded) if result is not None else None,
        "tiles": _tiles(result) if result is not None and has_rows else [],
        "warnings": _failed_checks(result),
        "code": python_code(query, collection) if query.periods else "",
        "report_code": report_code(collection, context.settings.collector),
        "hidden_fields": {
            name: text for name, text in query.fields().items() if name in _OUTSIDE_CONTROLS
        },
        "search_fields": query.fields(q=""),
        "show_difference": show_difference,
        "three": lambda number: show_count(number, math.nan, math.nan).value,
        "infinity": math.inf,
        "one": lambda number: f"{number:,.1f}".replace("-", MINUS),
    }


def _options(words: dict[str, str], chosen: str) -> list[Option]:
    return [Option(value, word, value == chosen) for value, word in words.items()]


def _drawings(result: StoredDecode, query: PageQuery) -> list[Drawing]:
    plain = drawn(result, query, page=True)

    def spec(name: str) -> dict[str, Any]:
        return both(lambda theme: drawn(result, query, theme, page=True)[name].in_page(theme))

    return [
        Drawing(name, _chart_word(name, result.main.kind), spec(name), panel.sentence, panel.height)
        for name, panel in plain.items()
    ]


def _chart_word(name: str, kind: str) -> str:
    if name == "undetected_mass" and kind == "category":
        return "In no category"
    return _CHART_WORDS[name]


def difference_words(query: PageQuery) -> str:
    """What is subtracted from what."""
    new, old = query.difference
    return f"Differences are {new.words} minus {old.words}"


def _default_note(query: PageQuery, stored: list[str]) -> str:
    """Why an address without periods does not show the newest one; empty if it does."""
    usual = query.usual.get("to", "")
    if query.periods != (usual,) or not stored or stored[-1] == usual:
        return ""
    later = f"{stored[-1]} has" if stored[-2:-1] == [usual] else "Later ones have"
    return f"{usual} is the latest period with enough reports. {later} too few so far."


def _presets(query: PageQuery, stored: list[str]) -> list[tuple[str, str, bool]]:
    """Word, address and whether it is shown; presets that would show the same are left out."""
    made: list[tuple[str, str, bool]] = []
    for word, number in _PRESETS:
        if stored and (number == 1 or number == 0 or len(stored) > number):
            first, last = stored[-number] if number else stored[0], stored[-1]
            if number == 1:
                first = last = query.usual.get("to") or last  # the latest with enough reports
            shown = query.periods == between(stored, first, last)
            address = query.path(first=first, last=last, vs="")
            made.append((word, address, shown))
    return made if len(stored) > 1 else []


def _comparisons(context: Context, query: PageQuery, stored: list[str]) -> list[Option]:
    """What can be compared: other periods, and other values of a chosen dimension."""
    made = []
    shown = len(query.periods)
    if shown > 1:
        start = stored.index(query.periods[0])
        earlier = stored[max(0, start - shown) : start]
        if earlier:
            made.append(Option(f"{earlier[0]}..{earlier[-1]}", f"{earlier[0]} – {earlier[-1]}"))
    others = [period for period in reversed(stored) if period not in query.periods]
    made += [Option(period, period) for period in others]
    for name, value in query.dimensions:
        for other in context.catalogue.values(query.collection, query.version, name):
            if other != value:
                made.append(Option(f"{name}={other}", f"{name}: {other}"))
    if query.vs and query.vs not in {option.value for option in made}:
        made.append(Option(query.vs, query.vs))
    return [option._replace(chosen=option.value == query.vs) for option in made]


def _failed_checks(result: StoredDecode | None) -> list[Check]:
    if result is None:
        return []
    checks = result.compared.checks if result.compared is not None else result.main.checks
    return [check for check in checks if not check.ok]


def _tiles(result: StoredDecode) -> list[Tile]:
    """The median, quantiles and reports of a histogram."""
    hist = result.main.histogram
    if hist is None or result.other is not None:
        return []
    try:
        median = hist.quantile(0.5)
        made = [_in_words("Median", median, hist)]
        made += [_below(hist, share) for share in _QUANTILES]
    except DecodeError:
        return []
    made.append(Tile("Reports", f"{hist.reports:,}", str(hist.reports), "counted, not estimated"))
    return made


def _below(hist: Histogram, share: float) -> Tile:
    """The number below which a share of the reports lies; its range if that is open."""
    found = hist.quantile(share)
    percent = f"{100 * share:g}\u00a0%"
    if hist.edges is None:
        return _in_words(f"{percent} up to", found, hist)
    names = (found.label, found.low_label, found.high_label)
    edges = [float(hist.edges[hist.labels.index(name) + 1]) for name in names]
    if not math.isfinite(edges[0]):
        return _in_words(f"{percent} up to", found, hist)
    shown = [f"{edge:,.6g}" if math.isfinite(edge) else "no limit" for edge in edges]
    interval = " – ".join(dict.fromkeys(shown[1:]))
    return Tile(f"{percent} below", shown[0], repr(edges[0]), f"95\u00a0% interval: {interval}")


def _in_words(word: str, found: Quantile, hist: Histogram) -> Tile:
    """The range of a quantile; its interval is a range too, or reaches over several."""
    ends = found.low_label
    if found.high_label != found.low_label:
        ends = f"{ends} – {found.high_label}"
        if hist.edges is not None:
            low = float(hist.edges[hist.labels.index(found.low_label)])
            high = float(hist.edges[hist.labels.index(found.high_label) + 1])
            ends = _numbers_between(low, high)
    value = found.label if found.value is None else repr(found.value)
    return Tile(word, found.label, value, f"95\u00a0% interval: {ends}")


def _numbers_between(low: float, high: float) -> str:
    """What lies between two edges, either of which may be open.

    >>> _numbers_between(2000, 4000), _numbers_between(2000, math.inf)
    ('2,000 – 4,000', '2,000 or more')
    """
    if not math.isfinite(high):
        return f"{low:,.6g} or more" if math.isfinite(low) else "any number"
    return f"{low:,.6g} – {high:,.6g}" if math.isfinite(low) else f"below {high:,.6g}"


def drawn(
    result: StoredDecode, query: PageQuery, theme: str = "light", *, page: bool
) -> dict[str, Panel]:
    """Every chart of a page by name, in their order.

    Args:
        result: the result, with reports and rows.
        query: its unit, its scale and the names of what is compared.
        theme: "light" or "dark".
        page: True for a page, False for a file.
    """
    found: dict[str, Panel] = {}
    if result.other is not None and query.against is not None:
        found["compared"] = _compared(result, query, theme, page)
    elif (hist := result.main.histogram) is not None:
        found["histogram"] = histogram_panel(hist, theme=theme, unit=query.unit, page=page)
        found["cumulative"] = cumulative_panel(
            hist, theme=theme, height=_CUMULATIVE_HEIGHT, page=page
        )
    elif query.scale == "log":
        found["results"] = dots_panel(result.decoded, theme=theme, unit=query.unit, page=page)
    else:
        found["results"] = bars_panel(result.decoded, theme=theme, unit=query.unit, page=page)
    mass = strip_panel(result.decoded, theme=theme)
    if mass is not None:
        found["undetected_mass"] = mass
    return found


def _compared(result: StoredDecode, query: PageQuery, theme: str, page: bool) -> Panel:
    lines = chart_lines(result, PAGE_ROWS)
    reports = (result.main.reports, None if result.other is None else result.other.reports)
    pairs = [
        Pair(line.row, line.other, line.gap, reports)
        for line in lines
        if line.other is not None and line.gap is not None
    ]
    different = 0 if result.compared is None else len(result.compared.different)
    tested = 0 if result.compared is None else result.compared.candidates
    names = (query.selection.words, query.against.words if query.against is not None else "")
    return comparison_panel(
        pairs,
        names,
        comparison_title(different, tested, result.decoded.kind, names),
        [f"{difference_words(query)}, in percentage points, with 95 % intervals."] if page else (),
        theme=theme,
        unit=query.unit,
        scale=query.scale,
        page=page,
    )
