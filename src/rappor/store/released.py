"""Released counts: what pages may show of periods that still accept reports, and its memory.

Two looks at exact counts around one arrival differ by that report: its cohort and all its bits. So
the counts of a cell whose period is open are released in steps: a snapshot of the whole cell is
written to `released.sqlite` beside the store, is all that is shown of the cell, and is replaced
only when the store has at least STEP more reports of it. Any two released states of a cell are
equal or at least STEP reports apart, and so are all sums over cells. When a period is closed its
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

import numpy as np

from rappor.collection import days_of
from rappor.errors import ParamsError, StoreBusy, StoreError, StoreFull
from rappor.store.cells import CellKey, cell_id
from rappor.store.sqlite import schema_upgrade
from rappor.store.sqlite.connection import BUSY_MS, roll_back, translating
from rappor.store.sqlite.schema_upgrade import Migration
from rappor.store.sqlite.seals import checksum, typed
from rappor.store.types import CellSummary, Store, StoredCounts
from rappor.wire.protocol import ACCEPTANCE_DAYS

STEP = 50  # reports of a cell between two releases of it
FILE_NAME = "released.sqlite"
_APPLICATION_ID = 0x52505253  # "RPRS"
_GRACE_DAYS = 1  # after the last day of acceptance: commits under way, and clocks that differ
_FORGET_DAYS = 2  # after that, a snapshot that is not shown any more is deleted
_WORD = np.dtype("<u8")
_LOG = logging.getLogger("rappor.store")

_MIGRATIONS: tuple[Migration, ...] = (
    (  # 1: one snapshot for each cell; `id` is a hash of the key, so it tells no order
        "CREATE TABLE released ("
        " id INTEGER PRIMARY KEY, collection TEXT NOT NULL, version INTEGER NOT NULL,"
        " period TEXT NOT NULL, dimensions TEXT NOT NULL, params_digest TEXT NOT NULL,"
        " k INTEGER NOT NULL, m INTEGER NOT NULL, reports INTEGER NOT NULL, data BLOB NOT NULL,"
        " checksum BLOB NOT NULL)",
    ),
)


def is_closed(period: str, today: date) -> bool:
    """Whether a period accepts no more reports: from the second day on after the last it could.

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


class Released:
    """The released counts of one data folder; any number of processes may share them.

    The file is opened for each use. Where it cannot be written to because the disk is full, what
    was released before is shown.

    Args:
        folder: the data folder.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is opened before it is needed."""
        self.path = folder / FILE_NAME

    def cells(self, store: Store, live: Sequence[CellSummary], today: date) -> list[CellSummary]:
        """All cells as they may be shown, by key; what is due is released first.

        A cell of an open period has the reports of its snapshot; it is absent without one.

        Args:
            store: where the counts are.
            live: `store.cells()`.
            today: the day that periods close by.
        """
        closed = {
            period: is_closed(period, today) for period in {each.cell.period for each in live}
        }
        opened = {each.cell: each for each in live if not closed[each.cell.period]}
        known = self._known()
        due = [key for key, each in opened.items() if each.reports - known.get(key, 0) >= STEP]
        old = today - timedelta(days=_FORGET_DAYS)
        gone = set(known) - {each.cell for each in live}
        gone |= {key for key in known if is_closed(key.period, old)}
        if due or gone:
            try:
                known = self._update(store, due, gone)
            except (StoreFull, StoreBusy) as error:
                _LOG.warning("nothing was released: %s", error)
        shown = []
        for each in live:
            if each.cell not in opened:
                shown.append(each)
            elif each.cell in known:
                shown.append(each._replace(reports=known[each.cell], kept=0))
        return shown

    def counts(
        self,
        store: Store,
        today: date,
        collection: str,
        version: int,
        periods: Iterable[str] | None = None,
    ) -> list[StoredCounts]:
        """The counts of all cells that match, as they may be shown; nothing new is released."""
        if periods is None:
            periods = {each.cell.period for each in store.cells() if each.cell[0] == collection}
        asked = set(periods)
        closed = {period for period in asked if is_closed(period, today)}
        found = store.counts(collection, version, periods=sorted(closed)) if closed else []
        return sorted([*found, *self._snapshots(collection, version, asked - closed)], key=_key)

    def forget(self, there: Iterable[CellKey]) -> None:
        """Delete the snapshots of cells that are not there any more: retention removed them."""
        if self.path.exists():
            kept = set(there)
            gone = {key for key in self._known() if key not in kept}
            if gone:
                with self._writing() as file:
                    _delete(file, gone)

    def _known(self) -> dict[CellKey, int]:
        """How many reports each snapshot has."""
        if not self.path.exists():
            return {}
        with self._opened() as file:
            return _reports(file)

    def _update(
        self, store: Store, due: Sequence[CellKey], gone: Iterable[CellKey]
    ) -> dict[CellKey, int]:
        """Replace snapshots that are due, also by what another process released meanwhile."""
        with self._writing() as file:
            _delete(file, gone)
            known = _reports(file)
            for now in store.counts_of(due):
                if now.reports - known.get(now.cell, 0) >= STEP:
                    _save(file, now)
            return _reports(file)

    def _snapshots(self, collection: str, version: int, periods: set[str]) -> list[StoredCounts]:
        if not periods or not self.path.exists():
            return []
        with self._opened() as file:
            rows = file.execute(
                "SELECT * FROM released WHERE collection=? AND version=?", (collection, version)
            )
            return [_counts(row) for row in rows if row[3] in periods]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The file, made where it is missing; readable by its owner only."""
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
                if schema_upgrade.version_of(connection, _APPLICATION_ID, what) < len(_MIGRATIONS):
                    schema_upgrade.migrate(connection, _MIGRATIONS, _APPLICATION_ID, what)
                version = schema_upgrade.version_of(connection, _APPLICATION_ID, what)
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


def _key(found: StoredCounts) -> CellKey:
    return found.cell


def _reports(file: sqlite3.Connection) -> dict[CellKey, int]:
    rows = file.execute("SELECT collection, version, period, dimensions, reports FROM released")
    return {CellKey(*row[:4]): row[4] for row in rows}


def _delete(file: sqlite3.Connection, gone: Iterable[CellKey]) -> None:
    file.executemany("DELETE FROM released WHERE id=?", [(cell_id(key),) for key in gone])


def _save(file: sqlite3.Connection, now: StoredCounts) -> None:
    m, k = now.ones.shape
    data = np.column_stack((now.totals, now.ones)).astype(_WORD).tobytes()
    values = (cell_id(now.cell), *now.cell, now.params_digest, k, m, now.reports, data)
    marks = ", ".join("?" * (len(values) + 1))
    file.execute(
        f"INSERT OR REPLACE INTO released VALUES ({marks})",  # noqa: S608 - question marks
        (*values, checksum("released", *values)),
    )


def _counts(row: Sequence[object]) -> StoredCounts:
    """A snapshot, verified."""
    *values, seal = typed(row, "isisssiiibb", "released counts")
    key = CellKey(*values[1:5])
    k, m, _, data = values[6:]
    if checksum("released", *values) != seal or len(data) != 8 * m * (k + 1):
        raise StoreError(f"{key}: the released counts are damaged (checksum)")
    table = np.frombuffer(data, _WORD).reshape(m, k + 1).astype(np.int64)
    return StoredCounts(key, values[5], table[:, 0], table[:, 1:])
