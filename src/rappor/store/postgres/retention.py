"""Retention: removes what is too old. Tables that rows were deleted from are rewritten.

The state says which of them are still to be rewritten: it is written with the deletion, so a
process that is killed in between leaves the work to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from rappor.collection import Registry
from rappor.store.cell_key import CellKey
from rappor.store.contract import RetentionResult
from rappor.store.postgres import cell_rows, count_rows, definitions, report_chunks, token_rows
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection, unlimited
from rappor.store.retention_rules import RetentionRules


@dataclass(slots=True)
class CellRemoval:
    """What is to be removed of one cell: its reports, or all of it.

    Attributes:
        key: the cell.
        rows: the rows of all its writers.
        kept: the number of its kept reports.
    """

    key: CellKey
    rows: list[WriterCell]
    kept: int

    @property
    def id(self) -> int:
        """The cell's number."""
        return self.rows[0].id


@dataclass(slots=True)
class PlannedRemoval:
    """What is to be removed: cells of reports and of counts, and parts of tokens."""

    reports: list[CellRemoval] = field(default_factory=list)
    counts: list[CellRemoval] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    parts: Sequence[int] = ()
    tokens: int = 0

    @property
    def tables(self) -> list[str]:
        """The tables that rows are deleted from."""
        removed = [cell for cell in (*self.reports, *self.counts) if cell.kept]
        return [*(["reports"] if removed else []), *(["counts", "cells"] if self.counts else [])]


def plan(connection: Connection, today: date, registry: Registry | None) -> PlannedRemoval:
    """What is too old today, by the registry or else by the saved definitions."""
    rules = RetentionRules(definitions.read(connection), registry, today)
    planned = PlannedRemoval()
    planned.parts, planned.tokens = token_rows.expired(connection, today, rules.weekly)
    kept = cell_rows.kept(connection)
    cells: dict[CellKey, list[WriterCell]] = {}
    for cell in cell_rows.of_cells(connection):
        cells.setdefault(cell.key, []).append(cell)
    for key, rows in cells.items():
        removal = CellRemoval(key, rows, kept.get(rows[0].id, 0))
        match rules.verdict(key, removal.kept):
            case "unknown":
                planned.unknown.append(f"{key.collection} v{key.version}")
            case "counts":
                planned.counts.append(removal)
            case "reports":
                planned.reports.append(removal)
    return planned


def summary(planned: PlannedRemoval, today: date, dry_run: bool) -> RetentionResult:
    """The plan as `Store.retain` returns it."""
    removed = [*planned.reports, *planned.counts]
    return RetentionResult(
        today=today,
        reports=sum(cell.kept for cell in removed),
        report_cells=tuple(cell.key for cell in removed if cell.kept),
        count_cells=tuple(cell.key for cell in planned.counts),
        counted=sum(row.reports for cell in planned.counts for row in cell.rows),
        tokens=planned.tokens,
        unknown=tuple(sorted(set(planned.unknown))),
        dry_run=dry_run,
    )


def execute(connection: Connection, planned: PlannedRemoval, today: date) -> None:
    """Remove what was planned, within a transaction that holds STORE."""
    connection.execute(
        "UPDATE rappor.state SET epoch = epoch + 1, retained = greatest(retained, %s), "
        "to_rewrite = ARRAY(SELECT DISTINCT unnest(to_rewrite || %s::text[]))",
        (today.toordinal(), planned.tables),
    )
    token_rows.forget(connection, planned.parts)
    removed = [cell.id for cell in (*planned.reports, *planned.counts) if cell.kept]
    if removed:
        report_chunks.remove(connection, removed)
    count_rows.remove(connection, (row for cell in planned.counts for row in cell.rows))


def rewrite(connection: Connection) -> None:
    """Write tables again without deleted rows, so that their bytes are gone from the files.

    It takes as long as the tables are large; only the wait for their locks is limited.
    """
    row = connection.execute("SELECT to_rewrite FROM rappor.state").fetchone()
    tables = [] if row is None else row[0]
    for table in tables:
        with unlimited(connection):
            connection.execute(f"VACUUM (FULL) rappor.{table}")
        connection.execute(
            "UPDATE rappor.state SET to_rewrite = array_remove(to_rewrite, %s)", (table,)
        )
