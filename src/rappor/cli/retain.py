"""`rappor retain`: remove from the store what is too old."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.output import note, say, say_json
from rappor.cli.store_options import actor, add_data, open_data, today, verb
from rappor.collection import Registry

if TYPE_CHECKING:
    from rappor.store import Retained


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.set_defaults(run=run)
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-11-16") from None


def run(args: argparse.Namespace) -> int:
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
        say_json(_document(done))
    else:
        for line in _lines(done):
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
        from rappor.dashboard.state import State

        with closing(State(file)) as state:
            state.keep_results_of(stored)


def _lines(done: Retained) -> list[str]:
    verb_ = "would be removed" if done.dry_run else "removed"
    lines = [
        f"{done.reports:,} kept reports in {len(done.report_cells):,} cells {verb_}",
        f"{done.counted:,} counted reports in {len(done.count_cells):,} cells of expired "
        f"collections {verb_}",
        f"{done.tokens:,} batch tokens {verb_}",
    ]
    names = dict.fromkeys(f"{key.collection} v{key.version}" for key in done.count_cells)
    return lines + [f"  expired: {name}" for name in names]


def _document(done: Retained) -> dict[str, Any]:
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
