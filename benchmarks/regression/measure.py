"""The figures of one decoding beside the truth: of a cell, and of a stored reference set."""

from __future__ import annotations

import csv
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rappor import Counts, Params, decode
from rappor.aggregate import aggregate_files
from rappor.simulate import Judgement, judge, judge_shares, read_truth, simulate
from regression.cells import Cell

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Figures:
    """What a row of the page shows; sums over seeds where there are several.

    Shares are of all reports. A string is present where at least one report holds it. `missed` are
    candidates that are present and were not detected. `l1` is Σ |estimated - true share| over all
    strings, what was not detected estimated as 0; half of it is the total variation distance.
    """

    cell: str
    group: str
    decoder: str
    reports: int
    cohorts: int
    bits: int
    present: int
    listed: int
    present_listed: int
    detected: int
    true_positives: int
    false_positives: int
    missed: int
    fdr: float
    l1: float
    total_variation: float
    mass_found: float
    mass_estimated: float
    covered: int
    seconds: float
    seed: str
    error: str = ""


COLUMNS = tuple(field.name for field in fields(Figures))
JUDGED = (
    "present",
    "listed",
    "present_listed",
    "detected",
    "true_positives",
    "false_positives",
    "missed",
    "fdr",
    "l1",
    "total_variation",
    "mass_found",
    "mass_estimated",
    "covered",
)


def _judged(found: Judgement) -> dict[str, float]:
    return {name: getattr(found, name) for name in JUDGED}


def run_cell(cell: Cell, seed: int) -> Figures:
    """Simulate a cell, decode it, compare; an error becomes the row's error."""
    started = time.perf_counter()
    try:
        population = cell.population()
        made = simulate(
            population,
            cell.params,
            cell.reports,
            seed=[seed, *cell.name.encode()],
            dialect="google",
            reports_per_client=cell.each,
            # In google/rappor's demos each of a client's reports is of a value drawn anew.
            **({} if cell.each == 1 else {"values": "changing", "change": 1.0}),
        )
        decoded = decode(made.counts, population.candidates, correction="fdr", alpha=ALPHA)
    except Exception as error:  # whatever it is: no cell is left out, and it fails the run
        return _failed(cell, seed, error, time.perf_counter() - started)
    figures = _judged(judge(decoded, made.truth))
    seconds = time.perf_counter() - started
    return Figures(
        cell.name,
        cell.group,
        "rappor",
        cell.reports,
        cell.params.m,
        cell.params.k,
        **figures,
        seconds=seconds,
        seed=str(seed),
    )


def _failed(cell: Cell, seed: int, error: Exception, seconds: float) -> Figures:
    zeros = dict.fromkeys(COLUMNS[6:-3], 0)
    about = (cell.name, cell.group, "rappor", cell.reports, cell.params.m, cell.params.k)
    message = f"{type(error).__name__}: {error}"
    return Figures(*about, **zeros, seconds=seconds, seed=str(seed), error=message)


def mean(rows: list[Figures]) -> Figures:
    """One row for several seeds: means of figures, sums of seconds; any error stays."""
    first = rows[0]
    if len(rows) == 1:
        return first
    good = [row for row in rows if not row.error]
    known = [asdict(row) for row in good or rows]
    averaged = {
        name: sum(row[name] for row in known) / len(known)
        for name in COLUMNS[6:-3]
        if name not in ("listed",)
    }
    return Figures(
        **{name: getattr(first, name) for name in (*COLUMNS[:6], "listed")},
        **averaged,
        seconds=sum(row.seconds for row in rows),
        seed=f"{rows[0].seed} to {rows[-1].seed}",
        error="; ".join(f"seed {row.seed}: {row.error}" for row in rows if row.error),
    )


def run_reference(folder: Path) -> list[Figures]:
    """google/rappor's decoder, as its results are stored, and ours, on the same counts."""
    params = Params.from_csv(folder / "params.csv")
    counts = Counts.from_csv(folder / "counts.csv", params, dialect="google", reports_per_client=1)
    truth = read_truth(folder / "truth.csv")
    listed = (folder / "candidates.txt").read_text("utf-8").splitlines()
    stored = {
        row["string"]: tuple(
            float(row[name]) for name in ("proportion", "prop_low_95", "prop_high_95")
        )
        for row in _table(folder / "ref_FDR.csv")
    }
    started = time.perf_counter()
    decoded = decode(counts, listed, correction="fdr", alpha=ALPHA)
    seconds = time.perf_counter() - started
    name = f"{folder.parent.name} {folder.name}"
    about = (counts.reports, params.m, params.k)
    return [
        Figures(name, "reference", decoder, *about, **_judged(found), seconds=took, seed="stored")
        for decoder, found, took in (
            ("google/rappor", judge_shares(stored, listed, truth), 0.0),
            ("rappor", judge(decoded, truth), seconds),
        )
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counted:
    """Reports of google/rappor's own client, counted here and there."""

    name: str
    reports: int
    malformed: int
    same: bool


def count_reference(folder: Path) -> Counted:
    """Whether counting its reports.csv gives its counts.csv."""
    params = Params.from_csv(folder / "params.csv")
    found = aggregate_files(folder / "reports.csv", params, dialect="google")
    theirs = Counts.from_csv(folder / "counts.csv", params, dialect="google")
    return Counted(folder.name, found.rows, found.malformed, found.counts == theirs)


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
