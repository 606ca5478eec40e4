"""`rappor backup` and `rappor restore`: copy a data folder to one file, and back."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli.arguments import need_analysis
from rappor.cli.output import note, say_json
from rappor.cli.store_options import add_data, open_data, shown, verb, where
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import CellSummary


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
    with closing(open_data(where(args), read_only=False)) as store:
        # Recorded first, as for an export.
        store.audit(actor(), "backup", path.name)
        files = write(store, args.data, path)
        cells = store.cells()
    size = path.stat().st_size
    reports = sum(cell.reports for cell in cells)
    note(f"{path}: {size:,} bytes, {_counted(cells, reports)}; verified")
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
    where(args)
    need_analysis("store", "numpy")
    from rappor.cli.data_backup import contents, files_document, restore

    files = restore(args.backup, args.data, args.store, store_only=args.store_only)
    with closing(open_data(where(args), read_only=False)) as store:
        store.audit(actor(), "restore", args.backup.rpartition("/")[2])
        cells = store.cells()
    reports = sum(cell.reports for cell in cells)
    note(f"{shown(where(args))}: {_counted(cells, reports)}; verified")
    note(contents(files))
    if args.json:
        summary = {"data": shown(where(args)), "cells": len(cells), "reports": reports}
        say_json(summary | files_document(files))
    return 0


def _counted(cells: list[CellSummary], reports: int) -> str:
    counted = plural(reports, "report", "reports")
    return f"{plural(len(cells), 'cell', 'cells')}, {counted} counted"
