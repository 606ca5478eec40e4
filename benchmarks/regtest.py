"""google/rappor's regression grid: simulate and decode every cell, and show all of them on a page.

    python benchmarks/regtest.py --output build/regtest               all 105 cells
    python benchmarks/regtest.py --output DIR --cells 'r-exp-*,demo*' --seeds 5

Writes index.html, cells.csv and cells.json. A cell or a stored set that fails has a row that says
why, without figures, and then the exit code is 1.
"""

# ruff: noqa: E402 - the number of threads must be set before numpy is loaded
import os

for _library in ("OPENBLAS", "OMP", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from regression.cells import Cell, grid
from regression.measure import (
    COLUMNS,
    Counted,
    Figures,
    count_reference,
    mean,
    run_cell,
    run_reference,
)
from regression.page import headline, page

import rappor
from rappor import csv_cells

REFERENCE = Path(__file__).parents[1] / "tests" / "vectors" / "reference"
EVERY = 10  # collections between two lines of progress in a log
STORED = ("exponential/1", "exponential/2", "exponential/3", "windows/1", "windows/2", "chrome/1")


def main() -> int:
    options = parse()
    started = time.monotonic()
    rows = run(options.chosen, options.seeds, options.jobs)
    reference: list[Figures] = []
    counted: list[Counted] = []
    if options.reference:
        for name in STORED:
            reference += run_reference(REFERENCE / name)
        counted.append(count_reference(REFERENCE / "reports"))
    minutes = (time.monotonic() - started) / 60
    seeds = "1 seed" if options.seeds == 1 else f"means over {options.seeds} seeds"
    about = (
        f"rappor {rappor.__version__}, {len(rows)} of {len(grid())} cells, {seeds}, decoded at FDR "
        f"5 %, google’s dialect; {minutes:.1f} minutes in {options.jobs} processes."
    )
    write(options.output, rows, reference, counted, about)
    print(headline(rows))
    print(f"wrote {options.output / 'index.html'}, cells.csv, cells.json; {minutes:.1f} minutes")
    failed = [f"{row.cell}: {row.error}" for row in (*rows, *reference) if row.error]
    failed += [
        f"{each.name}: {each.error or 'other counts than google/rappor'}"
        for each in counted
        if not each.same
    ]
    for line in failed:
        print(f"FAILED {line}", file=sys.stderr)
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the page")
    parser.add_argument("--cells", default="*", help="names with * and ?, separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="collections of each cell")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--no-reference",
        dest="reference",
        action="store_false",
        help="without the stored results of google/rappor",
    )
    options = parser.parse_args()
    options.output = options.output.expanduser()
    patterns = options.cells.split(",")
    options.chosen = [
        cell for cell in grid() if any(fnmatchcase(cell.name, pattern) for pattern in patterns)
    ]
    for pattern in patterns:
        if not any(fnmatchcase(cell.name, pattern) for cell in grid()):
            parser.error(f"no cell is called {pattern}")
    if options.seeds < 1 or options.jobs < 1:
        parser.error("seeds and jobs are numbers from 1 on")
    return options


def run(cells: list[Cell], seeds: int, jobs: int) -> list[Figures]:
    """A row for each cell, in order; the slow ones are started first."""
    tasks = [(cell, seed) for cell in cells for seed in range(1, seeds + 1)]
    tasks.sort(key=lambda task: -(task[0].strings + task[0].absent) * task[0].strings)
    found: dict[str, list[Figures]] = {cell.name: [] for cell in cells}
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for number, row in enumerate(pool.imap_unordered(one, tasks), 1):
            found[row.cell].append(row)
            show_progress(row.cell, number, len(tasks))
    return [mean(sorted(rows, key=lambda row: int(row.seed))) for rows in found.values()]


def one(task: tuple[Cell, int]) -> Figures:
    return run_cell(*task)


def show_progress(name: str, number: int, total: int) -> None:
    """One line that changes on a terminal; elsewhere, in a log, a line now and then."""
    if sys.stderr.isatty():
        end = "\n" if number == total else ""
        print(f"\r\x1b[K{number} of {total}: {name}", end=end, file=sys.stderr, flush=True)
    elif number % EVERY == 0:
        print(f"{number} of {total} collections decoded", file=sys.stderr, flush=True)


def write(
    folder: Path,
    rows: list[Figures],
    reference: list[Figures],
    counted: list[Counted],
    about: str,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page(rows, reference, counted, about), "utf-8")
    with (folder / "cells.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(COLUMNS) + "\n")
        flat = (row.flat() for row in (*rows, *reference))
        file.writelines(csv_cells.line(map(row.get, COLUMNS)) for row in flat)
    document = {
        "about": about,
        "cells": [row.flat() for row in rows],
        "reference": [row.flat() for row in reference],
        "counted": [asdict(row) for row in counted],
    }
    (folder / "cells.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
