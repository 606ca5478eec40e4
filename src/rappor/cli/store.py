"""`rappor backup`: one verified file with all that the store holds."""

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
from rappor.cli.store_options import (
    actor,
    add_data,
    add_version,
    day_range,
    definition,
    new_file,
    open_data,
    saved,
    today,
    verb,
)
from rappor.collection import Collection, Registry, check_period, period_of
from rappor.errors import DecodeError, ParamsError

if TYPE_CHECKING:
    from rappor.store import Fold

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.store import Store

if TYPE_CHECKING:
    from rappor.collection import Registry
    from rappor.store import CellSummary, Store

if TYPE_CHECKING:
    from rappor.store import RetentionResult


def register_backup(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "backup",
        "copy the store to one file, also while it is in use",
        "Writes a copy of the store at one moment, reads it back, verifies every checksum in it, "
        "and only then gives it its name. Keep it as you keep the store itself: it holds the same "
        "data, and retention does not reach it.",
        "rappor backup --data data --output store-2026-11-16.backup",
    )
    add_data(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="the copy to write")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run_backup)
    return parser


def run_backup(args: argparse.Namespace) -> int:
    """Write down who does it, copy, verify."""
    path = new_file(args.output)
    with closing(open_data(args.data, read_only=False)) as store:
        # Written down first, as with an export: what leaves unseen is worse than what then fails.
        store.audit(actor(), "backup", path.name)
        store.backup(path)
        cells = store.cells()
    size = path.stat().st_size
    reports = sum(each.reports for each in cells)
    note(f"{path}: {size:,} bytes, {len(cells):,} cells, {reports:,} reports counted; verified")
    if args.json:
        say_json({"output": str(path), "bytes": size, "cells": len(cells), "reports": reports})
    return 0


def register_restore(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "restore",
        "put a backup into a data folder without a store",
        "Verifies a backup and puts it into a data folder. A store that is there is never "
        "overwritten: move it away first. Batches that were acknowledged after the backup are not "
        "in it, and clients do not send them again.",
        "rappor restore store-2026-11-16.backup --data data",
    )
    parser.add_argument("backup", metavar="FILE", help="what `rappor backup` wrote")
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run_restore)
    return parser


def run_restore(args: argparse.Namespace) -> int:
    """Verify, copy, and write down who did."""
    need_analysis("store", "numpy")
    from rappor.store import restore_store

    restore_store(args.backup, args.data)
    with closing(open_data(args.data, read_only=False)) as store:
        store.audit(actor(), "restore", args.backup.rpartition("/")[2])
        cells = store.cells()
    reports = sum(each.reports for each in cells)
    note(f"{args.data}: {len(cells):,} cells, {reports:,} reports counted; verified")
    if args.json:
        say_json({"data": args.data, "cells": len(cells), "reports": reports})
    return 0


