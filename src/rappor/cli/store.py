"""`rappor status|import|export|retain|backup|restore --data DIR`: the verbs about a store."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, need_analysis
from rappor.cli.output import note, say, say_json, table
from rappor.cli.paths import existing_folder, new_target, path_of
from rappor.cli.store_options import (
    add_data,
    add_version,
    day_range,
    definition,
    open_data,
    saved,
    today,
    verb,
)
from rappor.collection import (
    Collection,
    ExpiryState,
    Registry,
    announcement,
    check_period,
    expiring,
    expiry_state,
    period_of,
)
from rappor.collection.expiry import NOTICE_DAYS, at_expiry, days_left
from rappor.errors import DecodeError, ParamsError
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import CellSummary, Fold, RetentionResult, Store

DAMAGED = 1  # the exit code of `rappor status`
_EXAMPLES_SHOWN = 5
_MAX_STAGED = 256 * 2**20  # bytes of reports to read into memory before the store is locked


# rappor status


def register_status(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "status",
        "show what the store holds, and verify it",
        "Verify every checksum, then list the collections with their periods and reports, the "
        "disk, the last retention and any damage. Exit code 1 means that the store is damaged. A "
        "store that has lost acknowledged batches does not open; --accept-loss opens it without "
        "them and records that in the audit log.",
        "rappor status --data data",
    )
    add_data(parser)
    parser.add_argument("--no-check", action="store_true", help="do not verify checksums")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="open the store without lost batches (copy the data folder first)",
    )
    parser.add_argument("--audit", action="store_true", help="also print the audit log")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_status)
    return parser


def run_status(args: argparse.Namespace) -> int:
    """Verify the store and print what it holds."""
    if args.accept_loss:
        _accept_loss(args.data)
    with closing(open_data(args.data)) as store:
        problems = store.losses() if args.no_check else store.check()
        document = _status_document(store, args, problems)
    if args.json:
        say_json(document)
    else:
        for line in _status_lines(document):
            say(line)
    for line in document.get("announcements", ()):
        note(f"note: {line}")
    for problem in problems:
        note(f"problem: {problem}")
    return DAMAGED if problems else 0


def _accept_loss(data: str) -> None:
    """Open a store although batches are lost; the audit log records who did, and what is lost."""
    with closing(open_data(data, read_only=False, accept_loss=actor())) as store:
        accepted = store.accepted
    note(f"accepted: {accepted}" if accepted else "nothing is lost: nothing to accept")


def _status_document(store: Store, args: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    folder = Path(args.data).expanduser()
    disk = {
        "store_bytes": sum(file.stat().st_size for file in folder.glob("store.sqlite*")),
        "free_bytes": shutil.disk_usage(folder).free,
    }
    document: dict[str, Any] = {"data": args.data, "disk": disk, "problems": problems}
    document["checked"] = not args.no_check
    if problems:  # the rest may be wrong too, so it is not shown
        return document | {"collections": None, "last_retention": None}
    log = store.audit_log()
    retentions = [entry.when for entry in log if entry.action == "retain"]
    document["last_retention"] = retentions[-1] if retentions else None
    registry = saved(store)
    document["collections"] = _collections(store.cells(), registry)
    document["announcements"] = [
        announcement(item, today()) for item in expiring(registry, today())
    ]
    if args.audit:
        document["audit"] = [entry._asdict() for entry in log]
    return document


def _collections(cells: list[CellSummary], registry: Registry) -> list[dict[str, Any]]:
    rows = []
    for collection in registry:
        mine = [cell for cell in cells if cell.cell[:2] == (collection.name, collection.version)]
        periods = sorted({cell.cell.period for cell in mine})
        rows.append(
            {
                "collection": collection.name,
                "version": collection.version,
                "kind": collection.kind,
                "expires": None if collection.expires is None else collection.expires.isoformat(),
                "expired": expiry_state(collection, today()) is ExpiryState.EXPIRED,
                "days_left": days_left(collection, today()),
                "on_expiry": collection.on_expiry,
                "periods": len(periods),
                "first_period": periods[0] if periods else None,
                "last_period": periods[-1] if periods else None,
                "cells": len(mine),
                "reports": sum(cell.reports for cell in mine),
                "kept_reports": sum(cell.kept for cell in mine),
            }
        )
    return rows


def _status_lines(document: dict[str, Any]) -> list[str]:
    disk = document["disk"]
    lines = []
    if document["collections"]:
        head = ("collection", "periods", "from", "to", "cells", "reports", "kept", "expires")
        rows = [head, *map(_status_row, document["collections"])]
        lines = [*table(rows), ""]
    elif document["collections"] is not None:
        lines = ["No collections yet.", ""]
    size, free = (f"{disk[name] / 1e6:,.1f} MB" for name in ("store_bytes", "free_bytes"))
    lines.append(f"disk: {size} used, {free} free")
    lines.append(f"last retention: {document['last_retention'] or 'none yet'}")
    sound = "damaged" if document["problems"] else "sound" if document["checked"] else "not checked"
    lines.append(f"store: {sound}")
    for entry in document.get("audit", ()):
        lines.append("  ".join(("audit:", *entry.values())))
    return lines


def _status_row(row: dict[str, Any]) -> tuple[str, ...]:
    expires = f"{row['expires'] or '–'}{' (expired)' if row['expired'] else ''}"
    if row["days_left"] is not None and 0 < row["days_left"] <= NOTICE_DAYS:
        expires += f" (in {row['days_left']} d)"
    return (
        f"{row['collection']} v{row['version']}",
        str(row["periods"]),
        row["first_period"] or "–",
        row["last_period"] or "–",
        f"{row['cells']:,}",
        f"{row['reports']:,}",
        f"{row['kept_reports']:,}",
        expires,
    )


# rappor import


def register_import(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "import",
        "add a file of reports to the store",
        "Add the reports of a file (google/rappor's reports.csv, JSON lines or Parquet) to the "
        "counts of one period. A file is counted once, however often it is imported. If anything "
        "fails, nothing of the file is counted.",
        "rappor import reports.csv --data data --collection homepage --period 2026-11-16",
    )
    parser.add_argument("reports", metavar="REPORTS", help="a .csv, .jsonl or .parquet file")
    add_data(parser)
    parser.add_argument("--collection", required=True, metavar="NAME", help="the collection")
    add_version(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="a folder of definitions, if the collection is new to the store",
    )
    parser.add_argument(
        "--period", metavar="P", help="2026-11-16 or 2026-W47 (default: the current one)"
    )
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='a dimension of all reports in the file (default: "other"); may be repeated',
    )
    parser.add_argument("--strict", action="store_true", help="refuse files with malformed lines")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_import)
    return parser


def run_import(args: argparse.Namespace) -> int:
    """Count the reports of a file and store the counts."""
    path = path_of(args.reports)
    need_analysis("store", "numpy")
    from rappor.aggregate.report_files import reader_of

    reader_of(path)  # raises before a new store is made for a missing or unknown file
    with closing(open_data(args.data, read_only=False, create=bool(args.collections))) as store:
        from rappor.aggregate.imported_reports import ImportedReports
        from rappor.store import CellKey

        if args.collections is not None:
            wanted = _definitions(args.collections).get(args.collection, args.version)
            store.save_definition(wanted.to_toml(), actor=actor())
        collection = definition(store, args.collection, args.version)
        if collection.expires is not None and collection.expires <= today():
            raise ParamsError(
                f"{collection.name} v{collection.version} expired on {collection.expires}: its "
                f"reports are no longer counted; at its end {at_expiry(collection)}"
            )
        period = args.period or period_of(collection.period, today())
        check_period(collection.period, period)
        cell = CellKey.of(
            collection.name, collection.version, period, _dimensions(args.dimension, collection)
        )
        file = ImportedReports(path, collection, cell)
        folds = _Counted(file, strict=args.strict)
        ready = _staged(iter(folds))
        new = store.add_file(folds.digest, ready, actor=actor(), detail=f"{path.name} to {cell}")
    document = {
        "file": str(path),
        "collection": collection.name,
        "version": collection.version,
        "period": period,
        "dimensions": dict(cell.pairs),
        "new": new,
        "reports": folds.reports if new else 0,
        "malformed": file.malformed,
    }
    for example in file.examples[:_EXAMPLES_SHOWN]:
        note(f"malformed: {example}")
    if args.json:
        say_json(document)
    elif not new:
        say(f"{path.name} was imported before: nothing was counted again.")
    else:
        wrong = f"; {file.malformed:,} malformed lines skipped" if file.malformed else ""
        say(f"{folds.reports:,} reports of {path.name} counted in {cell}{wrong}")
    return 0


def _dimensions(given: list[str], collection: Collection) -> tuple[tuple[str, str], ...]:
    pairs = dict(text.partition("=")[::2] for text in given)
    for name, value in pairs.items():
        allowed = collection.dimensions.get(name)
        if allowed is None:
            declared = ", ".join(collection.dimensions) or "no dimensions"
            raise UsageError(f"--dimension {name}: {collection.name} declares {declared}")
        if value not in (*allowed, "other"):
            raise UsageError(f"--dimension {name} must be one of {', '.join(allowed)}, other")
    return collection.cell(pairs)


def _staged(folds: Iterator[Fold]) -> Iterable[Fold]:
    """Read the folds before the store is locked, so that a running collector does not wait.

    Beyond 256 MiB of kept reports, the rest of the file is read while the store is locked.
    """
    ready, size = [], 0
    for fold in folds:
        ready.append(fold)
        size += len(fold.reports or b"")
        if size > _MAX_STAGED:
            note("a large file: the store takes no batches until it is imported; clients retry")
            return chain(ready, folds)
    return ready


class _Counted:
    """Iterate over the folds of a file and count their reports.

    The end of the iteration raises DecodeError if the file has no report, or has changed meanwhile.

    Attributes:
        digest: the digest of the file, by which the store recognises it later.
        reports: the number of reports so far.
    """

    def __init__(self, file: Any, strict: bool) -> None:
        self.digest: bytes = file.digest()
        self.reports = 0
        self._file, self._strict = file, strict

    def __iter__(self) -> Iterator[Fold]:
        for fold in self._file.folds():
            self.reports += fold.total
            yield fold
        if self._file.malformed and (self._strict or not self.reports):
            self.reports = 0
            raise DecodeError(f"nothing was imported: {self._file.examples[0]}")
        if self._file.digest() != self.digest:
            raise DecodeError("nothing was imported: the file changed while it was read")


# rappor export


def register_export(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "export",
        "write the counts or kept reports of a collection to a file",
        "Write the counts of a collection (google/rappor's counts.csv, npz or Parquet) or the "
        "reports that it keeps (google/rappor's reports.csv or Parquet), in random order. The "
        "audit log records who exported what.",
        "rappor export homepage --data data --period 2026-11-16 --output counts.parquet",
    )
    parser.add_argument("collection", metavar="COLLECTION", help="the name of the collection")
    add_data(parser)
    add_version(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--reports", action="store_true", help="export reports instead of counts")
    parser.add_argument("--period", metavar="P", help="a period, or FROM..TO (default: all)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_export)
    return parser


def run_export(args: argparse.Namespace) -> int:
    """Record who exports, then write the file."""
    from rappor.aggregate.store_export import ENDINGS, export, export_periods, export_title

    what = "reports" if args.reports else "counts"
    path = new_target(args.output, force=args.force)
    if path.suffix.lower() not in ENDINGS[what]:
        raise UsageError(f"--output of {what} must end in {', '.join(ENDINGS[what])}")
    days = None if args.period is None else day_range(args.period)
    with closing(open_data(args.data, read_only=False)) as store:
        collection = definition(store, args.collection, args.version)
        periods = export_periods(store, collection, *(days or (None, None)))
        reports = export(store, collection, periods, path, reports=args.reports, actor=actor())
    title = export_title(collection, periods, reports=args.reports)
    note(f"{title}: {reports:,} reports, in {path}")
    if args.json:
        about = {"collection": collection.name, "version": collection.version, "what": what}
        say_json({**about, "periods": periods, "reports": reports, "output": str(path)})
    return 0


# rappor retain


def register_retain(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "retain",
        "delete old data from the store",
        "Delete reports that are older than their collection allows, all data of expired "
        "collections, and old batch tokens. The bytes on disk are erased too. A running collector "
        "does the same every day.",
        "rappor retain --data data --dry-run",
    )
    add_data(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="a folder of definitions to apply (default: those in the store)",
    )
    parser.add_argument(
        "--today", type=_day, metavar="DAY", help="act as on this day (default: today in UTC)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be deleted")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_retain)
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-11-16") from None


def run_retain(args: argparse.Namespace) -> int:
    """Delete, and say what was deleted."""
    registry = None if args.collections is None else _definitions(args.collections)
    with closing(open_data(args.data, read_only=args.dry_run)) as store:
        day = args.today or today()
        if day > today() and not args.dry_run:
            note(f"note: {day} is in the future: batches whose tokens are deleted can count twice")
        done = store.retain(day, registry, dry_run=args.dry_run, actor=actor())
        if not args.dry_run:
            forget_results(args.data, {summary.cell[:2] for summary in store.cells()})
    if args.json:
        say_json(_retained_document(done))
    else:
        for line in _retained_lines(done):
            say(line)
    for name in done.unknown:
        note(f"note: there is no definition of {name}: its data is never deleted")
    if not done.settled and not done.dry_run:
        note("note: another process reads the store: the bytes are erased when it ends")
    return 0


def _definitions(name: str) -> Registry:
    """The definitions in a folder."""
    return Registry.open(existing_folder(name, "folder of collections"))


def forget_results(data: str, stored: set[tuple[str, int]]) -> None:
    """Delete the dashboard's results of deleted counts; a running dashboard does this itself."""
    from rappor.dashboard.settings import STATE_FILE

    file = Path(data).expanduser() / STATE_FILE
    if file.exists():
        from rappor.dashboard.state import DashboardState

        with closing(DashboardState(file)) as state:
            state.keep_results_of(stored)


