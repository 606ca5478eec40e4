"""Read everything and say each thing that is wrong (B4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rappor.errors import StoreError
from rappor.store.sqlite import (
    audit,
    cell_rows,
    chunks,
    commits,
    definitions,
    folds,
    imported_files,
    schema,
    tokens,
)
from rappor.store.sqlite.connection import FAILURES, Connection

_MOST = 100


def problems(connection: Connection) -> list[str]:
    """All that is wrong with what is in the file, at most 100 things."""
    found: list[str] = []

    def attempt(what: Callable[[], object]) -> None:
        try:
            what()
        except StoreError as error:
            found.append(str(error))
        except FAILURES as error:
            found.append(f"damaged ({error})")

    attempt(lambda: found.extend(_sqlite(connection)))
    attempt(lambda: schema.verify(connection))
    attempt(lambda: _definitions(connection))
    attempt(lambda: _cells(connection, attempt))
    attempt(lambda: found.extend(tokens.problems(connection)))
    attempt(lambda: commits.read(connection))
    attempt(lambda: imported_files.verify(connection))
    attempt(lambda: audit.read(connection))
    return list(dict.fromkeys(found))[:_MOST]


def _sqlite(connection: Connection) -> list[str]:
    """What SQLite itself finds."""
    said = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST})")]
    lost = connection.execute("PRAGMA foreign_key_check").fetchall()
    wrong = [f"SQLite: {line}" for line in said if line != "ok"]
    return wrong + [f"SQLite: a row of {row[0]} refers to one that is not there" for row in lost]


def _definitions(connection: Connection) -> None:
    for each in definitions.read(connection):
        found = definitions.parse(each.toml)
        if (found.name, found.version) != (each.collection, each.version):
            raise StoreError(f"the definition of {each.collection} v{each.version} is another's")


def _cells(connection: Connection, attempt: Callable[[Callable[[], object]], None]) -> None:
    cells = cell_rows.read(connection)
    for cell in cells:
        attempt(partial(folds.read, connection, cell))
        attempt(partial(chunks.read, connection, cell))
        attempt(partial(_agrees, connection, cell))
    for table, wanted in (
        ("counts", sum(cell.cohorts for cell in cells)),
        ("reports", sum(cell.chunks for cell in cells)),
    ):
        (there,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
        if there != wanted:
            raise StoreError(f"{table}: {there} rows are there, {wanted} belong to cells")


def _agrees(connection: Connection, cell: cell_rows.CellRow) -> None:
    """StoreError unless a cell is what its definition says."""
    wanted = definitions.expected(connection, cell.key)
    if (cell.params_digest, cell.k, cell.m) != tuple(wanted):
        raise StoreError(f"{cell.key}: made with other parameters than its definition says")
