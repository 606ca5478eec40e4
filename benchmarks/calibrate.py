"""Are the decoder's stated error rates true? Simulate, decode, compare, and judge by rules.

    make calibrate SEEDS=400                                   all scenarios of the table
    python benchmarks/calibrate.py --seeds 20 --scenarios S1,S6b   a look
    python benchmarks/calibrate.py --seeds 400 --unseen        parameter sets without figures too

A run that was stopped goes on where it was. Exit code 1 if a rule falls short; docs/calibration.md
says how to read the tables.
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
from collections.abc import Iterator
from pathlib import Path

from calibration.associations import ASSOCIATIONS, measure_association
from calibration.closed_forms import CLOSED_FORMS, measure_closed_form
from calibration.comparisons import COMPARISONS, measure_comparison
from calibration.measure import Record, measure
from calibration.report import markdown, to_json
from calibration.rules import judge, judge_tallies
from calibration.scenarios import SCENARIOS, SLOW
from calibration.scenarios import UNSEEN as UNSEEN_STRINGS
from calibration.store import Store, code_digest
from calibration.summary import Share, Summary, summarise
from calibration.tallies import total

import rappor.decoding.lasso  # noqa: F401 - loaded now, so that all workers run the same code

LASSO_SEEDS = 10
TALLIED = {**CLOSED_FORMS, **COMPARISONS, **ASSOCIATIONS}
UNSEEN = (*UNSEEN_STRINGS, *CLOSED_FORMS, *COMPARISONS)
Task = tuple[str, int, str, bool]  # the arguments of `measure`


def main() -> int:
    options = parse()
    digest = code_digest()
    store = Store(options.output, digest, options.same_names)
    done = {
        (name, each["seed"], each["method"]) for name in options.names for each in store.read(name)
    }
    tasks = [task for task in wanted(options) if task[:3] not in done]
    run(tasks, store, options.jobs)
    found = collect(store, options)
    tallies = count(store, options)
    verdicts = [*(judge(found["auto"]) if found["auto"] else ()), *judge_tallies(tallies)]
    names = "the same names in all seeds" if options.same_names else "new names for each seed"
    about = f"Decoder {digest}, α = .05, {names}."
    text = markdown(found, tallies, verdicts, about)
    options.output.mkdir(parents=True, exist_ok=True)
    ending = "-same-names" if options.same_names else ""
    (options.output / f"summary{ending}.md").write_text(text, "utf-8")
    data = json.dumps(to_json(found, tallies, verdicts, digest), indent=1)
    (options.output / f"summary{ending}.json").write_text(data + "\n", "utf-8")
    print(text)
    return 0 if all(each.passed for each in verdicts) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=400, help="seeds of each scenario (S5: 10)")
    parser.add_argument("--first-seed", type=int, default=1, help="for seeds never used before")
    parser.add_argument("--scenarios", default="", help="such as S1,S6b; all by default")
    parser.add_argument("--unseen", action="store_true", help="the scenarios without figures too")
    parser.add_argument("--same-names", action="store_true", help="one set of names for all seeds")
    parser.add_argument("--rates-only", action="store_true", help="no oracle, no paper's method")
    parser.add_argument("--lasso-large", action="store_true", help="the paper's method on S5 too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path("build/calibration"))
    options = parser.parse_args()
    every = [*SCENARIOS, *TALLIED]
    usual = [name for name in every if options.unseen or name not in UNSEEN]
    options.names = options.scenarios.split(",") if options.scenarios else usual
    unknown = [name for name in options.names if name not in every]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(every)}")
    if options.seeds < 1 or options.jobs < 1 or options.first_seed < 1:
        parser.error("seeds, jobs and the first seed are numbers from 1 on")
    return options


def wanted(options: argparse.Namespace) -> Iterator[Task]:
    """What has to be measured, scenario by scenario."""
    for name in options.names:
        others = () if name in TALLIED or options.rates_only else ("oracle", "lasso")
        for method in ("auto", *others):
            for seed in seeds_of(options, name, method):
                yield name, seed, method, options.same_names


def seeds_of(options: argparse.Namespace, name: str, method: str) -> range:
    most = min(options.seeds, SLOW.get(name, options.seeds))
    if method == "lasso":
        large = name in SLOW and not options.lasso_large
        most = 0 if large else min(most, LASSO_SEEDS)
    return range(options.first_seed, options.first_seed + most)


def run(tasks: list[Task], store: Store, jobs: int) -> None:
    """Measure in worker processes and keep each result at once."""
    if not tasks:
        return
    started = last = time.monotonic()
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for number, record in enumerate(pool.imap_unordered(one, tasks), 1):
            store.add(record)
            now = time.monotonic()
            if sys.stderr.isatty() or now - last > 60 or number == len(tasks):
                last = now
                show_progress(record["scenario"], number, len(tasks), now - started)


def one(task: Task) -> Record:
    started = time.perf_counter()
    name, seed, _, same_names = task
    if name in CLOSED_FORMS:
        record = measure_closed_form(name, seed)
    elif name in COMPARISONS:
        record = measure_comparison(name, seed, same_names)
    elif name in ASSOCIATIONS:
        record = measure_association(name, seed, same_names)
    else:
        record = measure(*task)
    return record | {"all_seconds": time.perf_counter() - started}


def show_progress(name: str, number: int, total: int, seconds: float) -> None:
    left = seconds / number * (total - number) / 60
    line = f"{name}: {number} of {total} decodings, {seconds / 60:.1f} min, about {left:.1f} left"
    end = "\r" if sys.stderr.isatty() and number < total else "\n"
    print(f"{line:<78}", end=end, file=sys.stderr, flush=True)


def collect(store: Store, options: argparse.Namespace) -> dict[str, dict[str, Summary]]:
    """Summaries by method and scenario of the seeds that were asked for."""
    found: dict[str, dict[str, Summary]] = {"auto": {}, "oracle": {}, "lasso": {}}
    for name in options.names:
        if name in TALLIED:
            continue
        records = store.read(name)
        for method, summaries in found.items():
            seeds = seeds_of(options, name, method)
            here = [each for each in records if each["method"] == method and each["seed"] in seeds]
            if here:
                summaries[name] = summarise(here)
    return found


def count(store: Store, options: argparse.Namespace) -> dict[str, dict[str, Share]]:
    """Tallies by scenario of the seeds that were asked for."""
    found = {}
    for name in options.names:
        if name in TALLIED:
            seeds = seeds_of(options, name, "auto")
            found[name] = total(each for each in store.read(name) if each["seed"] in seeds)
    return found


if __name__ == "__main__":
    sys.exit(main())