def _retained_lines(done: RetentionResult) -> list[str]:
    outcome = "would be deleted" if done.dry_run else "deleted"
    lines = [
        f"{done.reports:,} kept reports in {len(done.report_cells):,} cells {outcome}",
        f"{done.counted:,} counted reports in {len(done.count_cells):,} cells of expired "
        f"collections {outcome}",
        f"{done.tokens:,} batch tokens {outcome}",
    ]
    names = dict.fromkeys(f"{key.collection} v{key.version}" for key in done.count_cells)
    return lines + [f"  expired: {name}" for name in names]


def _retained_document(done: RetentionResult) -> dict[str, Any]:
    return {
        "today": done.today.isoformat(),
        "dry_run": done.dry_run,
        "reports": done.reports,
        "report_cells": [str(key) for key in done.report_cells],
        "counted": done.counted,
        "count_cells": [str(key) for key in done.count_cells],
        "tokens": done.tokens,
        "unknown": list(done.unknown),
        "settled": done.settled,
    }


# rappor backup and rappor restore


def register_backup(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "backup",
        "copy a data folder to one file, even while it is in use",
        "Write a copy of the store as it is at one moment, with the dashboard's accounts, "
        "candidate lists and results; verify every checksum in the copy, and only then give it its "
        "name. A missing folder is made. Protect the copy like the data folder itself: it holds "
        "the same data, and retention does not delete anything from it.",
        "rappor backup --data data --output store-2026-11-16.backup",
    )
    add_data(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_backup)
    return parser


