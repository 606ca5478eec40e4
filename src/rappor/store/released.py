"""Released counts: what pages may show of periods that still accept reports.

Exact counts before and after one report differ by that report: its cohort and all its bits. So the
counts of an open period are released in steps. A snapshot of the whole cell is written to
`released.sqlite` next to the store. Pages show the snapshot and nothing else of the cell. It is
replaced only when the store has at least STEP more reports of the cell. So two released states of a
cell, or of a sum of cells, are equal or at least STEP reports apart. When a period is closed, its
exact counts are shown.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Protocol

import numpy as np

from rappor.collection import days_of
from rappor.errors import ParamsError, StoreBusy, StoreError, StoreFull, StoreRefused
from rappor.store.cell_key import CellKey, cell_id
from rappor.store.checksums import checksum, typed
from rappor.store.contract import CellSummary, Store, StoredCounts
from rappor.store.sqlite import schema_upgrade
from rappor.store.sqlite.connection import BUSY_MS, roll_back, translating
from rappor.store.sqlite.schema_upgrade import Migration
from rappor.wire.protocol import ACCEPTANCE_DAYS

STEP = 50  # reports between two releases of a cell
FILE_NAME = "released.sqlite"
APPLICATION_ID = 0x52505253  # "RPRS"
_GRACE_DAYS = 1  # after the last day of acceptance: unfinished commits, and clocks that differ
_FORGET_DAYS = 2  # after that, the snapshot is deleted
_WORD = np.dtype("<u8")
_LOG = logging.getLogger("rappor.store")

_MIGRATIONS: tuple[Migration, ...] = (
    (  # 1: one snapshot for each cell; `id` is a hash of the key
        "CREATE TABLE released ("
        " id INTEGER PRIMARY KEY, collection TEXT NOT NULL, version INTEGER NOT NULL,"
        " period TEXT NOT NULL, dimensions TEXT NOT NULL, params_digest TEXT NOT NULL,"
        " k INTEGER NOT NULL, m INTEGER NOT NULL, reports INTEGER NOT NULL, data BLOB NOT NULL,"
        " checksum BLOB NOT NULL)",
    ),
)


def is_closed(period: str, today: date) -> bool:
    """Whether a period accepts no more reports: from two days after its last day of acceptance.

    >>> [is_closed("2026-11-01", date(2026, 11, day)) for day in (15, 16, 17)]
    [False, False, True]
    >>> is_closed("2026-W44", date(2026, 11, 16)), is_closed("2026-W44", date(2026, 11, 17))
    (False, True)
    """
    try:
        last = days_of(period)[1]
        return last + timedelta(days=ACCEPTANCE_DAYS + _GRACE_DAYS) < today
    except (ParamsError, OverflowError):
        return False


class Snapshots(Protocol):
    """Where the released states of cells are saved."""

    def reports(self) -> dict[CellKey, int]:
        """The number of reports in each snapshot."""
        ...

    def update(
        self, store: Store, due: Sequence[CellKey], gone: Iterable[CellKey]
    ) -> dict[CellKey, int]:
        """Delete snapshots, replace those that are still due, and return `reports`."""
        ...

    def read(self, collection: str, version: int, periods: set[str]) -> list[StoredCounts]:
        """The snapshots of some periods."""
        ...

    def forget(self, gone: Iterable[CellKey]) -> None:
        """Delete snapshots."""
        ...


class ReleasedCounts:
    """The released counts of one store. Any number of processes may share them.

    If the disk is full, the counts released before are shown.

    Args:
        place: the data folder, which has a file for them; or another place for snapshots.
    """

    def __init__(self, place: Path | Snapshots) -> None:
        """Open nothing yet."""
        self._saved: Snapshots = FileSnapshots(place) if isinstance(place, Path) else place

    def cells(self, store: Store, live: Sequence[CellSummary], today: date) -> list[CellSummary]:
        """Release what is due, then return all cells as they may be shown, by key.

        A cell of an open period has the number of reports of its snapshot. Without a snapshot it is
        left out.

        Args:
            store: the store with the counts.
            live: `store.cells()`.
            today: the day, which decides which periods are closed.
        """
        closed = {
            period: is_closed(period, today) for period in {cell.cell.period for cell in live}
        }
        opened = {cell.cell: cell for cell in live if not closed[cell.cell.period]}
        released = self._saved.reports()
        due = [key for key, cell in opened.items() if cell.reports - released.get(key, 0) >= STEP]
        old = today - timedelta(days=_FORGET_DAYS)
        gone = set(released) - {cell.cell for cell in live}
        gone |= {key for key in released if is_closed(key.period, old)}
        if due or gone:
            try:
                released = self._saved.update(store, due, gone)
            except (StoreFull, StoreBusy, StoreRefused) as error:
                _LOG.warning("nothing was released: %s", error)
        shown = []
        for cell in live:
            if cell.cell not in opened:
                shown.append(cell)
            elif cell.cell in released:
                shown.append(cell._replace(reports=released[cell.cell], kept=0))
        return shown

    def counts(
        self,
        store: Store,
        today: date,
        collection: str,
        version: int,
        periods: Iterable[str] | None = None,
    ) -> list[StoredCounts]:
        """The counts of all matching cells as they may be shown; releases nothing new."""
        if periods is None:
            periods = {cell.cell.period for cell in store.cells() if cell.cell[0] == collection}
        wanted = set(periods)
        closed = {period for period in wanted if is_closed(period, today)}
        exact = store.counts(collection, version, periods=sorted(closed)) if closed else []
        return sorted([*exact, *self._saved.read(collection, version, wanted - closed)], key=_key)

    def as_shown(
        self, store: Store, today: date, collection: str, version: int
    ) -> tuple[list[StoredCounts], dict[CellKey, int]]:
        """What pages show of a version from their next look on; releases and writes nothing.

        Commands read this, so that they give the numbers of the pages.

        Returns:
            The counts by cell, and how many stored reports of which cells they leave out.
        """
        released = self._saved.reports()
        exact: list[CellKey] = []
        waiting: dict[CellKey, int] = {}
        for cell in store.cells():
            key = cell.cell
            if key[:2] != (collection, version):
                continue
            more = cell.reports - released.get(key, 0)
            if is_closed(key.period, today) or more >= STEP:
                exact.append(key)
            else:
                waiting[key] = max(more, 0)
        periods = {key.period for key in waiting}
        snapshots = self._saved.read(collection, version, periods)
        shown = [counts for counts in snapshots if counts.cell in waiting]
        left_out = {key: more for key, more in waiting.items() if more}
        return sorted([*store.counts_of(exact), *shown], key=_key), left_out

    def forget(self, live: Iterable[CellKey]) -> None:
        """Delete the snapshots of all other cells: retention has removed those."""
        gone = set(self._saved.reports()) - set(live)
        if gone:
            self._saved.forget(gone)


class FileSnapshots:
    """Snapshots in a file of a data folder, which is opened for each use.

    Args:
        folder: the data folder.
    """

    def __init__(self, folder: Path) -> None:
        """Open nothing yet."""
        self.path = folder / FILE_NAME

    def reports(self) -> dict[CellKey, int]:
        """The number of reports in each snapshot."""
        if not self.path.exists():
            return {}
        with self._opened() as file:
            return _reports(file)

    def forget(self, gone: Iterable[CellKey]) -> None:
        """Delete snapshots."""
        with self._writing() as file:
            _delete(file, gone)

    def update(
        self, store: Store, due: Sequence[CellKey], gone: Iterable[CellKey]
    ) -> dict[CellKey, int]:
        """Replace snapshots that are still due: another process may have released them."""
        with self._writing() as file:
            _delete(file, gone)
            released = _reports(file)
            for counts in store.counts_of(due):
                if counts.reports - released.get(counts.cell, 0) >= STEP:
                    _save(file, counts)
            return _reports(file)

    def read(self, collection: str, version: int, periods: set[str]) -> list[StoredCounts]:
        """The snapshots of some periods."""
        if not periods or not self.path.exists():
            return []
        with self._opened() as file:
            rows = file.execute(
                "SELECT * FROM released WHERE collection=? AND version=?", (collection, version)
            )
            return [_counts(row) for row in rows if row[3] in periods]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file; make it, for its owner only, if it is missing."""
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be made ({error.strerror})") from None
        with translating(self.path):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=BUSY_MS / 1000,
            )
            with closing(connection):
                for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                    connection.execute(f"PRAGMA {setting}").fetchall()
                what = "a file of released counts"
                if schema_upgrade.version_of(connection, APPLICATION_ID, what) < len(_MIGRATIONS):
                    schema_upgrade.migrate(connection, _MIGRATIONS, APPLICATION_ID, what)
                version = schema_upgrade.version_of(connection, APPLICATION_ID, what)
                schema_upgrade.check_not_newer(version, _MIGRATIONS, "released counts")
                yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                roll_back(connection)
                raise


