"""Retention: what is too old is removed, so that its bytes are gone (R19; SECURITY)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from rappor.collection import Collection, Registry, days_of
from rappor.errors import ParamsError
from rappor.store.cells import CellKey
from rappor.store.sqlite import cell_rows, chunks, definitions, folds, pages, tokens
from rappor.store.sqlite.cell_rows import CellRow
from rappor.store.sqlite.connection import Connection
from rappor.store.types import Retained


class RetentionPlan(NamedTuple):
    """What is to go."""

    reports: list[CellRow]
    counts: list[CellRow]
    unknown: list[str]
    tokens: int
    weekly: bool


def plan(connection: Connection, today: date, registry: Registry | None) -> RetentionPlan:
    """What is too old today: by the registry, else by the definitions in the store."""
    saved = {
        (each.collection, each.version): definitions.parse(each.toml)
        for each in definitions.read(connection)
    }
    every = [*saved.values(), *(() if registry is None else registry)]
    weekly = any(each.period == "week" for each in every)
    found = RetentionPlan([], [], [], tokens.expired(connection, today, weekly), weekly)
    for cell in cell_rows.read(connection):
        definition = _definition(cell.key, registry, saved)
        if definition is None:
            found.unknown.append(f"{cell.key.collection} v{cell.key.version}")
        elif definition.expires is not None and definition.expires <= today:
            found.counts.append(cell)
        elif cell.kept and _last_day(cell.key, definition) < today:
            found.reports.append(cell)
    return found


def _definition(
    key: CellKey, registry: Registry | None, saved: dict[tuple[str, int], Collection]
) -> Collection | None:
    if registry is not None:
        try:
            return registry.get(key.collection, key.version)
        except ParamsError:
            pass
    return saved.get((key.collection, key.version))


def _last_day(key: CellKey, definition: Collection) -> date:
    """The last day on which a cell's reports are kept: keep_reports_days after its period's end."""
    return days_of(key.period)[1] + timedelta(days=definition.keep_reports_days)


def summary(found: RetentionPlan, today: date, dry_run: bool) -> Retained:
    """The plan as the outside sees it."""
    gone = [*found.reports, *found.counts]
    return Retained(
        today=today,
        reports=sum(cell.kept for cell in gone),
        report_cells=tuple(cell.key for cell in gone if cell.kept),
        count_cells=tuple(cell.key for cell in found.counts),
        counted=sum(cell.reports for cell in found.counts),
        tokens=found.tokens,
        unknown=tuple(sorted(set(found.unknown))),
        dry_run=dry_run,
    )


def execute(connection: Connection, found: RetentionPlan, today: date) -> None:
    """Remove all of it, in an open transaction."""
    for cell in found.counts:
        folds.remove(connection, cell)
    for cell in found.reports:
        chunks.remove(connection, cell)
        cell.save(connection)
    if found.counts or found.reports:
        pages.rewrite(connection, "reports")
    if found.counts:
        pages.rewrite(connection, "counts")
    if found.tokens:
        tokens.forget(connection, today, found.weekly)
