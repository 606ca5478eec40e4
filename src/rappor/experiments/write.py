"""Outcomes -> files: PNG, SVG and CSV, a page for each experiment, one for all, summary.json."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rappor import csv_cells
from rappor.charts.render import to_png, to_svg
from rappor.errors import ParamsError
from rappor.experiments.experiment import Figure, Outcome, Table
from rappor.experiments.page import experiment_page, index_page
from rappor.experiments.style import darkened
from rappor.experiments.summary import FILE, Document, RunRecord, merged
from rappor.files import write_bytes, write_text

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
    write_text(page, experiment_page(done))
    return page


def write_summary(directory: Path, entries: Document) -> Path:
    """Write DIRECTORY/summary.json and index.html, keeping experiments of earlier runs there."""
    directory.mkdir(parents=True, exist_ok=True)
    document = merged(directory, entries)
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(directory / FILE, text + "\n")
    page = directory / "index.html"
    write_text(page, index_page(document))
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
    write_bytes(folder / f"{figure.name}.png", to_png(figure.spec))
    write_text(folder / f"{figure.name}.svg", to_svg(figure.spec))
    write_text(folder / f"{figure.name}-dark.svg", to_svg(darkened(figure.spec)))


def _write_table(table: Table, folder: Path) -> None:
    lines = map(csv_cells.line, [table.columns, *table.rows])
    write_text(folder / f"{table.name}.csv", "".join(lines))
