"""Retention: removes what is too old, so that its bytes are gone from the disk."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from rappor.collection import Registry
from rappor.store.contract import RetentionResult
from rappor.store.retention_rules import RetentionRules
from rappor.store.sqlite import (
    cell_rows,
    count_rows,
    definitions,
    page_layout,
    report_chunks,
    token_rows,
)
from rappor.store.sqlite.cell_rows import CellRow
from rappor.store.sqlite.connection import Connection


class RetentionPlan(NamedTuple):
    """What is to be removed: cells of reports and of counts, and the number of tokens."""

    reports: list[CellRow]
    counts: list[CellRow]
    unknown: list[str]
    tokens: int
    weekly: bool


def plan(connection: Connection, today: date, registry: Registry | None) -> RetentionPlan:
    """What is too old today, by the registry or else by the saved definitions."""
    rules = RetentionRules(definitions.read(connection), registry, today)
    expired = token_rows.expired(connection, today, rules.weekly)
    planned = RetentionPlan([], [], [], expired, rules.weekly)
    for cell in cell_rows.read(connection):
        match rules.verdict(cell.key, cell.kept):
            case "unknown":
                planned.unknown.append(f"{cell.key.collection} v{cell.key.version}")
            case "counts":
                planned.counts.append(cell)
            case "reports":
                planned.reports.append(cell)
    return planned


def summary(planned: RetentionPlan, today: date, dry_run: bool) -> RetentionResult:
    """The plan as `Store.retain` returns it."""
    gone = [*planned.reports, *planned.counts]
    return RetentionResult(
        today=today,
        reports=sum(cell.kept for cell in gone),
        report_cells=tuple(cell.key for cell in gone if cell.kept),
        count_cells=tuple(cell.key for cell in planned.counts),
        counted=sum(cell.reports for cell in planned.counts),
        tokens=planned.tokens,
        unknown=tuple(sorted(set(planned.unknown))),
        dry_run=dry_run,
    )


def execute(connection: Connection, planned: RetentionPlan, today: date) -> None:
    """Remove what was planned, within a transaction."""
    for cell in planned.counts:
        count_rows.remove(connection, cell)
    for cell in planned.reports:
        report_chunks.remove(connection, cell)
        cell.save(connection)
    if planned.counts or planned.reports:
        page_layout.rewrite(connection, "reports")
    if planned.counts:
        page_layout.rewrite(connection, "counts")
    if planned.tokens:
        token_rows.forget(connection, today, planned.weekly)
