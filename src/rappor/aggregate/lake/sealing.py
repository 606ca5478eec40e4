"""Sealing: the kept reports of closed periods become files of a lake.

A cell is sealed whole, when its period accepts no more reports. So a seal tells nothing about when
a report came: neither which were there before others, nor a time finer than the period. Cells of
open periods are sealed on request only, and again only with at least STEP more reports, as pages
show them (`rappor.store.released`): two states of a cell are that many reports apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain

from rappor.aggregate.lake.counting import read_file
from rappor.aggregate.lake.manifest import (
    FOLDER,
    LakeFile,
    Manifest,
    random_name,
    read_manifest,
    write_record,
)
from rappor.aggregate.lake.place import LakePlace
from rappor.aggregate.lake.rows import LakeRow, rows_of, write_rows
from rappor.checks import plural
from rappor.collection import Collection, Registry, days_of
from rappor.store import CellKey, CellSummary, Store
from rappor.store.released import STEP, is_closed

FILE_BYTES = 64 * 2**20  # of reports in one file, about
_FILES_IN_RECORD = 64  # after so many, they are recorded: a crash loses no more than that
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a seal did.

    Attributes:
        files: the files that were written.
        removed: files that were removed, because they are older than their collection allows.
        waiting: cells that were not sealed, and why.
    """

    files: tuple[LakeFile, ...]
    removed: tuple[str, ...]
    waiting: tuple[tuple[CellKey, str], ...]

    @property
    def reports(self) -> int:
        """The number of sealed reports."""
        return sum(file.reports for file in self.files)


def seal(
    store: Store,
    place: LakePlace,
    today: date,
    *,
    open_periods: bool = False,
    actor: str = "lake",
    progress: Progress = lambda _: None,
) -> Sealed:
    """Seal the kept reports of a store that are not in the lake yet.

    Args:
        store: the store; the audit log records the seal.
        place: the lake; made if it is missing.
        today: the day, which decides which periods are closed and what is too old.
        open_periods: seal cells of open periods too, in steps of at least STEP reports.
        actor: who seals, for the audit log.
        progress: called with a line of text for each cell.

    Raises:
        StoreError: the store or the lake cannot be read or written. What was recorded before stays.
    """
    registry = Registry(Collection.from_toml(item.toml) for item in store.definitions())
    known = read_manifest(place) if place.list(FOLDER) else Manifest({})
    store.audit(actor, "seal", f"kept reports, to {place}")
    removed = remove_old(place, known, today, registry)
    known = Manifest({path: file for path, file in known.files.items() if path not in removed})
    written: list[LakeFile] = []
    waiting: list[tuple[CellKey, str]] = []
    pending: list[LakeFile] = []
    gone: list[str] = []
    sealed = known.cells()
    for summary in store.cells():
        if not summary.kept:
            continue
        cell = summary.cell
        collection = registry.get(cell.collection, cell.version)
        why = _why_not(summary, sealed.get(cell), collection, today, open_periods)
        if why is not None:
            waiting += [(cell, why)] if why else []
            continue
        progress(f"{cell}: {plural(summary.kept, 'report', 'reports')}")
        before = () if cell not in sealed else known.seals()[sealed[cell][0]]
        made, replaced = _seal_cell(store, place, summary, collection, before)
        pending += made
        gone += replaced
        written += made
        if len(pending) >= _FILES_IN_RECORD:
            _record(place, pending, gone)
            pending, gone = [], []
    _record(place, pending, gone)
    return Sealed(tuple(written), removed, tuple(waiting))


def _record(place: LakePlace, add: Sequence[LakeFile], remove: Sequence[str]) -> None:
    """Record files, then delete those that they replace."""
    if add or remove:
        write_record(place, add, remove)
        for path in remove:
            place.delete(path)


def _why_not(
    summary: CellSummary,
    sealed: tuple[str, int] | None,
    collection: Collection,
    today: date,
    open_periods: bool,
) -> str | None:
    """Why a cell is not sealed now; "" if it is in the lake already; None to seal it."""
    cell = summary.cell
    if keep_until(cell.period, collection) < today:
        return "retention removes its reports today"
    if not is_closed(cell.period, today):
        if not open_periods:
            return "its period still accepts reports"
        if summary.kept < STEP:
            return f"it has fewer than {STEP} reports"
    if sealed is None:
        return None
    more = summary.kept - sealed[1]
    if more <= 0:
        return ""
    return None if more >= STEP else f"only {more} reports came since its seal; it waits for {STEP}"


def _seal_cell(
    store: Store,
    place: LakePlace,
    summary: CellSummary,
    collection: Collection,
    before: Sequence[LakeFile],
) -> tuple[list[LakeFile], list[str]]:
    """Write the files of a cell; returns them, and the paths that they replace.

    Args:
        store: the store.
        place: the lake.
        summary: the cell.
        collection: its definition.
        before: the files of the seal that has the cell already, which may have others too.
    """
    cell = summary.cell
    rows = (
        row
        for key, cohort, packed in store.reports(
            cell.collection, cell.version, periods=[cell.period], dimensions=cell.dimensions
        )
        if key == cell
        for row in rows_of(cell, cohort, packed, summary.k)
    )
    others = [row for file in before for row in read_file(place, file)[1] if row.cell != cell]
    made = write_seal(place, chain(others, rows), collection, summary.params_digest)
    return made, [file.path for file in before]


def write_seal(
    place: LakePlace, rows: Iterable[LakeRow], collection: Collection, params_digest: str
) -> list[LakeFile]:
    """Write rows of one period to files; they belong to the lake when a record says so."""
    seal_name = random_name()
    return [_write_file(place, part, collection, params_digest, seal_name) for part in _parts(rows)]


def _parts(rows: Iterable[LakeRow]) -> Iterator[list[LakeRow]]:
    part: list[LakeRow] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.reports)
        if size >= FILE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _write_file(
    place: LakePlace, rows: list[LakeRow], collection: Collection, params_digest: str, seal: str
) -> LakeFile:
    data = write_rows(rows, collection)
    cells: dict[CellKey, int] = {}
    for row in rows:
        cells[row.cell] = cells.get(row.cell, 0) + row.count
    period = rows[0].cell.period
    path = f"{collection.name}/v{collection.version}/{period}/{random_name()}.parquet"
    place.write(path, data)
    return LakeFile(
        path=path,
        seal=seal,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        rows=len(rows),
        params_digest=params_digest,
        keep_until=keep_until(period, collection),
        cells=tuple(sorted(cells.items())),
    )


def keep_until(period: str, collection: Collection) -> date:
    """The last day on which single reports of a period may be kept, as in the store."""
    last = days_of(period)[1] + timedelta(days=collection.keep_reports_days)
    if collection.expires is not None:
        return min(last, collection.expires - timedelta(days=1))
    return last


def remove_old(
    place: LakePlace, known: Manifest, today: date, registry: Registry | None = None
) -> tuple[str, ...]:
    """Remove files that are older than their collection allows; returns their paths.

    Args:
        place: the lake.
        known: its manifest.
        today: the day.
        registry: definitions that may allow less than those that the files were sealed with.
    """
    current = {(item.name, item.version): item for item in registry or ()}
    old = []
    for path, file in known.files.items():
        name, version, period = file.of
        last = file.keep_until
        if (name, version) in current:
            last = min(last, keep_until(period, current[name, version]))
        if last < today:
            old.append(path)
    if old:
        write_record(place, remove=old)
        for path in old:
            place.delete(path)
    return tuple(old)
