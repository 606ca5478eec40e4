"""Outcomes -> files: PNG, SVG and CSV, a page for each experiment, one for all, summary.json."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path

from rappor import csv_cells
from rappor.charts.render import render
from rappor.errors import ParamsError
from rappor.experiments.experiment import Outcome, Table
from rappor.experiments.page import experiment_page, index_page
from rappor.experiments.style import darkened
from rappor.experiments.summary import FILE, Document, RunRecord, merged
from rappor.files import replacing

_TAKEN = ("index", "remarks", "verdicts")
_STEM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def write_experiment(done: RunRecord, directory: Path) -> Path:
    """Write DIRECTORY/NAME/ and return its page."""
    folder = directory / done.name
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    with ExitStack() as stack:  # the files of a run before stay until all of these are complete

        def new(name: str) -> Path:
            return stack.enter_context(replacing(folder / name))

        if done.outcome is not None:
            check_names(done.outcome)
            for figure in done.outcome.figures:
                render(figure.spec, new(f"{figure.name}.png"))
                render(figure.spec, new(f"{figure.name}.svg"))
                render(darkened(figure.spec), new(f"{figure.name}-dark.svg"))
            for table in done.outcome.tables:
                _write_table(table, new(f"{table.name}.csv"))
        new(page.name).write_text(experiment_page(done), encoding="utf-8")
    return page


def write_summary(directory: Path, entries: Document) -> Path:
    """Write DIRECTORY/summary.json and index.html, keeping experiments of earlier runs there."""
    directory.mkdir(parents=True, exist_ok=True)
    document = merged(directory, entries)
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    page = directory / "index.html"
    with replacing(directory / FILE) as summary_draft, replacing(page) as page_draft:
        summary_draft.write_text(text + "\n", encoding="utf-8")
        page_draft.write_text(index_page(document), encoding="utf-8")
    return page


def check_names(outcome: Outcome) -> None:
    """Refuse names that would not do as a file's, or that two things share."""
    names = [figure.name for figure in outcome.figures] + [table.name for table in outcome.tables]
    for name in names:
        if not _STEM.fullmatch(name) or names.count(name) > 1 or name in _TAKEN:
            raise ParamsError(
                f"a figure or table needs a name of its own in small letters, got {name!r}"
            )


def _write_table(table: Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        handle.write(csv_cells.line(table.columns))
        handle.writelines(map(csv_cells.line, table.rows))
