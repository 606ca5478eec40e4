"""Catalogue: what may be shown of a store, read once for each change of it, shared by all pages.

It is the only place where the dashboard reads the store, and it reads released counts: those of
periods that still accept reports go up in steps (`rappor.store.released`).

The store is opened for each reading and closed after it: a dashboard that kept it open would keep
a restarted collector from inspecting its log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rappor.checks import show
from rappor.collection import Collection
from rappor.dashboard.changes import Stamp, folder_stamp, store_stamp
from rappor.dashboard.fresh import BackgroundCache
from rappor.dashboard.painter import Painter
from rappor.dashboard.picture import (
    Entry,
    PeriodCount,
    Picture,
    UnreadableStore,
    VersionKey,
    read_folder,
)
from rappor.errors import ParamsError, StoreError
from rappor.store import AuditEntry, CellCache, Store, StoredCounts, open_store
from rappor.store.open import FILE_NAME
from rappor.store.released import ReleasedCounts

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts

_LOG = logging.getLogger("rappor.dashboard")


def utc_today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


class Catalogue:
    """Cached reads of a data folder. Thread-safe.

    A page is not kept waiting by a large store: while a newer picture is being made, the last one
    is shown.
    """

    def __init__(
        self,
        data: Path,
        collections: Path | None = None,
        today: Callable[[], date] = utc_today,
        stored: Callable[[Set[VersionKey]], None] = lambda _: None,
    ) -> None:
        """Look at a data folder; nothing is read before it is asked for.

        Args:
            data: the folder.
            collections: the folder of collection files, for drafts.
            today: the day that periods close by.
            stored: told which versions of collections have counts, whenever that changes: what was
                made of the others goes too.
        """
        self.data, self.folder, self.today = data, collections, today
        self._stored, self._last_stored = stored, frozenset[VersionKey]()
        self._file = data / FILE_NAME
        self._painter, self._seen = Painter(), CellCache()
        self._released = ReleasedCounts(data)
        self._pictures = BackgroundCache(self._stamp, self._look)
        self._audit: tuple[Stamp, list[AuditEntry]] | None = None

    # What the pages ask.

    def collections(self) -> list[Entry]:
        """The newest version of each collection, by name."""
        picture, today = self.picture(), self.today()
        return [
            picture.entry(versions[max(versions)], today)
            for versions in picture.collections.values()
        ]

    def entry(self, name: str) -> Entry:
        """The newest version of one collection, or ParamsError."""
        return self.picture().entry(self.get(name), self.today())

    def get(self, name: str, version: int | None = None) -> Collection:
        """A collection, the newest version where none is named, or ParamsError."""
        versions = self.picture().collections.get(name)
        if not versions:
            raise ParamsError(f"there is no collection {show(name)}")
        if version is None:
            return versions[max(versions)]
        if version not in versions:
            known = ", ".join(map(str, versions))
            raise ParamsError(f"collection {name} has no version {show(version)}, only {known}")
        return versions[version]

    def versions(self, name: str) -> list[int]:
        """The versions of a collection, oldest first; ParamsError where there is none."""
        self.get(name)
        return list(self.picture().collections[name])

    def periods(self, name: str, version: int | None = None) -> list[PeriodCount]:
        """Stored periods of a version (of all, where None), oldest first."""
        return list(self.picture().periods(name, version))

    def values(self, name: str, version: int, dimension: str) -> list[str]:
        """The values of a dimension that were stored."""
        found = {
            value
            for cell in self.picture().slices.get((name, version), ())
            for key, value in cell.pairs
            if key == dimension
        }
        return sorted(found)

    def reports(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None = None,
        dimensions: Mapping[str, str] | None = None,
    ) -> int:
        """How many reports were counted in these periods and dimensions."""
        wanted = None if periods is None else set(periods)
        asked = set((dimensions or {}).items())
        return sum(
            cell.reports
            for cell in self.picture().slices.get((name, version), ())
            if (wanted is None or cell.period in wanted) and asked <= set(cell.pairs)
        )

    def counts(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None = None,
        dimensions: Mapping[str, str] | None = None,
    ) -> list[Counts]:
        """One Counts for each (p, q) of these periods and dimensions; empty without reports."""
        from rappor.aggregate.stored import sum_cells

        return sum_cells(self._cells(name, version, periods, dimensions), self.get(name, version))

    def counts_by_period(
        self,
        name: str,
        version: int,
        periods: Iterable[str],
        dimensions: Mapping[str, str] | None = None,
    ) -> dict[str, list[Counts]]:
        """What `counts` says of each period by itself, in one reading; those without are absent."""
        from rappor.aggregate.stored import BY_PERIOD, split, sum_cells

        collection = self.get(name, version)
        cells = split(self._cells(name, version, periods, dimensions), BY_PERIOD)
        return {period: sum_cells(each, collection) for period, each in cells.items()}

    def _cells(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None,
        dimensions: Mapping[str, str] | None,
    ) -> list[StoredCounts]:
        asked = set((dimensions or {}).items())
        with self._opened() as store:
            cells = self._released.counts(store, self.today(), name, version, periods)
        return [cell for cell in cells if asked <= set(cell.cell.pairs)]

    def unreadable(self) -> tuple[UnreadableStore, ...]:
        """Files in the folder of collections that are no definition."""
        return self.picture().unreadable

    def audit_log(self) -> list[AuditEntry]:
        """The store's audit log, oldest first."""
        stamp = self._stamp()
        if self._audit is None or self._audit[0] != stamp:
            if not self.has_store:
                return []
            with self._opened() as store:
                self._audit = (stamp, store.audit_log())
        return self._audit[1]

    @property
    def has_store(self) -> bool:
        """Whether anything was ever collected here."""
        return self._file.is_file()

    @property
    def stamp(self) -> Stamp:
        """Another one after every change of the store."""
        return store_stamp(self._file)

    # How it stays fresh.

    def picture(self) -> Picture:
        """What the store holds: the present state, or that of a moment ago while it is read.

        Raises:
            StoreError: it cannot be read.
        """
        return self._pictures.get()

    def prepare(self) -> None:
        """Read what there is in the background, before a page asks for it."""
        self._pictures.begin()

    def _look(self) -> Picture:
        try:
            drafts, wrong = ([], []) if self.folder is None else read_folder(self.folder)
            if not self.has_store:
                return self._painter.paint((), (), drafts, wrong)
            with self._opened() as store:
                definitions = store.definitions()
                live = store.cells(self._seen)
                cells = self._released.cells(store, live, self.today())
        except OSError as error:
            raise StoreError(f"{self.data}: cannot be read ({error.strerror})") from error
        self._tell({each.cell[:2] for each in live})
        return self._painter.paint(definitions, cells, drafts, wrong)

    def _tell(self, stored: Set[VersionKey]) -> None:
        if stored != self._last_stored:
            try:
                self._stored(stored)
                self._last_stored = frozenset(stored)
            except StoreError as error:  # no room: it is tried again with the next change
                _LOG.warning("results of what is gone could not be deleted: %s", error)

    def _opened(self) -> closing[Store]:
        return closing(open_store(self.data, read_only=True))

    def _stamp(self) -> Stamp:
        day = ((self.today().toordinal(), 0, 0),)  # periods close by the calendar alone
        return self.stamp + day + (() if self.folder is None else folder_stamp(self.folder))