def run_backup(args: argparse.Namespace) -> int:
    """Record who makes the backup, then copy and verify."""
    from rappor.cli.data_backup import contents, files_document, target_of_backup, write

    path = target_of_backup(args.output, force=args.force)
    with closing(open_data(args.data, read_only=False)) as store:
        # Recorded first, as for an export.
        store.audit(actor(), "backup", path.name)
        files = write(store, args.data, path)
        cells = store.cells()
    size = path.stat().st_size
    reports = sum(cell.reports for cell in cells)
    note(f"{path}: {size:,} bytes, {len(cells):,} cells, {reports:,} reports counted; verified")
    note(contents(files))
    if args.json:
        summary = {"output": str(path), "bytes": size, "cells": len(cells), "reports": reports}
        say_json(summary | files_document(files))
    return 0


def register_restore(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "restore",
        "restore a backup into a data folder without a store",
        "Verify a backup and copy it into a data folder, with the dashboard's accounts, candidate "
        "lists and results. An existing store is never overwritten: move it away first. Batches "
        "acknowledged after the backup are lost: clients do not send them again.",
        "rappor restore store-2026-11-16.backup --data data",
    )
    parser.add_argument("backup", metavar="FILE", help="a file that `rappor backup` wrote")
    add_data(parser)
    parser.add_argument(
        "--store-only",
        action="store_true",
        help="leave the dashboard's file in the folder as it is",
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_restore)
    return parser


def run_restore(args: argparse.Namespace) -> int:
    """Verify and copy the backup, and record who restored it."""
    need_analysis("store", "numpy")
    from rappor.cli.data_backup import contents, files_document, restore

    files = restore(args.backup, args.data, store_only=args.store_only)
    with closing(open_data(args.data, read_only=False)) as store:
        store.audit(actor(), "restore", args.backup.rpartition("/")[2])
        cells = store.cells()
    reports = sum(cell.reports for cell in cells)
    note(f"{args.data}: {len(cells):,} cells, {reports:,} reports counted; verified")
    note(contents(files))
    if args.json:
        summary = {"data": args.data, "cells": len(cells), "reports": reports}
        say_json(summary | files_document(files))
    return 0
