"""`rappor retain`: delete old data from a store."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.output import note, say, say_json
from rappor.cli.store_options import add_data, definitions_in, open_data, today, verb, where
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import RetentionResult


def register(verbs: Any) -> argparse.ArgumentParser:
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
    registry = None if args.collections is None else definitions_in(args.collections)
    with closing(open_data(where(args), read_only=args.dry_run)) as store:
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


def forget_results(data: str | None, stored: set[tuple[str, int]]) -> None:
    """Delete the dashboard's results of deleted counts; a running dashboard does this itself."""
    if data is None:
        return
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
