"""`rappor simulate`: simulate a collection and write its files."""

from __future__ import annotations

import argparse
import importlib.util
import secrets
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.checks import did_you_mean, plural
from rappor.cli.aggregate_engines import SPARK, add_engine, need_spark
from rappor.cli.arguments import (
    UsageError,
    add_fields,
    add_kind,
    add_params,
    count,
    fields_from,
    params_from,
    views_from,
)
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.paths import path_of
from rappor.errors import MissingExtraError, ParamsError
from rappor.mechanism import DIALECTS, Field
from rappor.mechanism.kinds import HASHED
from rappor.mechanism.views import views_of

if TYPE_CHECKING:
    from rappor.simulate.drawn_counts import Simulated
    from rappor.simulate.populations import Population
    from rappor.simulate.scenario import Scenario

FORMATS = {
    "rappor": "reports.parquet, counts.npz",
    "google": "google/rappor's reports.csv, counts.csv, map.csv",
}
VALUES = ("same", "changing", "distinct")
# Which options shape which population.
SHAPES = {
    "uniform": (),
    "normal": ("mean", "sd"),
    "exponential": ("decay",),
    "zipf": ("power", "shift"),
}
_NUMBERS = {
    "decay": "exponential: string i in proportion to D^i (default: 0.9505)",
    "power": "zipf: string i in proportion to (i + shift)^-P (default: 1)",
    "shift": "zipf: added to the rank (default: 0)",
    "mean": "normal: rounded to whole numbers around M (default: 50)",
    "sd": "normal: standard deviation (default: 10)",
}


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "simulate",
        help="simulate a collection and write its files",
        description="Draw a population, simulate the reports of its clients, and write the files "
        "of a real collection: parameters, reports, counts and candidates. In addition, write "
        "truth.csv with the true counts.",
        epilog="Examples: rappor simulate --population exponential --absent 100 --reports 1e6 "
        "--preset exponential --output demo --seed 7; rappor simulate --population visits.csv "
        "--reports 1e5 --preset windows --output demo --format google; rappor simulate --kind "
        "tuple --field page=string --field beta=boolean --population pairs.txt --reports 1e5 "
        "--preset windows --output demo.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--reports", type=count, required=True, metavar="N", help="number of reports (1e6 is fine)"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the files")
    parser.add_argument("--force", action="store_true", help="replace the files of an earlier run")
    about = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="rappor",
        metavar="NAME",
        help=f"{about} (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=_whole, metavar="N", help="the same seed makes the same files"
    )
    add_params(parser)
    add_kind(parser)
    add_fields(parser)
    parser.add_argument(
        "--dialect",
        choices=list(DIALECTS),
        metavar="NAME",
        help=f"how strings map to bits: {', '.join(DIALECTS)} (default: google with --format "
        "google, else rappor-v1)",
    )
    _add_population(parser)
    _add_clients(parser)
    group = parser.add_argument_group("what to write")
    group.add_argument(
        "--counts-only",
        action="store_true",
        help="write no reports: draw the counts directly, which is fast for any N",
    )
    group.add_argument(
        "--steps",
        action="store_true",
        help="with --format google: also write the filters before and after the permanent "
        "response (client,cohort,bloom,prr,irr), which no real client reveals",
    )
    group.add_argument("--json", action="store_true", help="print a summary as JSON")
    add_engine(parser, "where to simulate")
    parser.set_defaults(run=run)
    return parser


