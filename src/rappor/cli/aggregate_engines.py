"""Where `rappor aggregate` counts: on this machine or on Spark; files, or a lake."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count, params_from
from rappor.cli.output import note
from rappor.cli.store_options import day_range
from rappor.errors import DecodeError, MissingExtraError
from rappor.files import STANDARD_INPUT
from rappor.params import FIELDS, Params

if TYPE_CHECKING:
    from rappor.aggregate import Aggregated

LOCAL, SPARK = "local", "spark"
_LAKE_OPTIONS = ("collection", "version", "period", "allow_faults")
_SHOWN = 20  # faults
Progress = Callable[[int], object]


def add_engine(parser: argparse.ArgumentParser, title: str = "where to count") -> None:
    """Add --engine and --master."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--engine",
        choices=(LOCAL, SPARK),
        default=LOCAL,
        metavar="NAME",
        help="local: the cores of this machine; spark: a Spark cluster (default: %(default)s)",
    )
    group.add_argument(
        "--master",
        metavar="URL",
        help="with --engine spark: such as spark://host:7077, yarn or local[4] (default: what "
        "spark-submit says, else this machine)",
    )


def add_lake_options(parser: argparse.ArgumentParser) -> None:
    """Add what chooses reports of a lake."""
    group = parser.add_argument_group("reports of a lake, which knows its parameters and its kind")
    group.add_argument(
        "--collection", metavar="NAME", help="which collection (default: the only one)"
    )
    group.add_argument(
        "--version", type=count, metavar="N", help="its version (default: the newest in the lake)"
    )
    group.add_argument("--period", metavar="P", help="a period, or FROM..TO (default: all)")
    group.add_argument(
        "--allow-faults",
        action="store_true",
        default=None,
        help="count the sound files of a lake that has damaged ones",
    )


def check_engine(args: argparse.Namespace) -> None:
    """UsageError for options that do not go together; MissingExtraError without Spark."""
    if args.master is not None and args.engine != SPARK:
        raise UsageError("--master goes with --engine spark")
    if args.engine == SPARK:
        if STANDARD_INPUT in args.reports:
            raise UsageError("executors cannot read standard input: name files")
        need_spark("aggregate --engine spark")


def need_spark(verb: str) -> None:
    """MissingExtraError if Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError(verb, "spark")


def lake_of(args: argparse.Namespace) -> str | None:
    """The lake among the inputs, or None; UsageError for options that do not go with it."""
    from rappor.aggregate.lake.inputs import is_lake

    lakes: list[str] = [name for name in args.reports if is_lake(name)]
    if not lakes:
        given = [name for name in _LAKE_OPTIONS if getattr(args, name) is not None]
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} goes with a lake")
        return None
    if len(args.reports) > 1:
        raise UsageError(f"{lakes[0]} is a lake: give it alone")
    names = ("kind", "dialect", "reports_per_client")
    given = [name.replace("_", "-") for name in names if getattr(args, name) is not None]
    given += ["strict"] if args.strict else []
    if given:
        raise UsageError(f"--{given[0]} does not go with a lake: leave it out")
    return lakes[0]


def aggregate_named_files(
    args: argparse.Namespace, progress: Progress, *, params: Params, **about: Any
) -> Aggregated:
    """Count files with the chosen engine."""
    from rappor.aggregate import aggregate_files

    if args.engine == LOCAL:
        return aggregate_files(args.reports, params, strict=args.strict, progress=progress, **about)
    from rappor.aggregate.pieces import cut
    from rappor.aggregate.spark import aggregate_pieces, session
    from rappor.cli.paths import path_of

    names = [name if "://" in name else str(path_of(name).absolute()) for name in args.reports]
    pieces = cut(names)  # refuses what cannot be read before a cluster is asked
    spark = session(args.master)
    try:
        return aggregate_pieces(spark, pieces, params, strict=args.strict, **about)
    finally:
        spark.stop()


def aggregate_lake(args: argparse.Namespace, progress: Progress) -> Aggregated:
    """Count a collection of a lake; DecodeError if a file of it cannot be used."""
    from rappor.aggregate import Aggregated
    from rappor.aggregate.lake.inputs import count_here, count_on_spark, lake_input

    days = (None, None) if args.period is None else day_range(args.period)
    chosen = lake_input(args.reports[0], args.collection, args.version, days)
    given = [args.preset, args.params, *(getattr(args, name) for name in FIELDS)]
    if any(each is not None for each in given):
        params, _ = params_from(args)
        if params.digest != chosen.params.digest:
            raise DecodeError(
                f"{args.reports[0]}: its reports were made with other parameters; leave them out"
            )
    if args.engine == LOCAL:
        done = count_here(chosen, progress)
    else:
        from rappor.aggregate.spark import session

        spark = session(args.master)
        try:
            done = count_on_spark(chosen, spark)
        finally:
            spark.stop()
    for fault in done.faults[:_SHOWN]:
        note(f"{fault.code}: {fault}")
    if done.faults and not args.allow_faults:
        raise DecodeError(
            f"{args.reports[0]}: {len(done.faults):,} of its files cannot be used; mend the lake, "
            "or count the others with --allow-faults"
        )
    return Aggregated(done.counts, done.counts.reports, 0, (), {})
