"""Parts that charts share: the panel, percent axes, interval whiskers, wrapped words."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rappor.charts.theme import SCHEMA, Spec, config, whole_chart

PERCENT_LABELS = "format(datum.value * 100, '.3~g') + '\u00a0%'"
FILE_WIDTH = 640
ON_PHONE = "windowSize()[0] <= 720"  # on phones words right of a chart have no room
_PAGE_PADDING = 4


def percent_axis(**more: object) -> Spec:
    """An axis of shares, labelled in percent without repeated ticks."""
    return {"labelExpr": PERCENT_LABELS, "tickCount": 6, **more}


def reports_up() -> Spec:
    """The vertical axis of reports: few ticks, short labels, and room for them."""
    axis = {"labelExpr": "format(datum.value, '~s')", "tickCount": 3, "minExtent": 44}
    return {"field": "reports", "type": "quantitative", "axis": {"title": None, **axis}}


def whiskers(along: str, across: str, colour: str, ends: bool = True, only: str = "") -> list[Spec]:
    """A rule with end ticks from `low` to `high` along one axis, at each value of the other.

    Without `ends`, only a thin rule: the ticks of many rules would touch. `only` is a test of the
    rows that have whiskers.
    """
    keep: Spec = {"transform": [{"filter": only}]} if only else {}
    place: Spec = {"field": across, "type": "nominal", "sort": None}
    low, high = ({"field": end, "type": "quantitative"} for end in ("low", "high"))
    other = "y" if along == "x" else "x"
    orient = "vertical" if along == "x" else "horizontal"
    rule = {
        **keep,
        "mark": {"type": "rule", "strokeWidth": 1.5 if ends else 1, "color": colour},
        "encoding": {other: place, along: low, f"{along}2": {"field": "high"}},
    }
    if not ends:
        return [rule]
    return [rule] + [
        {
            **keep,
            "mark": {
                "type": "tick",
                "orient": orient,
                "size": 8,
                "thickness": 1.5,
                "color": colour,
            },
            "encoding": {other: place, along: end},
        }
        for end in (low, high)
    ]


def wrapped(sentences: Iterable[str], width: int = 100) -> list[str]:
    """Sentences as lines that fit under a title."""
    return [line for sentence in sentences for line in textwrap.wrap(sentence, width)]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, before it is fitted to a file or a page.

    Attributes:
        title: what it shows, in one sentence without its full stop.
        words: further sentences.
        parts: data, layers and height; without width, title and theme.
        height: its pixels in a page, with axes and labels.
        width: pixels of the plot in a file.
    """

    title: str
    words: tuple[str, ...]
    parts: Spec = field(repr=False)
    height: int
    width: int = FILE_WIDTH

    @property
    def sentence(self) -> str:
        """Title and words, which a page writes above the chart."""
        return " ".join([f"{self.title}.", *self.words])

    def in_file(self, theme: str = "light") -> Spec:
        """A specification for a file, with its words above it."""
        parts = {"width": self.width, **self.parts}
        return whole_chart(parts, self.title, wrapped(self.words), theme)

    def in_page(self, theme: str = "light") -> Spec:
        """A specification for a page: as wide as the page, without words."""
        return {
            "$schema": SCHEMA,
            "description": self.sentence,
            "width": "container",
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": _PAGE_PADDING,
            **self.parts,
            "config": {name: part for name, part in config(theme).items() if name != "padding"},
        }


def unless_phone(value: Any, otherwise: Any) -> Spec:
    """A property with another value on narrow pages."""
    return {"expr": f"{ON_PHONE} ? {otherwise} : {value}"}


def both(make: Callable[[str], Spec]) -> dict[str, Any]:
    """The argument of the macro `chart`: the light specification, and how the dark one differs.

    >>> both(lambda theme: {"data": [1, 2], "config": theme})
    {'light': {'data': [1, 2], 'config': 'light'}, 'dark': {'config': 'dark'}}
    """
    light, dark = make("light"), make("dark")
    return {
        "light": light,
        "dark": {name: part for name, part in dark.items() if light.get(name) != part},
    }