def _add_population(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("population")
    group.add_argument(
        "--population",
        required=True,
        metavar="SHAPE|FILE",
        help=f"{', '.join(SHAPES)}; or a file: .csv with string,frequency, or text with one "
        "value a line, in which values may repeat",
    )
    group.add_argument(
        "--strings",
        type=count,
        metavar="N",
        help="number of different strings of a shape (default: 100)",
    )
    group.add_argument(
        "--absent",
        type=_whole,
        default=0,
        metavar="N",
        help="number of candidates that nobody holds (default: %(default)s)",
    )
    group.add_argument(
        "--unlisted",
        type=_whole,
        default=0,
        metavar="N",
        help="number of strings that are not on the candidate list, spread evenly over the ranks "
        "(default: %(default)s)",
    )
    for name, text in _NUMBERS.items():
        group.add_argument(f"--{name}", type=float, metavar=name[0].upper(), help=text)


def _add_clients(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("clients")
    group.add_argument(
        "--reports-per-client",
        type=count,
        metavar="R",
        help="number of reports of each client (default: 1)",
    )
    group.add_argument(
        "--clients",
        type=count,
        metavar="N",
        help="number of clients, instead of --reports-per-client",
    )
    group.add_argument(
        "--values",
        choices=VALUES,
        default="same",
        metavar="NAME",
        help="same: a client keeps its value; changing: see --change; distinct: no client "
        "reports a value twice (default: %(default)s)",
    )
    group.add_argument(
        "--change",
        type=float,
        metavar="C",
        help="chance that a changing value is drawn again before each further report",
    )
    group.add_argument(
        "--random-cohorts",
        action="store_true",
        help="draw the cohort of each client at random, as real clients do (default: cohorts of "
        "equal size)",
    )


def _whole(text: str) -> int:
    """A whole number of at least 0, also written as 1e6."""
    return 0 if text == "0" else count(text)


def run(args: argparse.Namespace) -> int:
    """Simulate, write the files, print a summary."""
    params, preset_kind = params_from(args)
    if any(importlib.util.find_spec(package) is None for package in ("numpy", "pyarrow")):
        raise MissingExtraError("simulate", "analysis")
    from rappor.cli.simulate_files import SimulationJob, check_folder, write
    from rappor.simulate.crowd import draw_crowd
    from rappor.simulate.scenario import Scenario

    kind = args.kind or preset_kind
    fields, views = fields_from(args), views_from(args)
    _check_tuple(args, kind, fields)
    _check_engine(args)
    if args.steps and (args.format != "google" or args.counts_only):
        raise UsageError("--steps goes with --format google and its reports.csv")
    if args.dialect is not None and kind not in HASHED:
        raise UsageError(f"--dialect does not go with kind {kind}: leave it out")
    if kind == "boolean" and args.population in SHAPES:
        raise UsageError(
            "kind boolean needs a file for --population: a .csv with string,frequency, or text "
            "with one value a line; its strings are true and false"
        )
    population = population_from(args)
    seed = secrets.randbits(59) if args.seed is None else args.seed
    scenario = Scenario(
        population,
        params,
        args.reports,
        seed=seed,
        kind=kind,
        dialect=args.dialect or ("google" if args.format == "google" else "rappor-v1"),
        cohort_sizes="random" if args.random_cohorts else None,
        reports_per_client=args.reports_per_client or 1,
        values=args.values,
        change=args.change,
        clients=args.clients,
        fields=fields,
        views=views,
    )
    start = time.perf_counter()
    crowd = draw_crowd(scenario)  # refuses what cannot be drawn before anything is written
    job = SimulationJob(
        args.output,
        args.format,
        population,
        counts_only=args.counts_only,
        steps=args.steps,
        on_spark=partial(_on_spark, args.master, scenario) if args.engine == SPARK else None,
        views=views_of(fields, views),
    )
    check_folder(job, kind, force=args.force)
    with Ticker() as tick:
        done = write(job, crowd, tick)
    seconds = time.perf_counter() - start
    if args.clients is not None and args.clients > args.reports:
        silent = args.clients - args.reports
        note(f"note: more clients than reports: {silent:,} of {args.clients:,} do not report")
    clients = sum(section.clients for section in crowd.sections)
    if args.json:
        say_json(
            {
                "params": params.to_dict(),
                "digest": params.digest,
                "kind": kind,
                "dialect": done.counts.dialect,
                "population": population.name,
                "strings": len(population.strings),
                "absent": len(population.absent),
                "unlisted": len(population.unlisted),
                "candidates": len(population.candidates),
                "reports": done.counts.reports,
                "clients": clients,
                "reports_per_client": done.counts.reports_per_client,
                "seed": seed,
                "output": str(job.folder),
                "files": done.files,
                "next": shlex.join(done.following),
                "seconds": seconds,
            }
        )
        return 0
    say(
        f"{plural(done.counts.reports, 'report', 'reports')} of "
        f"{plural(clients, 'client', 'clients')} in {plural(params.m, 'cohort', 'cohorts')}, "
        f"seed {seed}"
    )
    say(
        f"population {population.name}: {plural(len(population.strings), 'string', 'strings')}, "
        f"{len(population.unlisted):,} of them unlisted; "
        f"{plural(len(population.candidates), 'candidate', 'candidates')}, "
        f"{len(population.absent):,} of them absent"
    )
    say(f"in {job.folder}: {', '.join(done.files)}")
    say(f"next: {shlex.join(done.following)}")
    note(f"{seconds:.1f} s")
    return 0


def _check_tuple(args: argparse.Namespace, kind: str, fields: list[Field] | None) -> None:
    """UsageError for options that do not go with tuples, or that only they have."""
    if kind != "tuple":
        if fields is not None or args.view:
            raise UsageError("use --field and --view with --kind tuple only")
        return
    if fields is None:
        raise UsageError("kind tuple needs its fields: --field page=string --field beta=boolean")
    if args.population in SHAPES:
        raise UsageError(
            "kind tuple needs a file for --population: text with one JSON object a line, such as "
            '{"page": "a.org", "beta": true}, or a .csv with string,frequency that has them'
        )
    if args.format != "rappor":
        raise UsageError("google/rappor has no tuples: leave --format out")
    if args.absent:
        raise UsageError("--absent does not go with kind tuple: leave it out")


def _check_engine(args: argparse.Namespace) -> None:
    """UsageError for options that do not go with the engine; MissingExtraError without Spark."""
    if args.engine != SPARK:
        if args.master is not None:
            raise UsageError("--master goes with --engine spark")
        return
    if args.counts_only:
        raise UsageError(
            "--counts-only draws the counts of any number of reports on this machine in a moment: "
            "leave --engine spark out"
        )
    if args.format != "rappor":
        raise UsageError("--engine spark writes Parquet only: leave --format out")
    need_spark("simulate --engine spark")


def _on_spark(master: str | None, scenario: Scenario, folder: Path) -> Simulated:
    """Make the reports of a scenario on a cluster, and end the session."""
    from rappor.aggregate.spark import session
    from rappor.simulate.spark import simulate_on_spark

    spark = session(master)
    try:
        return simulate_on_spark(spark, scenario, str(folder))
    finally:
        spark.stop()


def population_from(args: argparse.Namespace) -> Population:
    """The population of the command line."""
    from rappor import simulate

    shape = args.population
    given = {name for name in _NUMBERS if getattr(args, name) is not None}
    for name in given - set(SHAPES.get(shape, ())):
        raise UsageError(f"--{name} does not go with --population {shape}: leave it out")
    numbers = {name: getattr(args, name) for name in given}
    lists = {"absent": args.absent, "unlisted": args.unlisted}
    if shape in SHAPES:
        population: Population = getattr(simulate, shape)(args.strings or 100, **numbers, **lists)
        return population
    if args.strings is not None:
        raise UsageError(f"--strings does not go with --population {shape}: leave it out")
    if not path_of(shape).exists():
        hint, shapes = did_you_mean(shape, SHAPES), ", ".join(SHAPES)
        raise ParamsError(f"--population must be {shapes} or a file; no file {shape}{hint}")
    return simulate.read_population(shape, **lists)
