"""The people of the demo: who holds what, on which day.

A browser hijacker appears on the fourth day and spreads faster in one of the two countries. The
seed decides who the people are and what they hold. The noise on their reports has no seed.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

DAYS = 7
COUNTRIES = {"NZ": 0.4, "AU": 0.6}
HIJACKER = "search.hijack-bar.example"
# The share of a country's browsers that is hijacked by each day.
HIJACKED = {
    "NZ": (0.0, 0.0, 0.0, 0.05, 0.10, 0.15, 0.20),
    "AU": (0.0, 0.0, 0.0, 0.01, 0.02, 0.04, 0.06),
}
UNLISTED = "(on no list)"  # stands in the truth for a homepage that only one person has
OTHER_HIJACKERS = (
    "find.toolbar-deals.example",
    "go.quick-searcher.example",
    "start.coupon-bar.example",
)
# How browsers were installed: those that are never hijacked, and those that will be.
CHANNELS = {"website": 0.5, "store": 0.3, "bundle": 0.2}
HIJACKED_CHANNELS = {"website": 0.16, "store": 0.12, "bundle": 0.72}
THEMES = {"light": 0.46, "dark": 0.31, "as the system": 0.19, "high contrast": 0.04}
START_EDGES = (250, 500, 1000, 2000, 4000)  # ms
CHUNK = 1500  # people; what they hold depends on the seed and on the number of their chunk
ALSO = 3  # one person in three also reports theme and start time

# fmt: off
_FIRST = (
    "comet", "coral", "fern", "granite", "harbour", "kiwi", "lantern", "meadow", "opal", "river",
    "southern", "summit", "tui", "wattle",
)
_SECOND = (
    "bank", "books", "cinema", "games", "garden", "mail", "maps", "music", "news", "recipes",
    "sport", "travel", "video", "weather",
)
# fmt: on
_SITES, _DECAY, _UNLISTED_SHARE = 20, 0.87, 0.12


class Person(NamedTuple):
    """One browser and its owner's choices.

    Attributes:
        country: sent in clear, as the collections declare.
        homepage: on the first day.
        hijacked: the first day, counted from 0, with the hijacker's homepage; `DAYS` means never.
        channel: how the browser was installed.
        theme: a category, or None if this person does not report it.
        start: ms, or None if this person does not report it.
    """

    country: str
    homepage: str
    hijacked: int
    channel: str
    theme: str | None
    start: float | None

    def homepage_on(self, day: int) -> str:
        """The homepage on a day."""
        return HIJACKER if day >= self.hijacked else self.homepage


@dataclass(frozen=True, slots=True)
class DemoPopulation:
    """People drawn from a seed; each chunk of them can be drawn on its own.

    >>> crowd = DemoPopulation(2000, seed=1)
    >>> [len(list(crowd.chunk(number))) for number in range(crowd.chunks)]
    [1500, 500]
    >>> crowd.reports >= 2000 * DAYS
    True
    """

    people: int
    seed: int

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.people // CHUNK)

    @property
    def reports(self) -> int:
        """The number of reports that all people send."""
        return self.people + DAYS * (self.people + 2 * -(-self.people // ALSO))

    @classmethod
    def for_reports(cls, reports: int, seed: int) -> DemoPopulation:
        """A population that sends about this number of reports.

        >>> DemoPopulation.for_reports(10**6, seed=1).people
        78947
        """
        return cls(max(ALSO, reports * ALSO // ((ALSO + 2) * DAYS + ALSO)), seed)

    @property
    def sites(self) -> tuple[str, ...]:
        """The homepages that people hold, the most frequent first."""
        return tuple(_dice(self.seed, "sites").sample(_every_site(), _SITES))

    def chunk(self, number: int) -> Iterator[Person]:
        """The people of one chunk; chunks are numbered from 0."""
        size = min(CHUNK, self.people - number * CHUNK)
        return self._draw(f"chunk {number}", size, number * CHUNK)

    def devices(self, count: int) -> Iterator[Person]:
        """People who are in no chunk and report to every collection."""
        return self._draw("devices", count, None)

    def _draw(self, about: str, count: int, first: int | None) -> Iterator[Person]:
        """Draw people; `first` numbers the first one; None: all report to every collection."""
        dice, more_dice = _dice(self.seed, about), _dice(self.seed, f"{about}, channels")
        weights = [_DECAY**rank for rank in range(_SITES)]
        countries = dice.choices([*COUNTRIES], [*COUNTRIES.values()], k=count)
        homepages = dice.choices(self.sites, weights, k=count)
        themes = dice.choices([*THEMES], [*THEMES.values()], k=count)
        for place, country in enumerate(countries):
            alone = dice.random() < _UNLISTED_SHARE
            also = first is None or (first + place) % ALSO == 0
            homepage = (
                f"intranet-{dice.getrandbits(48):012x}.example" if alone else homepages[place]
            )
            hijacked = _hijacked(HIJACKED[country], dice.random())
            shares = HIJACKED_CHANNELS if hijacked < DAYS else CHANNELS
            yield Person(
                country,
                homepage,
                hijacked,
                more_dice.choices([*shares], [*shares.values()])[0],
                themes[place] if also else None,
                round(dice.lognormvariate(6.6, 0.8), 1) if also else None,
            )


def known_sites(seed: int) -> tuple[str, ...]:
    """A short list for a table of two fields: the sites that people visit, and known hijackers.

    >>> len(known_sites(1)), HIJACKER in known_sites(1)
    (24, True)
    """
    return tuple(sorted((*DemoPopulation(1, seed).sites, HIJACKER, *OTHER_HIJACKERS)))


@functools.cache
def candidates() -> tuple[str, ...]:
    """The strings an analyst would look for: known sites and known hijackers, sorted.

    >>> len(candidates()), HIJACKER in candidates()
    (200, True)
    """
    return tuple(sorted((*_every_site(), HIJACKER, *OTHER_HIJACKERS)))


def named(homepage: str) -> str:
    """The name of a homepage in the truth.

    >>> named(HIJACKER), named("intranet-1.example")
    ('search.hijack-bar.example', '(on no list)')
    """
    return homepage if homepage in _listed() else UNLISTED


def pair_named(homepage: str, channel: str) -> str:
    """The name of a homepage and a channel together in the truth.

    >>> pair_named("intranet-1.example", "store")
    '(on no list) × store'
    """
    return f"{named(homepage)} × {channel}"


@functools.cache
def _listed() -> frozenset[str]:
    return frozenset(candidates())


def _every_site() -> list[str]:
    return [f"{first}-{second}.example" for first in _FIRST for second in _SECOND]


def _hijacked(by_day: tuple[float, ...], luck: float) -> int:
    """The first day on which the share exceeds this person's luck.

    >>> [_hijacked((0.0, 0.1, 0.2), luck) for luck in (0.05, 0.15, 0.5)]
    [1, 2, 7]
    """
    return next((day for day, share in enumerate(by_day) if luck < share), DAYS)


def _dice(seed: int, about: str) -> random.Random:
    return random.Random(f"rappor demo {seed} {about}")  # noqa: S311 - people, not noise
