"""The files that `rappor simulate` writes, and the command that decodes them."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.aggregate.kernel import count
from rappor.cli.paths import output_folder, path_of
from rappor.cli.result_files import replacing
from rappor.collection import Collection
from rappor.decoding.design import build_design
from rappor.decoding.mapfile import write_map
from rappor.errors import ParamsError
from rappor.mechanism.kinds import HASHED
from rappor.mechanism.views import Views
from rappor.privacy import add_up, epsilon_infinity, epsilon_one
from rappor.simulate.crowd import Crowd
from rappor.simulate.drawn_counts import Simulated, draw_counts, named
from rappor.simulate.full_reports import pieces
from rappor.simulate.output_files import (
    fits_lines,
    report_file,
    write_candidates,
    write_truth,
)
from rappor.simulate.populations import Population

Tick = Callable[[str], None]

_REPORTS = {"rappor": "reports.parquet", "google": "reports.csv"}
_REPORTS_FOLDER = "reports"  # of Spark: a file for each part
_COUNTS = {"rappor": "counts.npz", "google": "counts.csv"}
_MAP = "map.csv"
_DEFINITION = "collection.toml"
_LISTS = ("candidates.txt", "candidates.csv")


@dataclass(frozen=True, slots=True)
class SimulationJob:
    """What to write, and where; `on_spark` makes reports on a cluster and writes them to a folder.

    Without it they are made here. `views` are those of kind tuple.
    """

    output: str
    format: str
    population: Population
    counts_only: bool
    steps: bool
    on_spark: Callable[[Path], Simulated] | None = None
    views: Views | None = None

    @property
    def folder(self) -> Path:
        """The folder, with ~ expanded."""
        return path_of(self.output)

    def names(self, kind: str) -> list[str]:
        """The names of the files to write."""
        names = ["params.csv"]
        reports = _REPORTS[self.format] if self.on_spark is None else _REPORTS_FOLDER
        names += [] if self.counts_only else [reports]
        names += [_COUNTS[self.format], *self.lists]
        names += [] if self.views is None else [_DEFINITION]
        names += [_MAP] if self.format == "google" and kind == "string" else []
        return [*names, "truth.csv"]

    @property
    def lists(self) -> dict[str, list[str]]:
        """The candidates by the name of their file: one list, or one for each string of a tuple."""
        if self.views is None:
            listed = list(self.population.candidates)
            return {_LISTS[not fits_lines(listed)]: listed}
        held = [json.loads(text) for text in self.population.candidates]
        lists = {}
        for field in self.views.fields:
            if field.kind == "string":
                values = sorted({value[field.name] for value in held})
                ending = "txt" if fits_lines(values) else "csv"
                lists[f"candidates-{field.name}.{ending}"] = values
        return lists


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What was written: the counts, the names of the files, and the command that decodes them."""

    counts: Counts
    files: list[str]
    following: list[str]


def check_folder(job: SimulationJob, kind: str, *, force: bool) -> None:
    """Create the folder, or ParamsError if it has files of another run.

    With `force`, only files that this run would not replace are refused: they would not fit the
    new ones.
    """
    folder = output_folder(job.output)
    written = set(job.names(kind))
    known = {*_REPORTS.values(), _REPORTS_FOLDER, *_COUNTS.values(), _MAP, *_LISTS, *written}
    there = {name for name in known if (folder / name).exists()}
    if there and not force:
        raise ParamsError(
            f"{job.output}: has {', '.join(sorted(there))} of another run; give another folder, or "
            "--force to replace them"
        )
    if there - written:
        raise ParamsError(
            f"{job.output}: has {', '.join(sorted(there - written))} of another run, which this "
            "one does not replace; give another folder, or remove them first"
        )
    folder.mkdir(parents=True, exist_ok=True)


def write(job: SimulationJob, crowd: Crowd, tick: Tick) -> WrittenFiles:
    """Write all files, each whole or not at all."""
    files = job.names(crowd.kind)
    with ExitStack() as stack:
        at = {
            name: stack.enter_context(
                _replacing_folder(job.folder / name)
                if name == _REPORTS_FOLDER
                else replacing(str(job.folder / name))
            )
            for name in files
        }
        crowd.params.to_csv(at["params.csv"])
        if job.on_spark is not None:
            tick("simulating on Spark")
            made = job.on_spark(at[_REPORTS_FOLDER])
            counts, truth = made.counts, made.truth
        elif job.counts_only:
            tick("drawing counts")
            drawn = draw_counts(crowd)
            counts, truth = drawn.counts, drawn.truth
        else:
            counts, truth = _write_reports(job, crowd, at[_REPORTS[job.format]], tick)
        path = at[_COUNTS[job.format]]
        (counts.to_csv if job.format == "google" else counts.to_npz)(path)
        for name, listed in job.lists.items():
            write_candidates(at[name], listed)
        if job.views is not None:
            at[_DEFINITION].write_text(_definition(job.views, crowd).to_toml(), encoding="utf-8")
        if _MAP in files:
            _write_map(job, crowd, at[_MAP], tick)
        write_truth(at["truth.csv"], truth)
    return WrittenFiles(counts, files, _following(job, crowd, counts, files))


