"""Reads the contents of a whole store, and fills an empty one with those of another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey, cell_id
from rappor.store.checksums import checksum, typed
from rappor.store.contents import StoreContents
from rappor.store.contract import Fold
from rappor.store.postgres import audit, cell_rows, count_rows, definitions, report_chunks
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection
from rappor.store.postgres.count_rows import WriterRows
from rappor.store.postgres.writers import MERGED
from rappor.store.report_order import width

_AT_ONCE = 100_000  # tokens


def read(connection: Connection) -> StoreContents:
    """The contents at one moment, within a transaction that reads."""
    by_cell = groupby(cell_rows.of_cells(connection), key=lambda cell: cell.key)
    cells = [list(rows) for _, rows in by_cell]
    return StoreContents(
        definitions=definitions.read(connection),
        audit=audit.read(connection),
        imports=_imports(connection),
        folds=_folds(connection, cells),
        reports=_reports(connection, cells),
        tokens=_tokens(connection),
    )


def _imports(connection: Connection) -> list[tuple[bytes, str]]:
    rows = connection.execute("SELECT digest, detail FROM rappor.imports", binary=True)
    return [(digest, detail) for digest, detail in rows]


def _folds(connection: Connection, cells: list[list[WriterCell]]) -> Iterator[Fold]:
    for rows in cells:
        counts = count_rows.read(connection, rows)
        for cohort, total in enumerate(counts.totals.tolist()):
            if total:
                yield Fold(counts.cell, cohort, counts.params_digest, total, counts.ones[cohort])


def _reports(
    connection: Connection, cells: list[list[WriterCell]]
) -> Iterator[tuple[CellKey, int, bytes]]:
    for rows in cells:
        for cohort, reports in report_chunks.read(connection, rows[0]).items():
            yield rows[0].key, cohort, reports


def _tokens(connection: Connection) -> Iterator[tuple[int, list[bytes]]]:
    parts = connection.execute("SELECT part, day FROM rappor.token_parts ORDER BY part").fetchall()
    for part, day in parts:
        with connection.cursor(name="tokens", binary=True) as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute("SELECT token FROM rappor.tokens WHERE part = %s", (part,))
            while rows := cursor.fetchmany(_AT_ONCE):
                yield day, [row[0] for row in rows]


def load(connection: Connection, given: StoreContents) -> None:
    """Fill an empty store, within a transaction that holds STORE."""
    _check_empty(connection)
    for definition in given.definitions:
        definitions.save(connection, definition.toml)
    for entry in given.audit:
        audit.append(connection, entry)
    for digest, detail in given.imports:
        connection.execute(
            "INSERT INTO rappor.imports (digest, detail, checksum) VALUES (%s, %s, %s)",
            (digest, detail, checksum("imports", digest, detail)),
        )
    WriterRows(MERGED).apply(connection, given.folds)
    widths: dict[CellKey, int] = {}
    for key, cohort, reports in given.reports:
        if key not in widths:
            widths[key] = width(definitions.expected(connection, key).k)
        slot = cell_id(key) << COHORT_BITS | cohort
        report_chunks.put(connection, slot, widths[key], reports)
    for day, tokens in sorted(given.tokens, key=lambda pair: pair[0]):
        connection.execute("SELECT rappor.open_token_day(%s)", (day,))
        row = connection.execute("SELECT part FROM rappor.state").fetchone()
        (part,) = typed(row, "i", "the state")
        with connection.cursor().copy(
            "COPY rappor.tokens (token, part) FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["bytea", "int4"])
            for token in tokens:
                copy.write_row((token, part))
    connection.execute("UPDATE rappor.state SET epoch = epoch + 1")


def _check_empty(connection: Connection) -> None:
    for table in ("definitions", "cells", "audit", "imports", "token_parts"):
        row = connection.execute(f"SELECT 1 FROM rappor.{table} LIMIT 1").fetchone()  # noqa: S608 - our own names
        if row is not None:
            raise StoreError(
                "this database has a store with contents: a backup is not restored over a store; "
                "name another database"
            )