def register_retain(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "retain",
        "remove what is too old from the store",
        "Removes reports that are older than their collection keeps them, all data of expired "
        "collections, and batch tokens that no longer matter, so that the bytes are gone. The "
        "collector does the same every day by itself.",
        "rappor retain --data data --dry-run",
    )
    add_data(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="definitions to go by (default: those that the store has)",
    )
    parser.add_argument(
        "--today", type=_day, metavar="DAY", help="the day to go by (default: today in UTC)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run_retain)
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-11-16") from None


def run_retain(args: argparse.Namespace) -> int:
    """Remove, and say what."""
    registry = None if args.collections is None else Registry.open(args.collections)
    with closing(open_data(args.data, read_only=args.dry_run)) as store:
        day = args.today or today()
        if day > today() and not args.dry_run:
            note(f"note: {day} is not here yet: a batch whose token goes early can count twice")
        done = store.retain(day, registry, dry_run=args.dry_run, actor=actor())
        if not args.dry_run:
            _forget_results(args.data, {each.cell[:2] for each in store.cells()})
    if args.json:
        say_json(_retained_document(done))
    else:
        for line in _retained_lines(done):
            say(line)
    for name in done.unknown:
        note(f"note: no definition of {name}: nothing of it is ever removed")
    if not done.settled and not done.dry_run:
        note("note: a reader kept the log: the bytes go when it has left")
    return 0


def _forget_results(data: str, stored: set[tuple[str, int]]) -> None:
    """Delete what the dashboard made of counts that are gone; a running one does it by itself."""
    from rappor.dashboard.settings import STATE_FILE

    file = Path(data).expanduser() / STATE_FILE
    if file.exists():
        from rappor.dashboard.state import DashboardState

        with closing(DashboardState(file)) as state:
            state.keep_results_of(stored)


def _retained_lines(done: RetentionResult) -> list[str]:
    verb_ = "would be removed" if done.dry_run else "removed"
    lines = [
        f"{done.reports:,} kept reports in {len(done.report_cells):,} cells {verb_}",
        f"{done.counted:,} counted reports in {len(done.count_cells):,} cells of expired "
        f"collections {verb_}",
        f"{done.tokens:,} batch tokens {verb_}",
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


DAMAGED = 1


def register_status(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "status",
        "what the store holds, and whether it is sound",
        "Lists collections with their periods and reports, the disk, the last retention, and "
        "whatever is wrong after every checksum has been verified. Exit code 1: something is. A "
        "store that has lost acknowledged batches does not open; --accept-loss goes on without "
        "them and writes that into the audit log.",
        "rappor status --data data",
    )
    add_data(parser)
    parser.add_argument("--no-check", action="store_true", help="do not read and verify everything")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on without what is missing (copy the data folder first)",
    )
    parser.add_argument("--audit", action="store_true", help="also the whole audit log")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(run=run_status)
    return parser


def run_status(args: argparse.Namespace) -> int:
    """Look, and say."""
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
    for problem in problems:
        note(f"problem: {problem}")
    return DAMAGED if problems else 0


def _accept_loss(data: str) -> None:
    """Open a store in spite of what is missing; the audit log says who did, and what it was."""
    with closing(open_data(data, read_only=False, accept_loss=actor())) as store:
        accepted = store.accepted
    note(f"accepted: {accepted}" if accepted else "nothing is missing: nothing to accept")


def _status_document(store: Store, args: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    folder = Path(args.data).expanduser()
    disk = {
        "store_bytes": sum(file.stat().st_size for file in folder.glob("store.sqlite*")),
        "free_bytes": shutil.disk_usage(folder).free,
    }
    document: dict[str, Any] = {"data": args.data, "disk": disk, "problems": problems}
    document["checked"] = not args.no_check
    if problems:  # what can still be read may be wrong: nothing is said about it
        return document | {"collections": None, "last_retention": None}
    log = store.audit_log()
    kept = [each.when for each in log if each.action == "retain"]
    document["last_retention"] = kept[-1] if kept else None
    document["collections"] = _collections(store.cells(), saved(store))
    if args.audit:
        document["audit"] = [each._asdict() for each in log]
    return document


def _collections(cells: list[CellSummary], registry: Registry) -> list[dict[str, Any]]:
    found = []
    for each in registry:
        mine = [cell for cell in cells if cell.cell[:2] == (each.name, each.version)]
        periods = sorted({cell.cell.period for cell in mine})
        found.append(
            {
                "collection": each.name,
                "version": each.version,
                "kind": each.kind,
                "expires": None if each.expires is None else each.expires.isoformat(),
                "expired": each.expires is not None and each.expires <= today(),
                "periods": len(periods),
                "first_period": periods[0] if periods else None,
                "last_period": periods[-1] if periods else None,
                "cells": len(mine),
                "reports": sum(cell.reports for cell in mine),
                "kept_reports": sum(cell.kept for cell in mine),
            }
        )
    return found


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


def _status_row(each: dict[str, Any]) -> tuple[str, ...]:
    expires = f"{each['expires'] or '–'}{' (expired)' if each['expired'] else ''}"
    return (
        f"{each['collection']} v{each['version']}",
        str(each["periods"]),
        each["first_period"] or "–",
        each["last_period"] or "–",
        f"{each['cells']:,}",
        f"{each['reports']:,}",
        f"{each['kept_reports']:,}",
        expires,
    )


_ENDINGS = {"counts": (".csv", ".npz", ".parquet"), "reports": (".csv", ".parquet")}


def register_export(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "export",
        "write counts or kept reports of a collection to a file",
        "Writes the counts of a collection (google/rappor's counts.csv, npz or Parquet), or the "
        "reports that it keeps (google/rappor's reports.csv, or Parquet), in an order drawn anew. "
        "The audit log keeps who exported what.",
        "rappor export homepage --data data --period 2026-11-16 --output counts.parquet",
    )
    parser.add_argument("collection", metavar="COLLECTION", help="its name")
    add_data(parser)
    add_version(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="what to write")
    parser.add_argument("--reports", action="store_true", help="reports instead of counts")
    parser.add_argument("--period", metavar="P", help="a period, or FROM..TO (default: all)")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run_export)
    return parser


def run_export(args: argparse.Namespace) -> int:
    """Read, write, and write down who did."""
    what = "reports" if args.reports else "counts"
    path = new_file(args.output)
    if path.suffix.lower() not in _ENDINGS[what]:
        raise UsageError(f"--output of {what} must end in {', '.join(_ENDINGS[what])}")
    days = None if args.period is None else day_range(args.period)
    with closing(open_data(args.data, read_only=False)) as store:
        collection = definition(store, args.collection, args.version)
        periods = _periods(store, collection, days)
        said = f"{what} of {collection.name} v{collection.version}, {periods[0]} to {periods[-1]}"
        # Written down first: what leaves unseen is worse than what is noted and then fails.
        store.audit(actor(), "export", f"{said}, to {path.name}")
        if args.reports:
            reports = _write_reports(store, collection, periods, path)
        else:
            counts = _counts(store, collection, periods)
            _write_counts(counts, path)
            reports = counts.reports
    note(f"{said}: {reports:,} reports, in {path}")
    if args.json:
        about = {"collection": collection.name, "version": collection.version, "what": what}
        say_json({**about, "periods": periods, "reports": reports, "output": str(path)})
    return 0


def _periods(store: Store, collection: Collection, days: Any) -> list[str]:
    from rappor.aggregate.stored import within

    periods = {
        each.cell.period
        for each in store.cells()
        if (each.cell.collection, each.cell.version) == (collection.name, collection.version)
        and within(each.cell.period, *(days or (None, None)))
    }
    if not periods:
        raise DecodeError(
            f"{collection.name} v{collection.version} has no reports in the store"
            + (" in that time" if days else "")
        )
    return sorted(periods)


def _counts(store: Store, collection: Collection, periods: list[str]) -> Counts:
    from rappor.aggregate.stored import sum_cells

    cells = store.counts(collection.name, collection.version, periods=periods)
    found = sum_cells(cells, collection)
    if len(found) > 1:
        raise DecodeError(
            "these periods were made with different p and q, and their counts do not add up: give "
            "--period for a time with one of them"
        )
    return found[0]


def _write_counts(counts: Counts, path: Path) -> None:
    from rappor.cli.result_files import replacing

    with replacing(str(path), private=True) as beside:
        match path.suffix.lower():
            case ".csv":
                counts.to_csv(beside)
            case ".npz":
                counts.to_npz(beside)
            case _:
                counts.to_parquet(beside)


def _write_reports(store: Store, collection: Collection, periods: list[str], path: Path) -> int:
    from rappor.aggregate.write_reports import write_csv, write_parquet
    from rappor.cli.result_files import replacing

    if not collection.keep_reports_days:
        raise DecodeError(f"{collection.name} keeps counts only: leave --reports away")
    found = store.reports(collection.name, collection.version, periods=periods)
    kept = ((cohort, data) for _, cohort, data in found)
    with replacing(str(path), private=True) as beside:
        write = write_parquet if path.suffix.lower() == ".parquet" else write_csv
        return write(beside, kept, collection.params.k)


_SHOWN = 5
_STAGED = 256 * 2**20  # bytes of reports that wait in memory before the store is asked


def register_import(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "import",
        "put a file of reports into the store",
        "Counts the reports of google/rappor's reports.csv, JSON lines or Parquet into one cell of "
        "the store. The same file is counted once, however often it is imported; the whole file "
        "or, if anything fails, none of it.",
        "rappor import reports.csv --data data --collection homepage --period 2026-11-16",
    )
    parser.add_argument("reports", metavar="REPORTS", help="a .csv, .jsonl or .parquet file")
    add_data(parser)
    parser.add_argument("--collection", required=True, metavar="NAME", help="what they are about")
    add_version(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="a folder of definitions, if the store does not know the collection yet",
    )
    parser.add_argument(
        "--period", metavar="P", help="2026-11-16 or 2026-W47 (default: the current one)"
    )
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='a declared dimension of all these reports (default: "other"); may be repeated',
    )
    parser.add_argument("--strict", action="store_true", help="import nothing if a line is wrong")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run_import)
    return parser


