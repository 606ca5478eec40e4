"""Picture: what the store held at one moment, by collection, version, period and dimension."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rappor.collection import Collection
from rappor.collection.registry import definition_files
from rappor.errors import ParamsError, RapporError
from rappor.store import CellSummary, Definition

_Key = tuple[str, int]


class Standing(StrEnum):
    """How far a collection is."""

    DRAFT = "Draft"
    REVIEW = "In review"
    ACTIVE = "Active"
    EXPIRED = "Expired"


class PeriodCount(NamedTuple):
    """A period and how many reports were counted in it."""

    period: str
    reports: int


class Slice(NamedTuple):
    """Reports of one cell: a period and one combination of dimensions."""

    period: str
    pairs: tuple[tuple[str, str], ...]
    reports: int


class Unreadable(NamedTuple):
    """A file in the folder of collections that is none, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A collection as lists show it: its newest version.

    Attributes:
        collection: the definition.
        standing: draft, in review, active or expired.
        periods: stored periods of all its versions together, oldest first.
        reports: reports in the newest stored period.
    """

    collection: Collection
    standing: Standing
    periods: tuple[PeriodCount, ...] = ()

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.collection.name

    @property
    def reports(self) -> int:
        """Reports in the newest stored period."""
        return self.periods[-1].reports if self.periods else 0


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything but the counts themselves.

    Attributes:
        collections: definitions by name and version, stored ones and drafts.
        stored: the keys of those that are in the store.
        slices: cells by collection and version, oldest period first.
        counted: stored periods by collection and version, and by collection alone (None).
        unreadable: files that are no definition.
    """

    collections: Mapping[str, Mapping[int, Collection]] = field(default_factory=dict)
    stored: frozenset[_Key] = frozenset()
    slices: Mapping[_Key, tuple[Slice, ...]] = field(default_factory=dict)
    counted: Mapping[tuple[str, int | None], tuple[PeriodCount, ...]] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()

    def periods(self, name: str, version: int | None) -> tuple[PeriodCount, ...]:
        """Stored periods with their reports, oldest first; of all versions where it is None."""
        return self.counted.get((name, version), ())

    def entry(self, collection: Collection, today: date) -> Entry:
        """A collection with its standing and periods."""
        if collection.expires is not None and collection.expires <= today:
            standing = Standing.EXPIRED
        elif (collection.name, collection.version) in self.stored:
            standing = Standing.ACTIVE
        else:
            standing = Standing.REVIEW if collection.reviews else Standing.DRAFT
        return Entry(collection, standing, self.periods(collection.name, None))


def picture_of(
    definitions: Iterable[Definition],
    cells: Iterable[CellSummary],
    drafts: Iterable[Collection] = (),
    unreadable: Iterable[Unreadable] = (),
) -> Picture:
    """The picture of a store and of a folder of collections; the store's definitions go first."""
    found: dict[str, dict[int, Collection]] = defaultdict(dict)
    for each in drafts:
        found[each.name][each.version] = each
    stored = set()
    for definition in definitions:
        collection = Collection.from_toml(definition.toml)
        found[collection.name][collection.version] = collection
        stored.add((collection.name, collection.version))
    slices: dict[_Key, list[Slice]] = defaultdict(list)
    pairs: dict[str, tuple[tuple[str, str], ...]] = {}
    for cell in cells:
        key = cell.cell
        known = pairs.get(key.dimensions)
        if known is None:
            known = pairs[key.dimensions] = key.pairs
        slices[key.collection, key.version].append(Slice(key.period, known, cell.reports))
    return Picture(
        collections={name: dict(sorted(found[name].items())) for name in sorted(found)},
        stored=frozenset(stored),
        slices={key: tuple(sorted(each)) for key, each in slices.items()},
        counted=_counted(slices),
        unreadable=tuple(unreadable),
    )


def _counted(
    slices: Mapping[_Key, Iterable[Slice]],
) -> dict[tuple[str, int | None], tuple[PeriodCount, ...]]:
    """Reports by period, of each version and of all versions together."""
    sums: dict[tuple[str, int | None], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (name, version), cells in slices.items():
        one, every = sums[name, version], sums[name, None]
        for cell in cells:
            one[cell.period] += cell.reports
            every[cell.period] += cell.reports
    return {
        key: tuple(PeriodCount(period, found[period]) for period in sorted(found))
        for key, found in sums.items()
    }


def read_folder(folder: Path) -> tuple[list[Collection], list[Unreadable]]:
    """The definitions of a folder, and the files that are none."""
    found: list[Collection] = []
    wrong: list[Unreadable] = []
    try:
        files = definition_files(folder)
    except ParamsError as error:
        return [], [Unreadable(folder.name, str(error))]
    for path in files:
        try:
            found.append(Collection.read(path))
        except (RapporError, OSError) as error:
            wrong.append(Unreadable(path.name, str(error).replace(str(path), path.name)))
    return found, wrong
