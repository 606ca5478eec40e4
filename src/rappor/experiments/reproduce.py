"""Run one experiment and write its files: figures, tables, pages and summary.json.

An experiment that fails is a result too.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

from rappor import csv_cells
from rappor.charts.render import to_png, to_svg
from rappor.checks import whole
from rappor.errors import ParamsError
from rappor.experiments import check_name, load
from rappor.experiments.experiment import Experiment, Figure, Outcome, Table
from rappor.experiments.pages import darkened, experiment_page, index_page
from rappor.experiments.seeds import Progress
from rappor.experiments.summary import FILE, Document, RunRecord, entry, merged
from rappor.files import write_bytes, write_text

FEWEST_SEEDS = 2
_TAKEN = ("index", "remarks", "verdicts")
_STEM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def run(name: str, seeds: int, progress: Progress, folder: Path | None = None) -> RunRecord:
    """Run one experiment; an error in it becomes part of the result."""
    check_name(name, folder)
    whole("seeds", seeds, FEWEST_SEEDS)
    began = time.monotonic()
    experiment: Experiment | None = None
    try:
        experiment = load(name, folder)
        outcome = experiment.run(seeds, progress)
    except Exception as error:  # the page says so, and other experiments go on
        return RunRecord(name, experiment, None, error, seeds, time.monotonic() - began)
    return RunRecord(name, experiment, outcome, None, seeds, time.monotonic() - began)


def reproduce(
    name: str, directory: Path, seeds: int, progress: Progress, folder: Path | None = None
) -> RunRecord:
    """Run one experiment, write DIRECTORY/NAME/ and bring index.html and summary.json up to date.

    Args:
        name: one of `rappor.experiments.names(folder)`.
        directory: created if missing; other experiments in it are kept.
        seeds: how many, 2 or more; use 20 or more for reliable figures.
        progress: called with a line of text now and then.
        folder: experiments of one's own, a folder for each.
    """
    new = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    directory.mkdir(parents=True, exist_ok=True)  # before the work, because it may fail
    try:
        done = run(name, seeds, progress, folder)
        progress("drawing")
        done = _written(done, directory)
        write_summary(directory, {name: entry(done)})
    except BaseException:  # an interrupt, or a disk that is full
        _remove_empty(new)
        raise
    return done


def _remove_empty(directories: list[Path]) -> None:
    """Remove the directories that hold nothing, innermost first."""
    for directory in directories:
        try:
            directory.rmdir()
        except OSError:
            return


def _written(done: RunRecord, directory: Path) -> RunRecord:
    """Write the files of a run; if a figure or table cannot be written, the run has failed."""
    try:
        write_experiment(done, directory)
    except OSError:
        raise  # a full disk or a forbidden directory would fail them all
    except Exception as error:  # a figure that cannot be drawn fails this experiment alone
        done = replace(done, outcome=None, error=error)
        write_experiment(done, directory)
    return done


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
    """Refuse names unfit for a file, and names that two figures, tables or columns share."""
    names = [figure.name for figure in outcome.figures] + [table.name for table in outcome.tables]
    for name in names:
        if not _STEM.fullmatch(name) or names.count(name) > 1 or name in _TAKEN:
            raise ParamsError(
                f"a figure or table needs a name of its own in small letters, got {name!r}"
            )
    for table in outcome.tables:
        if len(set(table.columns)) < len(table.columns):
            raise ParamsError(f"each column of table {table.name} needs a name of its own")


def _write_figure(figure: Figure, folder: Path) -> None:
    write_bytes(folder / f"{figure.name}.png", to_png(figure.spec))
    write_text(folder / f"{figure.name}.svg", to_svg(figure.spec))
    write_text(folder / f"{figure.name}-dark.svg", to_svg(darkened(figure.spec)))


def _write_table(table: Table, folder: Path) -> None:
    lines = map(csv_cells.line, [table.columns, *table.rows])
    write_text(folder / f"{table.name}.csv", "".join(lines))
