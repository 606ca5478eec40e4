"""Results of jobs by key, and the jobs themselves as they were last saved."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rappor.dashboard.state.database import time_of

MAX_RESULTS = 50  # of each collection and kind; the oldest go first
_FEWER = {"draft": 5, "google": 2}  # of kinds that are large, and soon of no use
MAX_JOBS = 200  # that are remembered
_LIST = "draft"  # the kind of a list of candidates that is not saved yet: made of no counts
_COLUMNS = "key, collection, kind, meta, content, made"


@dataclass(frozen=True, slots=True)
class SavedResult:
    """What a job found.

    Attributes:
        key: the digest of all that changes it.
        collection: whose result it is.
        kind: of the job, such as "decode".
        meta: a JSON object.
        table: Arrow IPC bytes, or None.
        made: when, in UTC.
    """

    key: str
    collection: str
    kind: str
    meta: dict[str, Any] = field(repr=False)
    table: bytes | None = field(repr=False)
    made: datetime


@dataclass(frozen=True, slots=True)
class SavedJob:
    """A job as it was last saved; `document` is what the job says about itself."""

    id: str
    kind: str
    key: str
    status: str
    document: dict[str, Any]
    made: str


def save(
    connection: sqlite3.Connection,
    key: str,
    kind: str,
    meta: dict[str, Any],
    table: bytes | None,
    made: str,
) -> None:
    """Keep a result in place of one with the same key; `meta["collection"]` says whose it is."""
    collection = str(meta.get("collection", ""))
    (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM results").fetchone()
    text = json.dumps(meta, allow_nan=False)
    connection.execute("DELETE FROM results WHERE key=?", (key,))
    connection.execute(
        "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, collection, kind, text, table, made, number),
    )
    connection.execute(
        "DELETE FROM results WHERE key IN (SELECT key FROM results WHERE collection=? AND kind=? "
        "ORDER BY number DESC LIMIT -1 OFFSET ?)",
        (collection, kind, _FEWER.get(kind, MAX_RESULTS)),
    )


def read(connection: sqlite3.Connection, key: str) -> SavedResult | None:
    """A result by its key."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM results WHERE key=?", (key,)).fetchone()  # noqa: S608 - our own names
    return None if row is None else _result(row)


def latest(connection: sqlite3.Connection, collection: str, kind: str) -> SavedResult | None:
    """The newest result of a collection."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM results WHERE collection=? AND kind=? "  # noqa: S608 - our own names
        "ORDER BY number DESC LIMIT 1",
        (collection, kind),
    ).fetchone()
    return None if row is None else _result(row)


def not_of(connection: sqlite3.Connection, stored: Set[tuple[str, int]]) -> list[str]:
    """The keys of results that were made of a version which is not stored."""
    names = {name for name, _ in stored}
    rows = connection.execute(
        "SELECT key, collection, json_extract(meta, '$.version'), json_extract(meta, '$.versions') "
        "FROM results WHERE kind != ?",
        (_LIST,),
    )
    gone = []
    for key, name, version, versions in rows:
        made_of = {version, *json.loads(versions or "[]")} - {None}
        if name not in names or any((name, each) not in stored for each in made_of):
            gone.append(key)
    return gone


def delete(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Forget results."""
    connection.executemany("DELETE FROM results WHERE key=?", [(key,) for key in keys])


def _result(row: Any) -> SavedResult:
    key, collection, kind, meta, content, made = row
    return SavedResult(key, collection, kind, json.loads(meta), content, time_of(made))


def latest_metas(connection: sqlite3.Connection, kind: str) -> dict[str, dict[str, Any]]:
    """Facts of the newest result of every collection that is about all dimensions together."""
    rows = connection.execute(
        "SELECT collection, meta, max(number) FROM results WHERE kind=? AND "
        "coalesce(json_extract(meta, '$.dimensions'), '[]') IN ('[]', '{}') GROUP BY collection",
        (kind,),
    )
    return {collection: json.loads(meta) for collection, meta, _ in rows}


def save_job(connection: sqlite3.Connection, job: SavedJob) -> None:
    """Keep a job as it is now; the oldest are forgotten."""
    connection.execute(
        "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "status=excluded.status, document=excluded.document",
        (
            job.id,
            job.kind,
            job.key,
            job.status,
            json.dumps(job.document, allow_nan=False),
            job.made,
        ),
    )
    connection.execute(
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs ORDER BY made DESC, id LIMIT -1 "
        "OFFSET ?)",
        (MAX_JOBS,),
    )


def jobs(connection: sqlite3.Connection) -> list[SavedJob]:
    """All jobs that are remembered, newest first."""
    rows = connection.execute(
        "SELECT id, kind, key, status, document, made FROM jobs ORDER BY made DESC, id"
    )
    return [
        SavedJob(number, kind, key, status, json.loads(document), made)
        for number, kind, key, status, document, made in rows
    ]
