"""Reads everything in a store and lists what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey
from rappor.store.checksums import checksum, typed
from rappor.store.definition_rules import parse
from rappor.store.postgres import audit, cell_rows, count_rows, definitions, report_chunks
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection

_MAX_PROBLEMS = 100


def problems(connection: Connection) -> list[str]:
    """Everything that is wrong, at most 100 items."""
    found: list[str] = []

    def attempt(check: Callable[[], object]) -> None:
        try:
            check()
        except StoreError as error:
            found.append(str(error))

    attempt(lambda: _definitions(connection))
    attempt(lambda: _cells(connection, attempt))
    attempt(lambda: _tokens(connection))
    attempt(lambda: _imports(connection))
    attempt(lambda: audit.read(connection))
    return list(dict.fromkeys(found))[:_MAX_PROBLEMS]


def _definitions(connection: Connection) -> None:
    for saved in definitions.read(connection):
        parsed = parse(saved.toml)
        if (parsed.name, parsed.version) != (saved.collection, saved.version):
            raise StoreError(f"the definition of {saved.collection} v{saved.version} is another's")


def _cells(connection: Connection, attempt: Callable[[Callable[[], object]], None]) -> None:
    cells: dict[CellKey, list[WriterCell]] = {}
    for cell in cell_rows.of_cells(connection):
        cells.setdefault(cell.key, []).append(cell)
    for rows in cells.values():
        attempt(partial(count_rows.read, connection, rows))
        attempt(partial(report_chunks.read, connection, rows[0]))
        attempt(partial(_agrees, connection, rows[0]))
    for table, column, wanted in (
        ("counts", "id", sum(cell.cohorts for rows in cells.values() for cell in rows)),
        ("reports", "slot", None),
    ):
        belongs = f"EXISTS (SELECT 1 FROM rappor.cells c WHERE c.id = t.{column} >> {COHORT_BITS})"  # noqa: S608 - our own names
        row = connection.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {belongs}) FROM rappor.{table} t"  # noqa: S608 - our own names
        ).fetchone()
        there, known = typed(row, "ii", table)
        if there != known or (wanted is not None and there != wanted):
            raise StoreError(f"{table}: {there} rows are there, {wanted or known} belong to cells")


def _agrees(connection: Connection, cell: WriterCell) -> None:
    """StoreError unless a cell has the parameters of its definition."""
    wanted = definitions.expected(connection, cell.key)
    if (cell.params_digest, cell.k, cell.m) != tuple(wanted):
        raise StoreError(f"{cell.key}: made with other parameters than its definition says")


def _tokens(connection: Connection) -> None:
    row = connection.execute(
        "SELECT count(*) FROM rappor.tokens WHERE length(token) <> 16 "
        "OR part NOT IN (SELECT part FROM rappor.token_parts)"
    ).fetchone()
    if row != (0,):
        raise StoreError("tokens: damaged (one is not what was written there)")


def _imports(connection: Connection) -> None:
    query = "SELECT digest, detail, checksum FROM rappor.imports"
    for row in connection.execute(query, binary=True):
        digest, detail, seal = typed(row, "bsb", "imports")
        if checksum("imports", digest, detail) != seal:
            raise StoreError("imports: damaged (checksum)")
