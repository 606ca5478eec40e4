"""The lists of candidates that a data folder holds: those that the dashboard saved."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from rappor.errors import StoreError

STATE_FILE = "dashboard.sqlite"  # in the data folder; only the dashboard writes it


@dataclass(frozen=True, slots=True)
class CandidateList:
    """One version of a collection's list of candidates.

    Attributes:
        collection: the name of the collection.
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


def saved_candidates(
    data: str | PathLike[str], collection: str, version: int | None = None
) -> CandidateList | None:
    """A version of the list that the dashboard saved, by default the newest; None without one.

    Raises:
        StoreError: the dashboard's file cannot be read.
    """
    path = Path(data).expanduser() / STATE_FILE
    if not path.is_file():
        return None
    try:
        log = path.with_name(f"{path.name}-wal")
        in_use = log.is_file() and log.stat().st_size > 0
        # Without a log the file is whole: no lock is needed, and no file is left in the folder.
        how = "mode=ro" if in_use else "mode=ro&immutable=1"
        address = f"{path.absolute().as_uri()}?{how}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return read_list(connection, collection, version)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: its lists of candidates cannot be read ({error})") from None


def read_list(
    connection: sqlite3.Connection, collection: str, version: int | None
) -> CandidateList | None:
    """A version of a list, by default the newest; None if there is none."""
    row = connection.execute(
        "SELECT collection, version, strings, made, actor FROM candidates "
        "WHERE collection=? AND (? IS NULL OR version=?) ORDER BY version DESC LIMIT 1",
        (collection, version, version),
    ).fetchone()
    if row is None:
        return None
    name, number, strings, made, actor = row
    return CandidateList(name, number, tuple(strings.split("\n")), made, actor)
