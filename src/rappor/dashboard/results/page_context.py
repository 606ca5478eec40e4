"""What the template of the Results page is told."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rappor.charts.comparison import Pair, comparison_panel
from rappor.charts.distribution import cumulative_panel, histogram_panel
from rappor.charts.numbers import MINUS, show_count, show_difference, show_percent
from rappor.charts.panel import Panel, both
from rappor.charts.results import split_of, strip_panel
from rappor.charts.rows import PAGE_ROWS, bars_panel, dots_panel
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.page_messages import box_of
from rappor.dashboard.page_query import (
    CORRECTIONS,
    METHODS,
    SCALES,
    UNITS,
    PageQuery,
    between,
    moved,
    parameter,
)
from rappor.dashboard.page_state import DECODERS, Situation
from rappor.dashboard.results.downloads import python_code, report_code
from rappor.dashboard.results.serialization import StoredDecode
from rappor.dashboard.results.table import chart_lines, table_of
from rappor.dashboard.templating import period_text
from rappor.decoding.histogram import Histogram, Quantile
from rappor.errors import DecodeError

_PRESETS = (("Latest", 1), ("Last 4", 4), ("Last 13", 13), ("All", 0))
_QUANTILES = (0.9, 0.99)
_CHART_WORDS = {
    "results": "Results",
    "compared": "Comparison",
    "unlisted": "Unlisted mass",
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
    """A figure with what it is, and its interval."""

    word: str
    shown: str
    value: str
    interval: str


def page_context(
    context: Context, query: PageQuery, visitor: Visitor, found: Situation
) -> dict[str, Any]:
    """Everything that results.html shows."""
    collection = found.collection
    stored = [each.period for each in context.catalogue.periods(query.collection, query.version)]
    kept = found.kept
    has_rows = kept is not None and bool(kept.decoded.reports) and len(kept.decoded.rows) > 0
    drawings = _drawings(kept, query) if kept is not None and has_rows else []
    return {
        "query": query,
        "entry": context.catalogue.entry(query.collection),
        "collection": collection,
        "found": found,
        "kept": kept,
        "said": box_of(found, query, visitor),
        "may_decode": visitor.may(DECODERS),
        "periods": [Option(each, period_text(each)) for each in reversed(stored)],
        "presets": _presets(query, stored),
        "before": moved(query, stored, -1),
        "after": moved(query, stored, 1),
        "dimensions": _dimensions(context, query, collection),
        "comparisons": _comparisons(context, query, stored),
        "versions": context.catalogue.versions(query.collection),
        "lists": _lists(context, query, collection),
        "units": _options(UNITS, query.unit),
        "scales": _options(SCALES, query.scale),
        "corrections": _options(CORRECTIONS, query.correction),
        "methods": _options(METHODS, query.method),
        "drawings": drawings,
        "table": table_of(kept, query) if kept is not None and has_rows else None,
        "split": split_of(kept.decoded) if kept is not None else None,
        "tiles": _tiles(kept) if kept is not None and has_rows else [],
        "warnings": _warnings(kept),
        "code": python_code(query, collection) if query.periods else "",
        "report_code": report_code(collection, context.settings.collector),
        "hidden_fields": query.fields(q=""),
        "alpha_shown": show_percent(query.alpha),
        "show_difference": show_difference,
        "three": lambda number: show_count(number, math.nan, math.nan).value,
        "one": lambda number: f"{number:,.1f}".replace("-", MINUS),
    }


def _options(words: dict[str, str], chosen: str) -> list[Option]:
    return [Option(value, word, value == chosen) for value, word in words.items()]


def _drawings(kept: StoredDecode, query: PageQuery) -> list[Drawing]:
    plain = drawn(kept, query, page=True)

    def spec(name: str) -> dict[str, Any]:
        return both(lambda theme: drawn(kept, query, theme, page=True)[name].in_page(theme))

    return [
        Drawing(name, _CHART_WORDS[name], spec(name), panel.sentence, panel.height)
        for name, panel in plain.items()
    ]


def _presets(query: PageQuery, stored: list[str]) -> list[tuple[str, str, bool]]:
    """Word, address and whether it is what is shown; those that would show the same left out."""
    made: list[tuple[str, str, bool]] = []
    for word, number in _PRESETS:
        if stored and (number == 1 or number == 0 or len(stored) > number):
            first = stored[-number] if number else stored[0]
            shown = query.periods == between(stored, first, stored[-1])
            address = query.path(first=first, last=stored[-1], vs="")
            made.append((word, address, shown))
    return made if len(stored) > 1 else []


def _dimensions(
    context: Context, query: PageQuery, collection: Collection
) -> list[tuple[str, str, list[Option]]]:
    """Of each dimension its name, what addresses call it, and its values."""
    chosen = dict(query.dimensions)
    made = []
    for name in sorted(collection.dimensions):
        values = context.catalogue.values(query.collection, query.version, name)
        listed = list(dict.fromkeys([*values, *([chosen[name]] if name in chosen else [])]))
        options = [Option(each, each, chosen.get(name) == each) for each in listed]
        made.append((name, parameter(name), options))
    return made


def _comparisons(context: Context, query: PageQuery, stored: list[str]) -> list[Option]:
    """What the view can be compared with: other periods, other values of a chosen dimension."""
    made = []
    shown = len(query.periods)
    if shown > 1:
        start = stored.index(query.periods[0])
        earlier = stored[max(0, start - shown) : start]
        if earlier:
            made.append(Option(f"{earlier[0]}..{earlier[-1]}", f"{earlier[0]} – {earlier[-1]}"))
    others = [each for each in reversed(stored) if each not in query.periods]
    made += [Option(each, each) for each in others]
    for name, value in query.dimensions:
        for other in context.catalogue.values(query.collection, query.version, name):
            if other != value:
                made.append(Option(f"{name}={other}", f"{name}: {other}"))
    if query.vs and query.vs not in {each.value for each in made}:
        made.append(Option(query.vs, query.vs))
    return [each._replace(chosen=each.value == query.vs) for each in made]


def _lists(context: Context, query: PageQuery, collection: Collection) -> list[Option]:
    if collection.kind != "string":
        return []
    return [
        Option(
            str(each.version), f"v{each.version} ({each.size:,})", each.version == query.candidates
        )
        for each in context.state.candidate_versions(query.collection)
    ]


def _warnings(kept: StoredDecode | None) -> list[str]:
    if kept is None:
        return []
    return list(kept.compared.warnings if kept.compared is not None else kept.found.warnings)


def _tiles(kept: StoredDecode) -> list[Tile]:
    """Median, quantiles and reports of numbers."""
    hist = kept.found
    if not isinstance(hist, Histogram) or kept.other is not None:
        return []
    try:
        median = hist.quantile(0.5)
        made = [_in_words("Median", median)]
        made += [_below(hist, share) for share in _QUANTILES]
    except DecodeError:
        return []
    made.append(Tile("Reports", f"{hist.reports:,}", str(hist.reports), "counted, not estimated"))
    return made


def _below(hist: Histogram, share: float) -> Tile:
    """Below which number a share of the reports lies; in which range where that is open."""
    found = hist.quantile(share)
    percent = f"{100 * share:g}\u00a0%"
    if hist.edges is None:
        return _in_words(f"{percent} up to", found)
    names = (found.label, found.low_label, found.high_label)
    edges = [float(hist.edges[hist.labels.index(name) + 1]) for name in names]
    if not math.isfinite(edges[0]):
        return _in_words(f"{percent} up to", found)
    shown = [f"{edge:,.6g}" if math.isfinite(edge) else "no limit" for edge in edges]
    interval = " – ".join(dict.fromkeys(shown[1:]))
    return Tile(f"{percent} below", shown[0], repr(edges[0]), f"95\u00a0% interval: {interval}")


def _in_words(word: str, found: Quantile) -> Tile:
    ends = " – ".join(dict.fromkeys((found.low_label, found.high_label)))
    value = found.label if found.value is None else repr(found.value)
    return Tile(word, found.label, value, f"95\u00a0% interval: {ends}")


def drawn(
    kept: StoredDecode, query: PageQuery, theme: str = "light", *, page: bool
) -> dict[str, Panel]:
    """Every chart of a view by name, in the order of the page.

    Args:
        kept: the result, with reports and rows.
        query: its unit, its scale and the names of what is compared.
        theme: "light" or "dark".
        page: whether they go into a page, or into a file.
    """
    found: dict[str, Panel] = {}
    if kept.other is not None and query.against is not None:
        found["compared"] = _compared(kept, query, theme, page)
    elif isinstance(kept.found, Histogram):
        found["histogram"] = histogram_panel(kept.found, theme=theme, unit=query.unit)
        found["cumulative"] = cumulative_panel(kept.found, theme=theme, height=_CUMULATIVE_HEIGHT)
    elif query.scale == "log":
        found["results"] = dots_panel(kept.decoded, theme=theme, unit=query.unit, page=page)
    else:
        found["results"] = bars_panel(kept.decoded, theme=theme, unit=query.unit, page=page)
    mass = strip_panel(kept.decoded, theme=theme)
    if mass is not None:
        found["unlisted"] = mass
    return found


def _compared(kept: StoredDecode, query: PageQuery, theme: str, page: bool) -> Panel:
    lines = chart_lines(kept, PAGE_ROWS)
    pairs = [
        Pair(line.row, line.other, line.gap)
        for line in lines
        if line.other is not None and line.gap is not None
    ]
    different = 0 if kept.compared is None else len(kept.compared.different)
    tested = 0 if kept.compared is None else kept.compared.candidates
    noun = "candidates" if kept.decoded.kind == "string" else "values"
    verb = "differs" if different == 1 else "differ"
    title = f"{different:,} of {tested:,} {noun} {verb}" if different else f"No {noun} differ"
    other = query.against.words if query.against is not None else ""
    return comparison_panel(
        pairs,
        (query.side.words, other),
        f"{title} between {query.side.words} and {other}",
        ["Differences are in percentage points, with 95 % intervals."] if page else (),
        theme=theme,
        unit=query.unit,
        scale=query.scale,
        page=page,
    )
