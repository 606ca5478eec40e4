"""Run one experiment and write its files; one that fails is a result as well."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rappor.checks import whole
from rappor.experiments import check_name, load
from rappor.experiments.experiment import Experiment
from rappor.experiments.replicate import Progress
from rappor.experiments.summary import RunRecord, entry
from rappor.experiments.write import write_experiment, write_summary

FEWEST_SEEDS = 2


def run(name: str, seeds: int, progress: Progress) -> RunRecord:
    """Run one experiment; whatever goes wrong inside it becomes part of the result."""
    check_name(name)
    whole("seeds", seeds, FEWEST_SEEDS)
    began = time.monotonic()
    experiment: Experiment | None = None
    try:
        experiment = load(name)
        outcome = experiment.run(seeds, progress)
    except Exception as error:  # the page says so, and other experiments go on
        return RunRecord(name, experiment, None, error, seeds, time.monotonic() - began)
    return RunRecord(name, experiment, outcome, None, seeds, time.monotonic() - began)


def reproduce(name: str, directory: Path, seeds: int, progress: Progress) -> RunRecord:
    """Run one experiment, write DIRECTORY/NAME/ and bring index.html and summary.json up to date.

    Args:
        name: one of `rappor.experiments.NAMES`.
        directory: made if need be; other experiments in it are kept.
        seeds: how many, 2 or more; 20 or more for figures that are to be believed.
        progress: called with a line of text now and then.
    """
    new = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)  # before the work: it may be forbidden
    try:
        done = run(name, seeds, progress)
        progress("drawing")
        done = _written(done, directory)
        write_summary(directory, {name: entry(done)})
    except BaseException:  # an interrupt, or a disk that is full
        _remove_empty(new)
        raise
    return done


def _remove_empty(directories: list[Path]) -> None:
    """Remove the directories that hold nothing, innermost first."""
    for each in directories:
        try:
            each.rmdir()
        except OSError:
            return


def _written(done: RunRecord, directory: Path) -> RunRecord:
    """The same, with its files written; or failed, where a figure or table cannot be."""
    try:
        write_experiment(done, directory)
    except OSError:
        raise  # a full disk or a forbidden directory would fail them all
    except Exception as error:  # a figure that cannot be drawn fails this experiment alone
        done = replace(done, outcome=None, error=error)
        write_experiment(done, directory)
    return done
