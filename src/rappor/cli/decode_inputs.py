"""The inputs and targets of `rappor decode`, checked before anything is computed."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rappor.checks import show
from rappor.cli.arguments import UsageError, params_from
from rappor.cli.paths import path_of, target_of
from rappor.errors import DecodeError, MissingExtraError
from rappor.formats import read_text
from rappor.params import FIELDS, Params

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.decoding.candidates import Candidates
    from rappor.decoding.closed_form import Overlap
    from rappor.decoding.design import Design
    from rappor.decoding.result import Decoded
    from rappor.decoding.smoothing import Shape

OUTPUTS = (".csv", ".json", ".parquet")
PLOTS = (".svg", ".png", ".html", ".json")
_COMPARED = 100  # candidates whose bits are compared if both a map and a dialect are given


def check_targets(args: argparse.Namespace) -> None:
    """UsageError or ParamsError if results could not be written in the end."""
    inputs = [*(args.counts or ()), args.candidates, args.map, args.params]
    taken = {_resolved(name) for name in inputs if name is not None}
    for option, endings in (("output", OUTPUTS), ("plot", PLOTS)):
        name = getattr(args, option)
        if name is None or (option, name) == ("output", "-"):
            continue
        path = _resolved(name)
        if path.suffix.lower() not in endings:
            raise UsageError(f"--{option} must end in {', '.join(endings)}; got {name}")
        if path in taken:
            raise UsageError(
                f"--{option} {name} is also another file of this command; choose another name"
            )
        taken.add(path)
        target_of(name)
    if args.plot is not None and not args.plot.lower().endswith(".json"):
        _need("vl_convert", "charts")
    if args.output is not None and args.output.lower().endswith(".parquet"):
        _need("pyarrow", "decode")


def _resolved(name: str) -> Path:
    return path_of(name).resolve()


def _need(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(name, "analysis")


def read_counts(args: argparse.Namespace) -> list[Counts]:
    """The counts of each (p, q); with --sum-periods those of one (p, q) are added up."""
    from rappor.aggregate.counts import Counts

    groups: dict[Params, list[Counts]] = {}
    for name in args.counts:
        counts = read_one(args, name)
        groups.setdefault(counts.params, []).append(counts)
    if any(len(group) > 1 for group in groups.values()) and not args.sum_periods:
        raise UsageError(
            "several --counts with the same parameters: give --sum-periods to add up periods, or "
            "decode them one by one"
        )
    return [Counts.sum_periods(group) for group in groups.values()]


def read_one(args: argparse.Namespace, name: str) -> Counts:
    """The counts of one file."""
    from rappor.aggregate.counts import Counts

    numbers = (args.preset, args.params, *(getattr(args, field) for field in FIELDS))
    given = params_from(args) if any(number is not None for number in numbers) else None
    asked = args.kind or _implied(args)
    suffix = Path(name).suffix.lower()
    if suffix not in (".parquet", ".npz"):
        params, kind = given or params_from(args)  # which says what can be given
        return Counts.from_csv(
            name,
            params,
            kind=asked or kind,
            dialect=args.dialect,
            reports_per_client=args.reports_per_client,
        )
    counts = Counts.from_parquet(name) if suffix == ".parquet" else Counts.from_npz(name)
    if given is not None and counts.params != given[0]:
        raise DecodeError(
            f"{name} has parameters of its own, which are not those given: leave these out"
        )
    for option, mine, theirs in (
        ("kind", counts.kind, asked),
        ("dialect", counts.dialect, args.dialect),
    ):
        if None not in (mine, theirs) and mine != theirs:
            raise DecodeError(
                f"{name} says {option} {mine}, the command says {theirs}: leave --{option} out"
            )
    return replace(
        counts,
        dialect=counts.dialect or args.dialect,
        reports_per_client=args.reports_per_client or counts.reports_per_client,
    )


def _implied(args: argparse.Namespace) -> str | None:
    """The kind that other options imply."""
    if args.categories is not None:
        return "category"
    return None if args.edges is None else "ordinal"


def design_from(
    args: argparse.Namespace,
    counts: Counts,
    tick: Callable[[str], None],
    listed: Candidates | None = None,
) -> Design:
    """The candidates on their bits, from a map or a list; `listed` if it was read before."""
    from rappor.decoding.candidates import Candidates
    from rappor.decoding.design import build_design
    from rappor.decoding.mapfile import read_map

    if args.map is not None:
        tick("reading the map")
        design = read_map(args.map, counts.params)
        return design if args.dialect is None else _labelled(design, args.dialect, args.map)
    if listed is None:
        tick("reading candidates")
        listed = Candidates.read(args.candidates)
    dialect = counts.dialect
    if dialect is None:
        dialect = "rappor-v1"
        text = "no --dialect was given: candidates were placed as rappor-v1 does"
        listed = replace(listed, notes=(*listed.notes, text))
    done, total = 0, len(listed) * counts.params.m

    def placed(more: int) -> None:
        nonlocal done
        done += more
        tick(f"placing candidates: {done / total:.0%}")

    return build_design(listed, counts.params, dialect, placed)


def check_shape(args: argparse.Namespace, kind: str) -> None:
    """UsageError for --smooth and --overlap that do not go with the kind."""
    if args.smooth is not None and kind != "ordinal":
        raise UsageError(
            "--smooth is for kind ordinal, whose neighbouring ranges are alike; leave it out for "
            f"{kind}"
        )
    if args.overlap is not None and kind == "string":
        raise UsageError(
            "--overlap does not go with strings: their counts show it themselves; leave it out"
        )


def overlap_from(args: argparse.Namespace) -> Overlap:
    """What --overlap says: the bound, no client in two tables, or a table of pairs."""
    if args.overlap in (None, "bound"):
        return "bound"
    if args.overlap == "none":
        return None
    lines = read_text(args.overlap).split()
    try:
        table = [[float(cell) for cell in line.split(",")] for line in lines]
    except ValueError:
        table = []
    if not table or any(len(row) != len(table) for row in table):
        raise DecodeError(
            f"{args.overlap} must be a table of numbers: a row and a column for each of the counts"
        )
    return table


def smoothed(args: argparse.Namespace, decoded: Decoded) -> Shape | None:
    """The smooth shares that --smooth asks for."""
    if args.smooth is None or decoded.histogram is None:
        return None
    from rappor.decoding.smoothing import smooth

    try:
        strength: str | float = float(args.smooth)
    except ValueError:
        strength = args.smooth
    return smooth(decoded.histogram, strength)


def _labelled(design: Design, dialect: str, name: str) -> Design:
    """The design of a map with its dialect; its first candidates must have the dialect's bits."""
    from rappor.decoding.design import build_design

    some = design.strings.strings[:_COMPARED]
    built = build_design(some, design.params, dialect)
    for i, text in enumerate(some):
        mine, theirs = (placed.columns([i]).indices.tolist() for placed in (design, built))
        if mine != theirs:
            raise DecodeError(
                f"{name} does not place {show(text)} as dialect {dialect} does: leave --dialect "
                "out, or give another map"
            )
    return replace(design, dialect=dialect)
