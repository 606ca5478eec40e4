"""`rappor backup`: one verified file with all that the store holds."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Any

from rappor.cli.output import note, say_json
from rappor.cli.store_options import actor, add_data, new_file, open_data, verb


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
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
