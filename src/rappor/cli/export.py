"""`rappor export`: counts or kept reports out of the store, with an entry in the audit log."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError
from rappor.cli.output import note, say_json
from rappor.cli.store_options import (
    actor,
    add_data,
    add_version,
    day_range,
    definition,
    new_file,
    open_data,
    verb,
)
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.store import Store

_ENDINGS = {"counts": (".csv", ".npz", ".parquet"), "reports": (".csv", ".parquet")}


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
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
