"""Snapshot: what the store held at one moment, by collection, version, period and dimension."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rappor.collection import Collection
from rappor.collection.registry import definition_files
from rappor.errors import ParamsError, RapporError
from rappor.store import CellSummary, Definition
from rappor.store.cell_key import dimensions_pairs

VersionKey = tuple[str, int]
Dimensions = tuple[tuple[str, str], ...]  # (name, value) pairs sorted by name, in all of rappor
_DEFINITIONS = 1024


class Standing(StrEnum):
    """The status of a collection."""

    DRAFT = "Draft"
    REVIEW = "In review"
    ACTIVE = "Active"
    EXPIRED = "Expired"


class PeriodCount(NamedTuple):
    """A period and the number of its reports."""

    period: str
    reports: int


class Slice(NamedTuple):
    """Reports of one cell: a period and one combination of dimensions."""

    period: str
    dimensions: Dimensions
    reports: int


class UnreadableDefinition(NamedTuple):
    """A file in the folder of collections that cannot be read, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest version of a collection, as lists show it.

    Attributes:
        collection: the definition.
        standing: draft, in review, active or expired.
        periods: stored periods of all its versions together, oldest first.
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
class Snapshot:
    """Definitions and numbers of reports; everything but the counts.

    Attributes:
        collections: definitions by name and version, stored ones and drafts.
        stored: names and versions that are in the store.
        slices: cells by collection and version, oldest period first.
        counted: stored periods by collection and version, and by collection alone (None).
        unreadable: files that cannot be read as definitions.
    """

    collections: Mapping[str, Mapping[int, Collection]] = field(default_factory=dict)
    stored: frozenset[VersionKey] = frozenset()
    slices: Mapping[VersionKey, tuple[Slice, ...]] = field(default_factory=dict)
    counted: Mapping[tuple[str, int | None], tuple[PeriodCount, ...]] = field(default_factory=dict)
    unreadable: tuple[UnreadableDefinition, ...] = ()

    def periods(self, name: str, version: int | None) -> tuple[PeriodCount, ...]:
        """Stored periods with their reports, oldest first; None means all versions."""
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


def read_folder(folder: Path) -> tuple[list[Collection], list[UnreadableDefinition]]:
    """The definitions of a folder, and the files that cannot be read."""
    found: list[Collection] = []
    wrong: list[UnreadableDefinition] = []
    try:
        files = definition_files(folder)
    except ParamsError as error:
        return [], [UnreadableDefinition(folder.name, str(error))]
    for path in files:
        try:
            found.append(Collection.read(path))
        except (RapporError, OSError) as error:
            wrong.append(UnreadableDefinition(path.name, str(error).replace(str(path), path.name)))
        except RecursionError:
            wrong.append(UnreadableDefinition(path.name, "too many brackets within brackets"))
    return found, wrong


class _Part(NamedTuple):
    """One version of a collection: its cells, and the sums of their reports."""

    cells: list[CellSummary]
    slices: tuple[Slice, ...]
    counted: tuple[PeriodCount, ...]


class SnapshotBuilder:
    """Builds snapshots; counts only the collections whose cells changed."""

    def __init__(self) -> None:
        self._parts: dict[VersionKey, _Part] = {}
        self._parsed = lru_cache(_DEFINITIONS)(Collection.from_toml)
        self._pairs = lru_cache(_DEFINITIONS)(dimensions_pairs)

    def build(
        self,
        definitions: Iterable[Definition],
        cells: Sequence[CellSummary],
        drafts: Iterable[Collection] = (),
        unreadable: Iterable[UnreadableDefinition] = (),
    ) -> Snapshot:
        """Build the snapshot of a store and a folder of collections.

        The store's definitions take precedence.

        Args:
            definitions: from the store.
            cells: from the store, sorted by key.
            drafts: from the folder of collections.
            unreadable: files of the folder that cannot be read.
        """
        found: dict[str, dict[int, Collection]] = defaultdict(dict)
        for draft in drafts:
            found[draft.name][draft.version] = draft
        stored = set()
        for definition in definitions:
            collection = self._parsed(definition.toml)
            found[collection.name][collection.version] = collection
            stored.add((collection.name, collection.version))
        self._parts = {
            key: self._part(key, list(group)) for key, group in groupby(cells, key=_version_key)
        }
        return Snapshot(
            collections={name: dict(sorted(found[name].items())) for name in sorted(found)},
            stored=frozenset(stored),
            slices={key: part.slices for key, part in self._parts.items()},
            counted=_counted(self._parts),
            unreadable=tuple(unreadable),
        )

    def _part(self, key: VersionKey, cells: list[CellSummary]) -> _Part:
        known = self._parts.get(key)
        if known is not None and known.cells == cells:
            return known
        slices = tuple(
            sorted(
                Slice(cell.cell.period, self._pairs(cell.cell.dimensions), cell.reports)
                for cell in cells
            )
        )
        return _Part(cells, slices, _sums((piece.period, piece.reports) for piece in slices))


def _version_key(cell: CellSummary) -> VersionKey:
    return cell.cell[:2]


def _sums(periods: Iterable[tuple[str, int]]) -> tuple[PeriodCount, ...]:
    """Reports by period, oldest first."""
    found: Counter[str] = Counter()
    for period, reports in periods:
        found[period] += reports
    return tuple(PeriodCount(period, found[period]) for period in sorted(found))


def _counted(
    parts: Mapping[VersionKey, _Part],
) -> dict[tuple[str, int | None], tuple[PeriodCount, ...]]:
    """Reports by period, of each version and, under None, of all versions together."""
    versions: dict[str, list[tuple[PeriodCount, ...]]] = defaultdict(list)
    found: dict[tuple[str, int | None], tuple[PeriodCount, ...]] = {}
    for (name, version), part in parts.items():
        found[name, version] = part.counted
        versions[name].append(part.counted)
    for name, counted in versions.items():
        found[name, None] = (
            counted[0] if len(counted) == 1 else _sums(count for part in counted for count in part)
        )
    return found
