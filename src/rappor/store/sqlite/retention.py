"""Retention: removes what is too old, so that its bytes are gone from the disk."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from rappor.collection import Collection, Registry, days_of
from rappor.errors import ParamsError
from rappor.store.cell_key import CellKey
from rappor.store.contract import RetentionResult
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
    saved = {
        (definition.collection, definition.version): definitions.parse(definition.toml)
        for definition in definitions.read(connection)
    }
    collections = [*saved.values(), *(() if registry is None else registry)]
    weekly = any(collection.period == "week" for collection in collections)
    planned = RetentionPlan([], [], [], token_rows.expired(connection, today, weekly), weekly)
    for cell in cell_rows.read(connection):
        definition = _definition(cell.key, registry, saved)
        if definition is None:
            planned.unknown.append(f"{cell.key.collection} v{cell.key.version}")
        elif _has_expired(definition, today) and definition.on_expiry == "delete":
            planned.counts.append(cell)
        elif cell.kept and _reports_end(cell.key, definition, today):
            planned.reports.append(cell)
    return planned


def _definition(
    key: CellKey, registry: Registry | None, saved: dict[tuple[str, int], Collection]
) -> Collection | None:
    if registry is not None:
        try:
            return registry.get(key.collection, key.version)
        except ParamsError:
            pass
    return saved.get((key.collection, key.version))


def _has_expired(definition: Collection, today: date) -> bool:
    return definition.expires is not None and definition.expires <= today


def _reports_end(key: CellKey, definition: Collection, today: date) -> bool:
    """Whether the single reports of a cell are too old, or their collection has expired."""
    return _has_expired(definition, today) or _last_day(key, definition) < today


def _last_day(key: CellKey, definition: Collection) -> date:
    """The last day on which reports are kept: `keep_reports_days` after the period's end."""
    return days_of(key.period)[1] + timedelta(days=definition.keep_reports_days)


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
