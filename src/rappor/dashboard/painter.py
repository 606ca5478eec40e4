"""Painter: pictures of a store, each made from the one before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rappor.collection import Collection
from rappor.dashboard.picture import PeriodCount, Picture, Slice, UnreadableStore, VersionKey
from rappor.store import CellSummary, Definition
from rappor.store.cell_key import dimensions_pairs

_DEFINITIONS = 1024


class _Part(NamedTuple):
    """One version of a collection: its cells, and what was made of them."""

    cells: list[CellSummary]
    slices: tuple[Slice, ...]
    counted: tuple[PeriodCount, ...]


class Painter:
    """Makes pictures; only collections whose cells changed are counted anew."""

    def __init__(self) -> None:
        self._parts: dict[VersionKey, _Part] = {}
        self._parsed = lru_cache(_DEFINITIONS)(Collection.from_toml)
        self._pairs = lru_cache(_DEFINITIONS)(dimensions_pairs)

    def paint(
        self,
        definitions: Iterable[Definition],
        cells: Sequence[CellSummary],
        drafts: Iterable[Collection] = (),
        unreadable: Iterable[UnreadableStore] = (),
    ) -> Picture:
        """The picture of a store and of a folder of collections; the store's definitions go first.

        Args:
            definitions: the store's.
            cells: the store's, by key.
            drafts: those of the folder.
            unreadable: files of the folder that are no definition.
        """
        found: dict[str, dict[int, Collection]] = defaultdict(dict)
        for each in drafts:
            found[each.name][each.version] = each
        stored = set()
        for definition in definitions:
            collection = self._parsed(definition.toml)
            found[collection.name][collection.version] = collection
            stored.add((collection.name, collection.version))
        self._parts = {
            key: self._part(key, list(group)) for key, group in groupby(cells, key=_version_key)
        }
        return Picture(
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
                Slice(it.cell.period, self._pairs(it.cell.dimensions), it.reports) for it in cells
            )
        )
        return _Part(cells, slices, _sums((it.period, it.reports) for it in slices))


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
            counted[0] if len(counted) == 1 else _sums(each for part in counted for each in part)
        )
    return found
