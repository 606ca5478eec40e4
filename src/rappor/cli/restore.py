"""`rappor restore`: a backup into a data folder that has no store."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Any

from rappor.cli.arguments import need_analysis
from rappor.cli.output import note, say_json
from rappor.cli.store_options import actor, add_data, open_data, verb


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
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
