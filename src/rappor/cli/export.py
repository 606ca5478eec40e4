"""`rappor export`: the counts or kept reports of a collection as a file."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError
from rappor.cli.output import note, say_json
from rappor.cli.paths import new_target
from rappor.cli.store_options import (
    add_data,
    add_version,
    day_range,
    definition,
    open_data,
    verb,
    where,
)
from rappor.host import actor

if TYPE_CHECKING:
    pass


def register(verbs: Any) -> argparse.ArgumentParser:
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
    with closing(open_data(where(args), read_only=False)) as store:
        collection = definition(store, args.collection, args.version)
        periods = export_periods(store, collection, *(days or (None, None)))
        reports = export(store, collection, periods, path, reports=args.reports, actor=actor())
    title = export_title(collection, periods, reports=args.reports)
    note(f"{title}: {reports:,} reports, in {path}")
    if args.json:
        about = {"collection": collection.name, "version": collection.version, "what": what}
        say_json({**about, "periods": periods, "reports": reports, "output": str(path)})
    return 0
