"""`rappor status`: what the store holds, and whether it is sound."""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.output import note, say, say_json, table
from rappor.cli.store_options import actor, add_data, open_data, saved, today, verb

if TYPE_CHECKING:
    from rappor.collection import Registry
    from rappor.store import CellSummary, Store

DAMAGED = 1


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Look, and say."""
    if args.accept_loss:
        _accept_loss(args.data)
    with closing(open_data(args.data)) as store:
        problems = store.losses() if args.no_check else store.check()
        document = _document(store, args, problems)
    if args.json:
        say_json(document)
    else:
        for line in _lines(document):
            say(line)
    for problem in problems:
        note(f"problem: {problem}")
    return DAMAGED if problems else 0


def _accept_loss(data: str) -> None:
    """Open a store in spite of what is missing; the audit log says who did, and what it was."""
    with closing(open_data(data, read_only=False, accept_loss=actor())) as store:
        accepted = store.accepted
    note(f"accepted: {accepted}" if accepted else "nothing is missing: nothing to accept")


def _document(store: Store, args: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
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


def _lines(document: dict[str, Any]) -> list[str]:
    disk = document["disk"]
    lines = []
    if document["collections"]:
        head = ("collection", "periods", "from", "to", "cells", "reports", "kept", "expires")
        rows = [head, *map(_row, document["collections"])]
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


def _row(each: dict[str, Any]) -> tuple[str, ...]:
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
