"""Picture: what the store held at one moment, by collection, version, period and dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from rappor.collection import Collection
from rappor.collection.registry import definition_files
from rappor.errors import ParamsError, RapporError

VersionKey = tuple[str, int]


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


class UnreadableStore(NamedTuple):
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
    stored: frozenset[VersionKey] = frozenset()
    slices: Mapping[VersionKey, tuple[Slice, ...]] = field(default_factory=dict)
    counted: Mapping[tuple[str, int | None], tuple[PeriodCount, ...]] = field(default_factory=dict)
    unreadable: tuple[UnreadableStore, ...] = ()

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


def read_folder(folder: Path) -> tuple[list[Collection], list[UnreadableStore]]:
    """The definitions of a folder, and the files that are none."""
    found: list[Collection] = []
    wrong: list[UnreadableStore] = []
    try:
        files = definition_files(folder)
    except ParamsError as error:
        return [], [UnreadableStore(folder.name, str(error))]
    for path in files:
        try:
            found.append(Collection.read(path))
        except (RapporError, OSError) as error:
            wrong.append(UnreadableStore(path.name, str(error).replace(str(path), path.name)))
        except RecursionError:
            wrong.append(UnreadableStore(path.name, "brackets within brackets, without end"))
    return found, wrong