def run_import(args: argparse.Namespace) -> int:
    """Read, count, store, say what was done."""
    path = Path(args.reports).expanduser()
    path.stat()  # before a store is made for a file that is not there
    with closing(open_data(args.data, read_only=False, create=bool(args.collections))) as store:
        from rappor.aggregate.stored import ImportedReports
        from rappor.store import CellKey

        if args.collections is not None:
            wanted = Registry.open(args.collections).get(args.collection, args.version)
            store.save_definition(wanted.to_toml(), actor=actor())
        collection = definition(store, args.collection, args.version)
        if collection.expires is not None and collection.expires <= today():
            raise ParamsError(
                f"{collection.name} v{collection.version} has expired on {collection.expires}: "
                "nothing more is counted, and retention removes what is there"
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
    for each in file.examples[:_SHOWN]:
        note(f"malformed: {each}")
    if args.json:
        say_json(document)
    elif not new:
        say(f"{path.name} has been imported before: nothing was counted again.")
    else:
        wrong = f"; {file.malformed:,} malformed lines left out" if file.malformed else ""
        say(f"{folds.reports:,} reports of {path.name} counted in {cell}{wrong}")
    return 0


def _dimensions(given: list[str], collection: Collection) -> tuple[tuple[str, str], ...]:
    pairs = dict(each.partition("=")[::2] for each in given)
    for name, value in pairs.items():
        allowed = collection.dimensions.get(name)
        if allowed is None:
            declared = ", ".join(collection.dimensions) or "no dimensions"
            raise UsageError(f"--dimension {name}: {collection.name} declares {declared}")
        if value not in (*allowed, "other"):
            raise UsageError(f"--dimension {name} must be one of {', '.join(allowed)}, other")
    return collection.cell(pairs)


def _staged(folds: Iterator[Fold]) -> Iterable[Fold]:
    """The same folds, read before the store is asked to take them: a collector need not wait.

    Of a file with more than 256 MiB of reports to keep, the rest is read while it does.
    """
    ready, size = [], 0
    for fold in folds:
        ready.append(fold)
        size += len(fold.reports or b"")
        if size > _STAGED:
            note("a large file: the store takes no batches until it is in (clients try again)")
            return chain(ready, folds)
    return ready


class _Counted:
    """Folds that are added up as they pass; at the end, an error if there is nothing in them.

    Attributes:
        digest: of the file that they come from: if it is another at the end, that is an error too,
            because the digest is what the file is known by from then on.
        reports: how many there were.
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
            raise DecodeError("nothing was imported: the file was changed while it was read")
