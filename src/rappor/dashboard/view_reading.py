"""An address -> a View: every part checked against what is stored and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rappor.checks import show
from rappor.collection import Collection
from rappor.collection.periods import check_period
from rappor.dashboard.page_query import (
    CORRECTIONS,
    DEFAULT_SORT,
    METHODS,
    SCALES,
    UNITS,
    Side,
    View,
    between,
    parameter,
)
from rappor.errors import ParamsError

# Columns that a table can be sorted by: those of strings, and those of a comparison.
SORTS = (
    "place",
    "string",
    "estimate",
    "low",
    "std_error",
    "p_value",
    "adjusted_p_value",
    "snr",
    "detected",
    "other",
    "difference",
)
_LONGEST = 400  # letters of a search
_LEAST_ALPHA = 1e-9  # divided by a million candidates, it is still a probability


def read_view(query: Mapping[str, str], catalogue: Any, state: Any, name: str) -> View:
    """See `View.of`."""
    collection = _collection(query, catalogue, name)
    stored = [each.period for each in catalogue.periods(name, collection.version)]
    newest = stored[-1] if stored else ""
    last = _period(query, "to", collection, newest)
    first = _period(query, "from", collection, last)
    first, last = sorted((first, last))
    dimensions = _dimensions(query, collection, catalogue)
    side = Side(between(stored, first, last), dimensions)
    vs = query.get("vs", "")
    lists = _lists(state, collection)
    candidates = _candidates(query, lists)
    usual = {
        "to": newest,
        "version": str(_newest(catalogue, name)),
        "candidates": str(lists[-1]) if lists else "",
    }
    # Ranges are read from low to high, all else from large to small.
    usual["sort"] = "place" if collection.kind == "ordinal" else DEFAULT_SORT
    method = _one_of(query, "method", METHODS)
    if collection.kind != "string":
        method = "auto"
    return View(
        collection=name,
        version=collection.version,
        first=first,
        last=last,
        periods=side.periods,
        dimensions=dimensions,
        vs=vs,
        against=_against(vs, side, stored, collection) if vs else None,
        unit=_one_of(query, "unit", UNITS),
        scale=_one_of(query, "scale", SCALES),
        correction=_one_of(query, "correction", CORRECTIONS),
        alpha=_alpha(query.get("alpha", "")),
        method=method,
        candidates=candidates,
        q=query.get("q", "").strip()[:_LONGEST],
        sort=_sort(query.get("sort", "") or usual["sort"]),
        page=_whole(query, "page"),
        every=query.get("show", "") == "all",
        anyway=query.get("anyway", "") == "1",
        usual=usual,
    )


def _newest(catalogue: Any, name: str) -> int:
    """The newest version that has reports, or the newest of all."""
    versions: list[int] = catalogue.versions(name)
    with_reports = [each for each in versions if catalogue.periods(name, each)]
    return (with_reports or versions)[-1]


def _collection(query: Mapping[str, str], catalogue: Any, name: str) -> Collection:
    version = _whole(query, "version") if query.get("version") else _newest(catalogue, name)
    found: Collection = catalogue.get(name, version)
    return found


def _whole(query: Mapping[str, str], field: str) -> int:
    text = query.get(field, "") or "1"
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1:
        return int(text)
    raise ParamsError(f"{field} must be a whole number from 1 on, got {show(text)}")


def _period(query: Mapping[str, str], field: str, collection: Collection, usual: str) -> str:
    text = query.get(field, "") or usual
    if not text:
        return ""
    try:
        return check_period(collection.period, text)
    except ParamsError as error:
        raise ParamsError(f"{field}: {error}") from None


def _one_of(query: Mapping[str, str], field: str, allowed: Mapping[str, str]) -> str:
    text = query.get(field, "") or next(iter(allowed))
    if text not in allowed:
        raise ParamsError(f"{field} must be one of {', '.join(allowed)}; got {show(text)}")
    return text


def _alpha(text: str) -> float:
    """An error rate, also in percent.

    >>> _alpha(""), _alpha("0.01"), _alpha("1 %")
    (0.05, 0.01, 0.01)
    """
    if not text:
        return 0.05
    number, percent, _ = text.partition("%")
    try:
        alpha = float(number) / (100 if percent else 1)
    except ValueError:
        alpha = math.nan
    if not _LEAST_ALPHA <= alpha < 1:
        raise ParamsError(
            f"alpha must be a number from {_LEAST_ALPHA:g} on and below 1, got {show(text)}"
        )
    return alpha


def _sort(text: str) -> str:
    if text.removeprefix("-") not in SORTS:
        raise ParamsError(f"sort must be one of {', '.join(SORTS)}; got {show(text)}")
    return text


def _dimensions(
    query: Mapping[str, str], collection: Collection, catalogue: Any
) -> tuple[tuple[str, str], ...]:
    found = []
    for name in sorted(collection.dimensions):
        value = query.get(parameter(name), "")
        if value:
            found.append((name, _value(name, value, collection, catalogue)))
    return tuple(found)


def _value(name: str, value: str, collection: Collection, catalogue: Any = None) -> str:
    allowed = {*collection.dimensions[name], "other"}
    if catalogue is not None:
        allowed.update(catalogue.values(collection.name, collection.version, name))
    if value not in allowed:
        raise ParamsError(f"{name} must be one of {', '.join(sorted(allowed))}; got {show(value)}")
    return value


def _against(vs: str, side: Side, stored: Sequence[str], collection: Collection) -> Side:
    """The other side of a comparison, which shares no report with this one."""
    name, is_dimension, value = vs.partition("=")
    if is_dimension:
        if name not in collection.dimensions:
            known = ", ".join(sorted(collection.dimensions)) or "none"
            raise ParamsError(f"vs: there is no dimension {show(name)}; there is: {known}")
        chosen = dict(side.dimensions)
        if name not in chosen:
            raise ParamsError(f"vs: {show(value)} is part of all: choose a {name} to compare first")
        if chosen[name] == _value(name, value, collection):
            raise ParamsError(f"vs: {show(value)} is what is shown: choose another {name}")
        return Side(side.periods, tuple(sorted((chosen | {name: value}).items())))
    first, dots, last = vs.partition("..")
    query = {"vs": first, "to": last if dots else first}
    first, last = (_period(query, each, collection, "") for each in ("vs", "to"))
    periods = between(stored, *sorted((first, last)))
    if set(periods) & set(side.periods):
        raise ParamsError(f"vs: {vs} is part of what is shown: choose other periods")
    return Side(periods, side.dimensions)


def _lists(state: Any, collection: Collection) -> list[int]:
    """The versions of the list of candidates, oldest first."""
    if collection.kind != "string":
        return []
    return sorted(each.version for each in state.candidate_versions(collection.name))


def _candidates(query: Mapping[str, str], lists: Sequence[int]) -> int | None:
    if not lists:
        return None
    text = query.get("candidates", "").removeprefix("v")
    if not text:
        return lists[-1]
    if text not in map(str, lists):
        known = ", ".join(map(str, lists))
        raise ParamsError(f"candidates must be one of the versions {known}; got {show(text)}")
    return int(text)
