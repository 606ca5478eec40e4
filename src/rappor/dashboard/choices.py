"""What a visitor can choose on a page of a collection: periods, dimensions, ways of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.dashboard.context import Desk
from rappor.dashboard.page_query import CORRECTIONS, METHODS, View, parameter
from rappor.dashboard.periods import moved
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


def choices(desk: Desk, view: View, periods: Sequence[str], page: str) -> Choices:
    """What can be chosen for a view on a page ("/trends"), of these stored periods."""
    collection = desk.catalogue.get(view.collection, view.version)
    chosen = dict(view.dimensions)
    named = [
        Dimension(
            name,
            parameter(name),
            desk.catalogue.values(view.collection, view.version, name),
            chosen.get(name, ""),
        )
        for name in sorted(collection.dimensions)
    ]
    is_string = collection.kind == "string"
    lists = desk.state.candidate_versions(view.collection) if is_string else []
    return Choices(
        list(periods)[::-1],
        named,
        lists,
        CORRECTIONS,
        METHODS if is_string else {},
        moved(view, periods, -1, page),
        moved(view, periods, 1, page),
    )
