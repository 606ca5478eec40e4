"""One decoding compared with the truth: of a cell, and of a stored reference set."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rappor import Counts, Params, decode
from rappor.aggregate import aggregate_files
from rappor.simulate import Judgement, judge, judge_shares, read_truth, simulate
from regression.cells import Cell

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Figures:
    """A row of the page: what was decoded, and how it compares with the truth.

    `found` are the means over seeds where there are several, and None where nothing was decoded;
    `seconds` are summed over seeds, and None where they were not measured. `reports`, `cohorts` and
    `bits` are None where not even the collection could be read.
    """

    cell: str
    group: str
    decoder: str
    reports: int | None
    cohorts: int | None
    bits: int | None
    found: Judgement | None
    seconds: float | None
    seed: str
    error: str = ""

    def flat(self) -> dict[str, Any]:
        """By the names of `COLUMNS`, for cells.csv and cells.json; what is not known is None."""
        about = {name: getattr(self, name) for name in COLUMNS if name not in JUDGED}
        found = {name: getattr(self.found, name, None) for name in JUDGED}
        return {name: (about | found)[name] for name in COLUMNS}


def _judged() -> tuple[str, ...]:
    """The figures of a `Judgement`, and the distance that it derives from `l1`, after it."""
    names = [each.name for each in fields(Judgement) if each.name != "rows"]
    names.insert(names.index("l1") + 1, "total_variation")
    return tuple(names)


JUDGED = _judged()
COLUMNS = tuple(
    name for each in fields(Figures) for name in (JUDGED if each.name == "found" else (each.name,))
)


def run_cell(cell: Cell, seed: int) -> Figures:
    """Simulate a cell, decode it, compare; an error becomes the row's error."""
    about = (cell.name, cell.group, "rappor", cell.reports, cell.params.m, cell.params.k)
    return _row(about, str(seed), partial(_decode_cell, cell, seed))


def _row(about: tuple[Any, ...], seed: str, work: Callable[[], Judgement]) -> Figures:
    started = time.perf_counter()
    found, error = None, ""
    try:
        found = work()
    except Exception as problem:  # whatever it is: no row is left out, and it fails the run
        error = explained(problem)
    return Figures(*about, found, time.perf_counter() - started, seed, error)


def explained(problem: Exception) -> str:
    """An error as its row tells it."""
    return f"{type(problem).__name__}: {problem}"


def _decode_cell(cell: Cell, seed: int) -> Judgement:
    population = cell.population()
    made = simulate(
        population,
        cell.params,
        cell.reports,
        seed=[seed, *cell.name.encode()],
        dialect="google",
        reports_per_client=cell.each,
        # In google/rappor's demos a client draws another value for each report.
        values="same" if cell.each == 1 else "changing",
        change=None if cell.each == 1 else 1.0,
    )
    decoded = decode(made.counts, population.candidates, correction="fdr", alpha=ALPHA)
    return judge(decoded, made.truth)


def mean(rows: list[Figures]) -> Figures:
    """One row for several seeds: means of figures, sums of seconds; any error stays."""
    first = rows[0]
    if len(rows) == 1:
        return first
    known = [row.found for row in rows if row.found is not None]
    return Figures(
        *(getattr(first, name) for name in COLUMNS[:6]),
        _means(known) if known else None,
        sum(row.seconds or 0.0 for row in rows),
        f"{first.seed} to {rows[-1].seed}",
        "; ".join(f"seed {row.seed}: {row.error}" for row in rows if row.error),
    )


def _means(known: list[Judgement]) -> Judgement:
    """Each figure averaged; the list is the same under every seed."""
    names = [name for name in JUDGED if name not in ("listed", "total_variation")]
    averaged = {name: fmean(getattr(each, name) for each in known) for name in names}
    return Judgement(listed=known[0].listed, **averaged)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A set of google/rappor's: counts, what is true, what was listed, what its decoder found."""

    counts: Counts
    truth: dict[str, int]
    listed: list[str]
    theirs: dict[str, tuple[float, ...]]


def run_reference(folder: Path) -> list[Figures]:
    """google/rappor's decoder, as its results are stored, and ours, on the same counts."""
    name = f"{folder.parent.name} {folder.name}"
    try:
        stored = _read_set(folder)
    except Exception as problem:  # as for a cell
        unknown = (None, None, None, None, None, "stored", explained(problem))
        return [Figures(name, "reference", "rappor", *unknown)]
    params = stored.counts.params
    about = (stored.counts.reports, params.m, params.k)
    theirs = _row(
        (name, "reference", "google/rappor", *about),
        "stored",
        partial(judge_shares, stored.theirs, stored.listed, stored.truth),
    )
    ours = _row((name, "reference", "rappor", *about), "stored", partial(_decode_stored, stored))
    return [replace(theirs, seconds=None), ours]


def _read_set(folder: Path) -> _Stored:
    params = Params.from_csv(folder / "params.csv")
    with (folder / "ref_FDR.csv").open(encoding="utf-8", newline="") as file:
        theirs = {
            row["string"]: tuple(
                float(row[name]) for name in ("proportion", "prop_low_95", "prop_high_95")
            )
            for row in csv.DictReader(file)
        }
    return _Stored(
        Counts.from_csv(folder / "counts.csv", params, dialect="google", reports_per_client=1),
        read_truth(folder / "truth.csv"),
        (folder / "candidates.txt").read_text("utf-8").splitlines(),
        theirs,
    )


def _decode_stored(stored: _Stored) -> Judgement:
    decoded = decode(stored.counts, stored.listed, correction="fdr", alpha=ALPHA)
    return judge(decoded, stored.truth)


@dataclass(frozen=True, slots=True)
class Counted:
    """Reports of google/rappor's own client, counted here and there; None where that failed."""

    name: str
    reports: int | None
    malformed: int | None
    same: bool
    error: str = ""


def count_reference(folder: Path) -> Counted:
    """Whether counting its reports.csv gives its counts.csv."""
    try:
        params = Params.from_csv(folder / "params.csv")
        found = aggregate_files(folder / "reports.csv", params, dialect="google")
        theirs = Counts.from_csv(folder / "counts.csv", params, dialect="google")
    except Exception as problem:  # as for a cell
        return Counted(folder.name, None, None, False, explained(problem))
    return Counted(folder.name, found.rows, found.malformed, found.counts == theirs)
