"""`rappor status`: what a data folder holds, and whether it is sound."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rappor.cli.output import note, say, say_json, table
from rappor.cli.store_options import add_data, open_data, saved, shown, today, verb, where
from rappor.collection import ExpiryState, Registry, announcement, expiring, expiry_state
from rappor.collection.expiry import NOTICE_DAYS, days_left
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import CellSummary, Store

DAMAGED = 1  # the exit code of `rappor status`


def register(verbs: Any) -> argparse.ArgumentParser:
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
    parser.add_argument(
        "--audit", action="store_true", help="also print the audit log of the store"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_status)
    return parser


def run_status(args: argparse.Namespace) -> int:
    """Verify the store and print what it holds."""
    if args.accept_loss:
        _accept_loss(where(args))
    with closing(open_data(where(args))) as store:
        problems = store.losses() if args.no_check else store.check()
        document = _status_document(store, args, problems)
    document["server_keeps"] = _server_keeps(where(args))
    if args.json:
        say_json(document)
    else:
        for line in _status_lines(document):
            say(line)
    for line in document.get("announcements", ()):
        note(f"note: {line}")
    for line in document["server_keeps"]:
        note(f"note: the database's server keeps more than the store: {line}")
    for problem in problems:
        note(f"problem: {problem}")
    return DAMAGED if problems else 0


def _server_keeps(location: str) -> list[str]:
    """What a database's server keeps by its settings, and a data folder would not."""
    from rappor.store.open import url_of

    url = url_of(location)
    if url is None:
        return []
    from rappor.store.postgres.session import opened

    with opened(url, read_only=True) as connection:
        found = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name LIKE 'log%' "
            "OR name = 'track_commit_timestamp'"
        ).fetchall()
    return server_keeps({str(name): str(setting) for name, setting in found})


def server_keeps(settings: Mapping[str, str]) -> list[str]:
    """Settings that keep times or reports: docs/threat-model.md, "What a database keeps".

    >>> server_keeps({"track_commit_timestamp": "on", "log_statement": "ddl"})
    ['track_commit_timestamp = on: the exact time of each commit, so of tokens; turn it off']
    """
    kept = []
    if settings.get("track_commit_timestamp") == "on":
        kept.append(
            "track_commit_timestamp = on: the exact time of each commit, so of tokens; turn it off"
        )
    if settings.get("log_parameter_max_length") == "0":
        return kept
    level, duration = (
        settings.get("log_statement"),
        settings.get("log_min_duration_statement", "-1"),
    )
    logging = [f"log_statement = {level}"] if level in ("mod", "all") else []
    logging += [] if duration == "-1" else [f"log_min_duration_statement = {duration}"]
    return kept + [
        f"{setting}: its log has tokens and counts with times; turn it off for this database, or "
        "set log_parameter_max_length = 0"
        for setting in logging
    ]


def _accept_loss(data: str) -> None:
    """Open a store although batches are lost; the audit log records who did, and what is lost."""
    with closing(open_data(data, read_only=False, accept_loss=actor())) as store:
        accepted = store.accepted
    note(f"accepted: {accepted}" if accepted else "nothing is lost: nothing to accept")


def _status_document(store: Store, args: argparse.Namespace, problems: list[str]) -> dict[str, Any]:
    size = store.size()
    disk = {"store_bytes": size.used, "free_bytes": size.free}
    document: dict[str, Any] = {"data": shown(where(args)), "disk": disk, "problems": problems}
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
    size, free = f"{disk['store_bytes'] / 1e6:,.1f} MB", disk["free_bytes"]
    lines.append(
        f"database: {size} used"
        if free is None
        else f"disk: {size} used, {free / 1e6:,.1f} MB free"
    )
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