def _key(counts: StoredCounts) -> CellKey:
    return counts.cell


def _reports(file: sqlite3.Connection) -> dict[CellKey, int]:
    rows = file.execute("SELECT collection, version, period, dimensions, reports FROM released")
    return {CellKey(*row[:4]): row[4] for row in rows}


def _delete(file: sqlite3.Connection, gone: Iterable[CellKey]) -> None:
    file.executemany("DELETE FROM released WHERE id=?", [(cell_id(key),) for key in gone])


def _save(file: sqlite3.Connection, counts: StoredCounts) -> None:
    m, k = counts.ones.shape
    data = np.column_stack((counts.totals, counts.ones)).astype(_WORD).tobytes()
    about = (counts.params_digest, k, m, counts.reports)
    values = (cell_id(counts.cell), *counts.cell, *about, data)
    marks = ", ".join("?" * (len(values) + 1))
    file.execute(
        f"INSERT OR REPLACE INTO released VALUES ({marks})",  # noqa: S608 - question marks
        (*values, checksum("released", *values)),
    )


def _counts(row: Sequence[object]) -> StoredCounts:
    """Verify a snapshot and return its counts."""
    *values, seal = typed(row, "isisssiiibb", "released counts")
    key = CellKey(*values[1:5])
    k, m, _, data = values[6:]
    if checksum("released", *values) != seal or len(data) != 8 * m * (k + 1):
        raise StoreError(f"{key}: the released counts are damaged (checksum)")
    table = np.frombuffer(data, _WORD).reshape(m, k + 1).astype(np.int64)
    return StoredCounts(key, values[5], table[:, 0], table[:, 1:])
