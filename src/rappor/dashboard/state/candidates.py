"""Lists of candidates by collection and version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from rappor.errors import ParamsError

_COLUMNS = "collection, version, size, made, actor"


@dataclass(frozen=True, slots=True)
class CandidateList:
    """One version of a collection's list of candidates.

    Attributes:
        collection: whose.
        version: 1, 2, …
        strings: the candidates, in the order given.
        made: when, in UTC.
        actor: who saved it.
    """

    collection: str
    version: int
    strings: tuple[str, ...] = field(repr=False)
    made: str
    actor: str


@dataclass(frozen=True, slots=True)
class CandidateVersion:
    """A version of a list without its strings."""

    collection: str
    version: int
    size: int
    made: str
    actor: str


def save(
    connection: sqlite3.Connection, collection: str, strings: Iterable[str], made: str, actor: str
) -> int:
    """Keep a list as the next version, and return its number; ParamsError where it is empty."""
    kept = tuple(strings)
    if not kept:
        raise ParamsError("a list of candidates has at least one; this one is empty")
    if any("\n" in each for each in kept):
        raise ParamsError("a candidate has no line break in it: one stands on each line")
    (last,) = connection.execute(
        "SELECT max(version) FROM candidates WHERE collection=?", (collection,)
    ).fetchone()
    version = (last or 0) + 1
    connection.execute(
        "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?)",
        (collection, version, "\n".join(kept), len(kept), made, actor),
    )
    return int(version)


def read(
    connection: sqlite3.Connection, collection: str, version: int | None
) -> CandidateList | None:
    """A version of a list, the newest where none is named; None where there is none."""
    row = connection.execute(
        "SELECT collection, version, strings, made, actor FROM candidates "
        "WHERE collection=? AND (? IS NULL OR version=?) ORDER BY version DESC LIMIT 1",
        (collection, version, version),
    ).fetchone()
    if row is None:
        return None
    name, number, strings, made, actor = row
    return CandidateList(name, number, tuple(strings.split("\n")), made, actor)


def versions(connection: sqlite3.Connection, collection: str) -> list[CandidateVersion]:
    """All versions of a collection's list, newest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM candidates WHERE collection=? ORDER BY version DESC",  # noqa: S608 - our own names
        (collection,),
    )
    return [CandidateVersion(*row) for row in rows]


def sizes(connection: sqlite3.Connection) -> dict[str, int]:
    """How many candidates the newest list of each collection has."""
    rows = connection.execute(
        "SELECT collection, size, max(version) FROM candidates GROUP BY collection"
    )
    return {collection: size for collection, size, _ in rows}
