"""Reads everything in a store and lists what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rappor.errors import StoreError
from rappor.store.definition_rules import parse
from rappor.store.sqlite import (
    audit,
    cell_rows,
    commits,
    count_rows,
    definitions,
    imported_files,
    report_chunks,
    schema,
    token_rows,
)
from rappor.store.sqlite.connection import FAILURES, Connection

_MAX_PROBLEMS = 100


def problems(connection: Connection) -> list[str]:
    """Everything that is wrong in the file, at most 100 items."""
    found: list[str] = []

    def attempt(check: Callable[[], object]) -> None:
        try:
            check()
        except StoreError as error:
            found.append(str(error))
        except FAILURES as error:
            found.append(f"damaged ({error})")

    attempt(lambda: found.extend(_sqlite(connection)))
    attempt(lambda: schema.verify(connection))
    attempt(lambda: _definitions(connection))
    attempt(lambda: _cells(connection, attempt))
    attempt(lambda: found.extend(token_rows.problems(connection)))
    attempt(lambda: commits.read(connection))
    attempt(lambda: imported_files.verify(connection))
    attempt(lambda: audit.read(connection))
    return list(dict.fromkeys(found))[:_MAX_PROBLEMS]


def _sqlite(connection: Connection) -> list[str]:
    """What SQLite's own checks find."""
    said = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
    lost = connection.execute("PRAGMA foreign_key_check").fetchall()
    wrong = [f"SQLite: {line}" for line in said if line != "ok"]
    return wrong + [f"SQLite: a row of {row[0]} refers to one that is not there" for row in lost]


def _definitions(connection: Connection) -> None:
    for saved in definitions.read(connection):
        parsed = parse(saved.toml)
        if (parsed.name, parsed.version) != (saved.collection, saved.version):
            raise StoreError(f"the definition of {saved.collection} v{saved.version} is another's")


def _cells(connection: Connection, attempt: Callable[[Callable[[], object]], None]) -> None:
    cells = cell_rows.read(connection)
    for cell in cells:
        attempt(partial(count_rows.read, connection, cell))
        attempt(partial(report_chunks.read, connection, cell))
        attempt(partial(_agrees, connection, cell))
    for table, wanted in (
        ("counts", sum(cell.cohorts for cell in cells)),
        ("reports", sum(cell.chunks for cell in cells)),
    ):
        (there,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
        if there != wanted:
            raise StoreError(f"{table}: {there} rows are there, {wanted} belong to cells")


def _agrees(connection: Connection, cell: cell_rows.CellRow) -> None:
    """StoreError unless a cell has the parameters of its definition."""
    wanted = definitions.expected(connection, cell.key)
    if (cell.params_digest, cell.k, cell.m) != tuple(wanted):
        raise StoreError(f"{cell.key}: made with other parameters than its definition says")