@contextmanager
def _replacing_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder to write to; when the block ends, it replaces `target`."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}").absolute()
    draft.mkdir()
    try:
        yield draft
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_reports(
    job: SimulationJob, crowd: Crowd, path: Path, tick: Tick
) -> tuple[Counts, dict[str, int]]:
    """Write reports piece by piece, with bounded memory; return their counts and the truth."""
    params, total = crowd.params, crowd.reports
    dialect = crowd.dialect if crowd.kind in HASHED else None
    about: dict[str, Any] = {"kind": crowd.kind, "dialect": dialect}
    about["reports_per_client"] = crowd.repeats
    totals = np.zeros(params.m, np.int64)
    ones = np.zeros((params.m, params.k), np.int64)
    held = np.zeros(len(crowd.names), np.int64)
    done = 0
    with report_file(path, params.k, google=job.format == "google", steps=job.steps) as file:
        for part in pieces(crowd, keep_steps=job.steps):
            file.write(part)
            counted = count(part.packed, part.cohorts, params)
            totals += counted.totals
            ones += counted.ones
            held += np.bincount(part.values, minlength=len(held))
            done += len(part)
            tick(f"simulating: {done:,} of {total:,} reports")
    return Counts(params, totals, ones, **about), named(crowd.names, crowd.nobody, held)


def _write_map(job: SimulationJob, crowd: Crowd, path: Path, tick: Tick) -> None:
    tick("placing candidates")
    listed = job.population.candidates
    design = build_design(list(listed), crowd.params, crowd.dialect)
    column = {text: number for number, text in enumerate(design.strings.strings)}
    write_map(design, path, [column[text] for text in listed])


def _definition(views: Views, crowd: Crowd) -> Collection:
    """A definition of the simulated tuple, which `rappor associate` reads.

    Where ε has no limit of its own, its clients may send as many reports as the simulated ones.
    """
    once = epsilon_one(crowd.params, "tuple")
    unlimited = math.isinf(epsilon_infinity(crowd.params, "tuple"))
    return Collection(
        "simulated",
        1,
        crowd.params,
        "tuple",
        description="Simulated by rappor simulate.",
        dialect=crowd.dialect,
        max_epsilon=add_up([(once, crowd.repeats)]) if unlimited else 0.0,
        fields=views.fields,
        views=views.views,
    )


def _pair(views: Views) -> list[str]:
    """Two fields that some cohort sees together, strings first: others can be summed over."""
    kinds = {field.name: field.kind for field in views.fields}
    together = next((view.fields for view in views.views if len(view.fields) > 1), tuple(kinds))
    chosen = sorted(together, key=lambda name: kinds[name] != "string")[:2]
    return sorted(chosen, key=list(kinds).index)


def _following(job: SimulationJob, crowd: Crowd, counts: Counts, files: list[str]) -> list[str]:
    """The command that decodes the files."""
    at = {name: os.path.join(job.output, name) for name in files}
    if job.views is not None:
        words = ["rappor", "associate", at[_COUNTS["rappor"]], "--definition", at[_DEFINITION]]
        chosen = _pair(job.views)
        for name in job.lists:
            field = Path(name).stem.removeprefix("candidates-")
            if field in chosen:
                words += ["--candidates", f"{field}={at[name]}"]
        if len(job.views.fields) > 2:
            words += ["--variables", ",".join(chosen)]
        return words
    words = ["rappor", "decode"]
    if job.format == "google":
        words += ["--params", at["params.csv"], "--counts", at[_COUNTS["google"]]]
        words += [] if crowd.kind == "string" else ["--kind", crowd.kind]
        words += ["--reports-per-client", str(counts.reports_per_client)]
    else:
        words += ["--counts", at[_COUNTS["rappor"]]]
    if _MAP in files:
        return [*words, "--map", at[_MAP]]
    if crowd.kind in ("string", "category"):
        listed = next(name for name in _LISTS if name in files)
        return [*words, "--candidates", at[listed]]
    if crowd.kind == "ordinal":  # candidate i stands for the number i: ranges around 1, 2, ...
        edges = (f"{number}.5" for number in range(1, len(job.population.candidates)))
        return [*words, "--edges", ",".join(edges)]
    return words
