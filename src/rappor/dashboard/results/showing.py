"""What the template of the Results page is told."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rappor.charts.numbers import MINUS, show_count, show_difference, show_percent
from rappor.charts.strip import split_of
from rappor.collection import Collection
from rappor.dashboard.access.visitor import Visitor
from rappor.dashboard.desk import Desk
from rappor.dashboard.embedding import both
from rappor.dashboard.periods import moved
from rappor.dashboard.results.boxes import box_of
from rappor.dashboard.results.drawing import drawn
from rappor.dashboard.results.kept import Kept
from rappor.dashboard.results.python_code import python_code, report_code
from rappor.dashboard.results.situation import DECODERS, Situation
from rappor.dashboard.results.table import table_of
from rappor.dashboard.view import CORRECTIONS, METHODS, SCALES, UNITS, View, between, parameter
from rappor.dashboard.words import period_text
from rappor.decoding.histogram import Histogram, Quantile
from rappor.decoding.quality import Check
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


def context(desk: Desk, view: View, visitor: Visitor, found: Situation) -> dict[str, Any]:
    """Everything that results.html shows."""
    collection = found.collection
    stored = [each.period for each in desk.catalogue.periods(view.collection, view.version)]
    kept = found.kept
    has_rows = kept is not None and bool(kept.decoded.reports) and len(kept.decoded.rows) > 0
    drawings = _drawings(kept, view) if kept is not None and has_rows else []
    return {
        "view": view,
        "entry": desk.catalogue.entry(view.collection),
        "collection": collection,
        "found": found,
        "kept": kept,
        "said": box_of(found, view, visitor),
        "may_decode": visitor.may(DECODERS),
        "periods": [Option(each, period_text(each)) for each in reversed(stored)],
        "presets": _presets(view, stored),
        "before": moved(view, stored, -1),
        "after": moved(view, stored, 1),
        "dimensions": _dimensions(desk, view, collection),
        "comparisons": _comparisons(desk, view, stored),
        "versions": desk.catalogue.versions(view.collection),
        "lists": _lists(desk, view, collection),
        "units": _options(UNITS, view.unit),
        "scales": _options(SCALES, view.scale),
        "corrections": _options(CORRECTIONS, view.correction),
        "methods": _options(METHODS, view.method),
        "drawings": drawings,
        "table": table_of(kept, view) if kept is not None and has_rows else None,
        "split": split_of(kept.decoded) if kept is not None else None,
        "tiles": _tiles(kept) if kept is not None and has_rows else [],
        "warnings": _failed_checks(kept),
        "code": python_code(view, collection) if view.periods else "",
        "report_code": report_code(collection, desk.settings.collector),
        "hidden_fields": view.fields(q=""),
        "alpha_shown": show_percent(view.alpha),
        "show_difference": show_difference,
        "three": lambda number: show_count(number, math.nan, math.nan).value,
        "one": lambda number: f"{number:,.1f}".replace("-", MINUS),
    }


def _options(words: dict[str, str], chosen: str) -> list[Option]:
    return [Option(value, word, value == chosen) for value, word in words.items()]


def _drawings(kept: Kept, view: View) -> list[Drawing]:
    plain = drawn(kept, view, page=True)

    def spec(name: str) -> dict[str, Any]:
        return both(lambda theme: drawn(kept, view, theme, page=True)[name].in_page(theme))

    return [
        Drawing(name, _CHART_WORDS[name], spec(name), panel.sentence, panel.height)
        for name, panel in plain.items()
    ]


def _presets(view: View, stored: list[str]) -> list[tuple[str, str, bool]]:
    """Word, address and whether it is what is shown; those that would show the same left out."""
    made: list[tuple[str, str, bool]] = []
    for word, number in _PRESETS:
        if stored and (number == 1 or number == 0 or len(stored) > number):
            first = stored[-number] if number else stored[0]
            shown = view.periods == between(stored, first, stored[-1])
            address = view.path(first=first, last=stored[-1], vs="")
            made.append((word, address, shown))
    return made if len(stored) > 1 else []


def _dimensions(
    desk: Desk, view: View, collection: Collection
) -> list[tuple[str, str, list[Option]]]:
    """Of each dimension its name, what addresses call it, and its values."""
    chosen = dict(view.dimensions)
    made = []
    for name in sorted(collection.dimensions):
        values = desk.catalogue.values(view.collection, view.version, name)
        listed = list(dict.fromkeys([*values, *([chosen[name]] if name in chosen else [])]))
        options = [Option(each, each, chosen.get(name) == each) for each in listed]
        made.append((name, parameter(name), options))
    return made


def _comparisons(desk: Desk, view: View, stored: list[str]) -> list[Option]:
    """What the view can be compared with: other periods, other values of a chosen dimension."""
    made = []
    shown = len(view.periods)
    if shown > 1:
        start = stored.index(view.periods[0])
        earlier = stored[max(0, start - shown) : start]
        if earlier:
            made.append(Option(f"{earlier[0]}..{earlier[-1]}", f"{earlier[0]} – {earlier[-1]}"))
    others = [each for each in reversed(stored) if each not in view.periods]
    made += [Option(each, each) for each in others]
    for name, value in view.dimensions:
        for other in desk.catalogue.values(view.collection, view.version, name):
            if other != value:
                made.append(Option(f"{name}={other}", f"{name}: {other}"))
    if view.vs and view.vs not in {each.value for each in made}:
        made.append(Option(view.vs, view.vs))
    return [each._replace(chosen=each.value == view.vs) for each in made]


def _lists(desk: Desk, view: View, collection: Collection) -> list[Option]:
    if collection.kind != "string":
        return []
    return [
        Option(
            str(each.version), f"v{each.version} ({each.size:,})", each.version == view.candidates
        )
        for each in desk.state.candidate_versions(view.collection)
    ]


def _failed_checks(kept: Kept | None) -> list[Check]:
    if kept is None:
        return []
    checks = kept.compared.checks if kept.compared is not None else kept.found.checks
    return [check for check in checks if not check.ok]


def _tiles(kept: Kept) -> list[Tile]:
    """Median, quantiles and reports of numbers."""
    hist = kept.decoded.histogram
    if hist is None or kept.other is not None:
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
