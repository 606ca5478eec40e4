"""What a page offers to choose from: periods, dimensions, lists, corrections, methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.dashboard.context import Context
from rappor.dashboard.page_query import CORRECTIONS, METHODS, PageQuery, between, parameter
from rappor.dashboard.state.saved import CandidateVersion
from rappor.mechanism.kinds import HASHED


def moved(query: PageQuery, stored: Sequence[str], by: int, page: str = "") -> str:
    """The address of the same number of periods, earlier (-1) or later (1); "" if there are none.

    Args:
        query: the present query.
        stored: all stored periods, oldest first.
        by: how many periods to move.
        page: the page of the collection, such as "/trends".

    >>> weeks = ["2026-W26", "2026-W27", "2026-W28"]
    >>> shown = PageQuery("homepage", 1, "2026-W27", "2026-W27", usual={"to": "2026-W28"})
    >>> moved(shown, weeks, -1, "/trends"), moved(shown, weeks, 2)
    ('/collections/homepage/trends?to=2026-W26&version=1', '')
    """
    shown = between(stored, query.first, query.last)
    if not shown:
        return ""
    places = list(stored)
    first, last = (places.index(shown[end]) + by for end in (0, -1))
    if first < 0 or last >= len(places):
        return ""
    vs = query.vs if "=" in query.vs else ""  # the other periods may be among the new ones
    return query.path(page, first=places[first], last=places[last], vs=vs)


class Dimension(NamedTuple):
    """A dimension to choose from."""

    name: str
    parameter: str
    values: Sequence[str]
    chosen: str


class Choices(NamedTuple):
    """The choices that a page offers.

    Attributes:
        periods: stored periods, newest first.
        dimensions: the dimensions with their stored values.
        lists: versions of the list of candidates, newest first.
        corrections: names by value.
        methods: names by value; empty if there is no choice.
        before: the address one period earlier; empty if there is none.
        after: the address one period later.
    """

    periods: Sequence[str]
    dimensions: Sequence[Dimension]
    lists: Sequence[CandidateVersion]
    corrections: dict[str, str]
    methods: dict[str, str]
    before: str
    after: str


def choices(context: Context, query: PageQuery, periods: Sequence[str], page: str) -> Choices:
    """The choices on a page (such as "/trends"), of these stored periods."""
    collection = context.catalogue.get(query.collection, query.version)
    chosen = dict(query.dimensions)
    named = []
    for name in sorted(collection.dimensions):
        stored = context.catalogue.values(query.collection, query.version, name)
        here = chosen.get(name, "")
        values = list(dict.fromkeys([*stored, here] if here else stored))
        named.append(Dimension(name, parameter(name), values, here))
    is_string = collection.kind == "string"
    is_hashed = collection.kind in HASHED
    lists = context.state.candidate_versions(query.collection) if is_hashed else []
    return Choices(
        list(periods)[::-1],
        named,
        lists,
        CORRECTIONS,
        METHODS if is_string else {},
        moved(query, periods, -1, page),
        moved(query, periods, 1, page),
    )
