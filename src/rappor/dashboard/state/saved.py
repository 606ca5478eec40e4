"""Saved results, jobs and lists of candidates: the rows of the state, and their SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rappor.dashboard.state.database import time_of
from rappor.errors import ParamsError

MAX_RESULTS = 50  # of each collection and kind; the oldest are deleted
_FEWER = {"draft": 5, "google": 2}  # of kinds that are large and soon useless
MAX_JOBS = 200  # that are saved
_PENDING_LIST = "draft"  # the kind of a pending list of candidates, which is made of no counts
_RESULT_COLUMNS = "key, collection, kind, meta, content, made"
_LIST_COLUMNS = "collection, version, size, made, actor"


@dataclass(frozen=True, slots=True)
class SavedResult:
    """The result of a job.

    Attributes:
        key: a digest of everything that changes it.
        collection: the name of its collection.
        kind: the kind of its job, such as "decode".
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
    """A saved job; `document` is `Job.document`."""

    id: str
    kind: str
    key: str
    status: str
    document: dict[str, Any]
    made: str


def save_result(
    connection: sqlite3.Connection,
    key: str,
    kind: str,
    meta: dict[str, Any],
    table: bytes | None,
    made: str,
) -> None:
    """Save a result, and replace one of the same key; `meta["collection"]` names its collection."""
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


def read_result(connection: sqlite3.Connection, key: str) -> SavedResult | None:
    """A result by its key."""
    row = connection.execute(
        f"SELECT {_RESULT_COLUMNS} FROM results WHERE key=?",  # noqa: S608 - our own names
        (key,),
    ).fetchone()
    return None if row is None else _result(row)


def latest_result(connection: sqlite3.Connection, collection: str, kind: str) -> SavedResult | None:
    """The newest result of a collection."""
    row = connection.execute(
        f"SELECT {_RESULT_COLUMNS} FROM results WHERE collection=? AND kind=? "  # noqa: S608 - our own names
        "ORDER BY number DESC LIMIT 1",
        (collection, kind),
    ).fetchone()
    return None if row is None else _result(row)


def results_not_of(connection: sqlite3.Connection, stored: Set[tuple[str, int]]) -> list[str]:
    """The keys of results that were made of versions which are not stored."""
    names = {name for name, _ in stored}
    rows = connection.execute(
        "SELECT key, collection, json_extract(meta, '$.version'), json_extract(meta, '$.versions') "
        "FROM results WHERE kind != ?",
        (_PENDING_LIST,),
    )
    gone = []
    for key, name, version, versions in rows:
        made_of = {version, *json.loads(versions or "[]")} - {None}
        if name not in names or any((name, version) not in stored for version in made_of):
            gone.append(key)
    return gone


def delete_results(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Delete results."""
    connection.executemany("DELETE FROM results WHERE key=?", [(key,) for key in keys])


def _result(row: Any) -> SavedResult:
    key, collection, kind, meta, content, made = row
    return SavedResult(key, collection, kind, json.loads(meta), content, time_of(made))


def latest_metas(connection: sqlite3.Connection, kind: str) -> dict[str, dict[str, Any]]:
    """The facts of one result of each collection over all dimensions.

    That of the newest single period, which pages show first; else the result that was made last.
    """
    rows = connection.execute(
        "SELECT collection, meta FROM (SELECT collection, meta, row_number() OVER ("
        "PARTITION BY collection ORDER BY single DESC, iif(single, period, '') DESC, number DESC) "
        "AS place FROM (SELECT collection, meta, number, json_extract(meta, '$.periods[0]') AS "
        "period, coalesce(json_array_length(meta, '$.periods'), 0) = 1 AS single FROM results "
        "WHERE kind=? AND coalesce(json_extract(meta, '$.dimensions'), '[]') IN ('[]', '{}'))) "
        "WHERE place = 1",
        (kind,),
    )
    return {collection: json.loads(meta) for collection, meta in rows}


def save_job(connection: sqlite3.Connection, job: SavedJob) -> None:
    """Save a job; the oldest jobs are deleted."""
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


def read_jobs(connection: sqlite3.Connection) -> list[SavedJob]:
    """All saved jobs, newest first."""
    rows = connection.execute(
        "SELECT id, kind, key, status, document, made FROM jobs ORDER BY made DESC, id"
    )
    return [
        SavedJob(number, kind, key, status, json.loads(document), made)
        for number, kind, key, status, document, made in rows
    ]


@dataclass(frozen=True, slots=True)
class CandidateVersion:
    """A version of a list without its strings."""

    collection: str
    version: int
    size: int
    made: str
    actor: str


def save_list(
    connection: sqlite3.Connection, collection: str, strings: Iterable[str], made: str, actor: str
) -> int:
    """Save a list as the next version, and return its number; ParamsError if it is empty."""
    kept = tuple(strings)
    if not kept:
        raise ParamsError("a list of candidates needs at least one string; this one is empty")
    if any("\n" in string for string in kept):
        raise ParamsError("a candidate must not contain a line break")
    (last,) = connection.execute(
        "SELECT max(version) FROM candidates WHERE collection=?", (collection,)
    ).fetchone()
    version = (last or 0) + 1
    connection.execute(
        "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?)",
        (collection, version, "\n".join(kept), len(kept), made, actor),
    )
    return int(version)


def list_versions(connection: sqlite3.Connection, collection: str) -> list[CandidateVersion]:
    """All versions of a collection's list, newest first."""
    rows = connection.execute(
        f"SELECT {_LIST_COLUMNS} FROM candidates WHERE collection=? ORDER BY version DESC",  # noqa: S608 - our own names
        (collection,),
    )
    return [CandidateVersion(*row) for row in rows]


def list_sizes(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of candidates in the newest list of each collection."""
    rows = connection.execute(
        "SELECT collection, size, max(version) FROM candidates GROUP BY collection"
    )
    return {collection: size for collection, size, _ in rows}
