"""Catalogue: what the dashboard may show of a store, read once after each change.

The dashboard reads the store only here, and only released counts: those of periods that still
accept reports go up in steps (`rappor.store.released`).

The catalogue opens a store in a file for each read and closes it again: an open store would keep a
restarted collector from checking its log. The connection to a database stays open.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Set
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rappor.checks import show
from rappor.collection import Collection
from rappor.dashboard.background_cache import BackgroundCache, Stamp
from rappor.dashboard.snapshot import (
    Dimensions,
    Entry,
    PeriodCount,
    Snapshot,
    SnapshotBuilder,
    UnreadableDefinition,
    VersionKey,
    read_folder,
)
from rappor.errors import ParamsError, StoreError
from rappor.store import AuditEntry, CellCache, Store, StoredCounts, open_store
from rappor.store.open import FILE_NAME, has_store, open_database, url_of

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.store.postgres.store import PostgresStore

_LOG = logging.getLogger("rappor.dashboard")


def utc_today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


class Catalogue:
    """Cached reads of a data folder. Thread-safe.

    Pages do not wait for a large store: they show the last snapshot while a newer one is made.
    """

    def __init__(
        self,
        data: Path,
        collections: Path | None = None,
        today: Callable[[], date] = utc_today,
        stored: Callable[[Set[VersionKey]], None] = lambda _: None,
    ) -> None:
        """Set up the catalogue of a data folder; the first page reads it.

        Args:
            data: the folder.
            collections: the folder of collection files, for drafts.
            today: the present day, which decides which periods are closed.
            stored: called with the versions that have counts when they change, so that results of
                other versions can be deleted.
        """
        self.data, self.folder, self.today = data, collections, today
        self._stored, self._last_stored = stored, frozenset[VersionKey]()
        self._file = data / FILE_NAME
        self._connecting = threading.Lock()
        self._connected: PostgresStore | None = None
        self._builder, self._seen = SnapshotBuilder(), CellCache()
        self._snapshots = BackgroundCache(self._stamp, self._look)
        self._audit: tuple[Stamp, list[AuditEntry]] | None = None

    # Questions of the pages.

    def collections(self) -> list[Entry]:
        """The newest version of each collection, by name."""
        snapshot, today = self.snapshot(), self.today()
        return [
            snapshot.entry(versions[max(versions)], today)
            for versions in snapshot.collections.values()
        ]

    def entry(self, name: str) -> Entry:
        """The newest version of one collection, or ParamsError."""
        return self.snapshot().entry(self.get(name), self.today())

    def get(self, name: str, version: int | None = None) -> Collection:
        """A collection, by default its newest version; ParamsError if there is none."""
        versions = self.snapshot().collections.get(name)
        if not versions:
            raise ParamsError(f"there is no collection {show(name)}")
        if version is None:
            return versions[max(versions)]
        if version not in versions:
            known = ", ".join(map(str, versions))
            raise ParamsError(f"collection {name} has no version {show(version)}, only {known}")
        return versions[version]

    def versions(self, name: str) -> list[int]:
        """The versions of a collection, oldest first; ParamsError if there is none."""
        self.get(name)
        return list(self.snapshot().collections[name])

    def periods(self, name: str, version: int | None = None) -> list[PeriodCount]:
        """Stored periods of a version (None: of all versions), oldest first."""
        return list(self.snapshot().periods(name, version))

    def values(self, name: str, version: int, dimension: str) -> list[str]:
        """The values of a dimension that were stored."""
        found = {
            value
            for cell in self.snapshot().slices.get((name, version), ())
            for key, value in cell.dimensions
            if key == dimension
        }
        return sorted(found)

    def reports(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None = None,
        dimensions: Dimensions = (),
    ) -> int:
        """How many reports were counted in these periods and dimensions."""
        wanted = None if periods is None else set(periods)
        asked = set(dimensions)
        return sum(
            cell.reports
            for cell in self.snapshot().slices.get((name, version), ())
            if (wanted is None or cell.period in wanted) and asked <= set(cell.dimensions)
        )

    def counts(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None = None,
        dimensions: Dimensions = (),
    ) -> list[Counts]:
        """One Counts for each (p, q) of these periods and dimensions; empty without reports."""
        from rappor.aggregate.stored_counts import sum_cells

        return sum_cells(self._cells(name, version, periods, dimensions), self.get(name, version))

    def counts_by_period(
        self,
        name: str,
        version: int,
        periods: Iterable[str],
        dimensions: Dimensions = (),
    ) -> dict[str, list[Counts]]:
        """`counts` for each period, in one read; periods without reports are absent."""
        from rappor.aggregate.stored_counts import BY_PERIOD, split, sum_cells

        collection = self.get(name, version)
        cells = split(self._cells(name, version, periods, dimensions), BY_PERIOD)
        return {period: sum_cells(each, collection) for period, each in cells.items()}

    def _cells(
        self,
        name: str,
        version: int,
        periods: Iterable[str] | None,
        dimensions: Dimensions,
    ) -> list[StoredCounts]:
        asked = set(dimensions)
        with self._opened() as store:
            cells = store.released.counts(store, self.today(), name, version, periods)
        return [cell for cell in cells if asked <= set(cell.cell.pairs)]

    def unreadable(self) -> tuple[UnreadableDefinition, ...]:
        """Files in the folder of collections that cannot be read as definitions."""
        return self.snapshot().unreadable

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
        """Whether the data folder has a store."""
        return has_store(self.data)

    @property
    def stamp(self) -> Stamp:
        """The stamp of the store; it differs after every change."""
        database = self._database()
        return store_stamp(self._file) if database is None else (database.stamp(),)

    # Reading the store.

    def snapshot(self) -> Snapshot:
        """What the store holds now, or held a moment ago while it is being read.

        Raises:
            StoreError: it cannot be read.
        """
        return self._snapshots.get()

    def prepare(self) -> None:
        """Read the store in the background, before the first page asks for it."""
        self._snapshots.begin()

    def _look(self) -> Snapshot:
        try:
            drafts, wrong = ([], []) if self.folder is None else read_folder(self.folder)
            if not self.has_store:
                return self._builder.build((), (), drafts, wrong)
            with self._opened() as store:
                definitions = store.definitions()
                live = store.cells(self._seen)
                cells = store.released.cells(store, live, self.today())
        except OSError as error:
            raise StoreError(f"{self.data}: cannot be read ({error.strerror})") from error
        self._tell({cell.cell[:2] for cell in live})
        return self._builder.build(definitions, cells, drafts, wrong)

    def _tell(self, stored: Set[VersionKey]) -> None:
        if stored != self._last_stored:
            try:
                self._stored(stored)
                self._last_stored = frozenset(stored)
            except StoreError as error:  # no room on the disk: the next change tries again
                _LOG.warning("results of deleted versions could not be deleted: %s", error)

    def store_bytes(self) -> int:
        """The space that the store takes."""
        if not self.has_store:
            return 0
        with self._opened() as store:
            return store.size().used

    def _opened(self) -> AbstractContextManager[Store]:
        database = self._database()
        if database is not None:
            return nullcontext(database)
        return closing(open_store(self.data, read_only=True))

    def _database(self) -> PostgresStore | None:
        """The store if it is a database: its connection stays open. None if it is a file."""
        url = url_of(self.data)
        if url is None:
            return None
        with self._connecting:
            if self._connected is None:
                self._connected = open_database(url, read_only=True)
            return self._connected

    def _stamp(self) -> Stamp:
        day = (
            (self.today().toordinal(), 0, 0),
        )  # a new day closes periods without a change of the store
        return self.stamp + day + (() if self.folder is None else folder_stamp(self.folder))


def stamp_of(paths: Iterable[Path]) -> Stamp:
    """Inode, size and time of each file; None for a missing file.

    A store's log grows with each commit and is emptied when it is merged into the file, so file
    and log together differ after every commit. A restored store has another inode.
    """
    return tuple(_look(path) for path in paths)


def store_stamp(file: Path) -> Stamp:
    """The stamp of a store: its file and its log."""
    return stamp_of((file, file.with_name(f"{file.name}-wal")))


def folder_stamp(folder: Path) -> Stamp:
    """The stamp of the *.toml files in a folder; empty if there is none."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError:
        return ()
    return stamp_of(files)


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
