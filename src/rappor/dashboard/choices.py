"""What a visitor can choose on a page of a collection: periods, dimensions, ways of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.dashboard.context import Context
from rappor.dashboard.page_query import CORRECTIONS, METHODS, PageQuery, moved, parameter
from rappor.dashboard.state.records import CandidateVersion


class Dimension(NamedTuple):
    """A dimension to choose from."""

    name: str
    parameter: str
    values: Sequence[str]
    chosen: str


class Choices(NamedTuple):
    """Everything there is to choose.

    Attributes:
        periods: stored ones, newest first.
        dimensions: with their stored values.
        lists: versions of the list of candidates, newest first.
        corrections: names by value.
        methods: names by value; empty where there is one.
        before: the address of as many periods, one earlier; empty where there are none.
        after: the same, one later.
    """

    periods: Sequence[str]
    dimensions: Sequence[Dimension]
    lists: Sequence[CandidateVersion]
    corrections: dict[str, str]
    methods: dict[str, str]
    before: str
    after: str


def choices(context: Context, query: PageQuery, periods: Sequence[str], page: str) -> Choices:
    """What can be chosen for a view on a page ("/trends"), of these stored periods."""
    collection = context.catalogue.get(query.collection, query.version)
    chosen = dict(query.dimensions)
    named = [
        Dimension(
            name,
            parameter(name),
            context.catalogue.values(query.collection, query.version, name),
            chosen.get(name, ""),
        )
        for name in sorted(collection.dimensions)
    ]
    is_string = collection.kind == "string"
    lists = context.state.candidate_versions(query.collection) if is_string else []
    return Choices(
        list(periods)[::-1],
        named,
        lists,
        CORRECTIONS,
        METHODS if is_string else {},
        moved(query, periods, -1, page),
        moved(query, periods, 1, page),
    )
