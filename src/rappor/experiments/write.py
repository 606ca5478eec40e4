"""Outcomes -> files: PNG, SVG and CSV, a page for each experiment, one for all, summary.json."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rappor import csv_cells
from rappor.charts.render import render
from rappor.errors import ParamsError
from rappor.experiments.experiment import Figure, Outcome, Table
from rappor.experiments.page import experiment_page, index_page
from rappor.experiments.style import darkened
from rappor.experiments.summary import FILE, Document, RunRecord, merged

_TAKEN = ("index", "remarks", "verdicts")
_STEM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def write_experiment(done: RunRecord, directory: Path) -> Path:
    """Write DIRECTORY/NAME/ and return its page."""
    folder = directory / done.name
    folder.mkdir(parents=True, exist_ok=True)
    if done.outcome is not None:
        check_names(done.outcome)
        for figure in done.outcome.figures:
            _write_figure(figure, folder)
        for table in done.outcome.tables:
            _write_table(table, folder)
    page = folder / "index.html"
    page.write_text(experiment_page(done), encoding="utf-8")
    return page


def write_summary(directory: Path, entries: Document) -> Path:
    """Write DIRECTORY/summary.json and index.html, keeping experiments of earlier runs there."""
    directory.mkdir(parents=True, exist_ok=True)
    document = merged(directory, entries)
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    (directory / FILE).write_text(text + "\n", encoding="utf-8")
    page = directory / "index.html"
    page.write_text(index_page(document), encoding="utf-8")
    return page


def check_names(outcome: Outcome) -> None:
    """Refuse names that would not do as a file's, or that two things share."""
    names = [figure.name for figure in outcome.figures] + [table.name for table in outcome.tables]
    for name in names:
        if not _STEM.fullmatch(name) or names.count(name) > 1 or name in _TAKEN:
            raise ParamsError(
                f"a figure or table needs a name of its own in small letters, got {name!r}"
            )


def _write_figure(figure: Figure, folder: Path) -> None:
    render(figure.spec, folder / f"{figure.name}.png")
    render(figure.spec, folder / f"{figure.name}.svg")
    render(darkened(figure.spec), folder / f"{figure.name}-dark.svg")


def _write_table(table: Table, folder: Path) -> None:
    with (folder / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as handle:
        handle.write(csv_cells.line(table.columns))
        handle.writelines(map(csv_cells.line, table.rows))
