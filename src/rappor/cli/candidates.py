"""`rappor candidates`: turn a list of strings into google/rappor's map.csv."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli.arguments import UsageError, add_params, params_from
from rappor.cli.output import note, say_json
from rappor.cli.paths import target_of
from rappor.cli.result_files import replacing
from rappor.errors import MissingExtraError
from rappor.files import STANDARD_INPUT
from rappor.mechanism import DIALECTS

if TYPE_CHECKING:
    from rappor.decoding.candidates import Candidates
    from rappor.decoding.design import Design
    from rappor.params import Params

_LONG_SECONDS = 1.0  # longer work shows its progress


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "candidates",
        help="compute the bits of candidate strings (writes map.csv)",
        description="Compute which bits each candidate string sets in each cohort, and write "
        "google/rappor's map.csv: the string, then cohort * k + bit + 1 for each hash. Candidates "
        "that no report can tell apart are listed on standard error.",
        epilog="Example: rappor candidates candidates.txt --params params.csv --dialect google "
        "--output map.csv",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="candidates as .txt (one a line), .csv or .parquet; - is standard input, one a line",
    )
    add_params(parser)
    parser.add_argument(
        "--dialect",
        default="rappor-v1",
        metavar="NAME",
        help=f"how clients map strings to bits: {', '.join(DIALECTS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="file for the map (default, or -: standard output)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print a summary as JSON; the map goes only to --output"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read the candidates, compute their bits, write the map."""
    params, kind = params_from(args)
    if kind != "string":
        raise UsageError(f"only strings have candidates; --preset {args.preset} has kind {kind}")
    if any(importlib.util.find_spec(package) is None for package in ("numpy", "tqdm")):
        raise MissingExtraError("candidates", "analysis")
    from rappor.decoding.candidate_files import read_strings
    from rappor.decoding.candidates import collected
    from rappor.decoding.mapfile import map_lines, write_map
    from rappor.errors import DecodeError

    if args.output == "-":
        if args.json:
            raise UsageError("--json and --output - both print: give one of them")
        args.output = None
    if args.output is not None:  # before the work
        target_of(args.output)
    name = "standard input" if args.file == STANDARD_INPUT else args.file
    strings, notes = _from_standard_input() if args.file == STANDARD_INPUT else read_strings(name)
    try:
        candidates = collected(strings, notes)
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None
    design = _build(candidates, params, args.dialect)
    groups = [[candidates.strings[i] for i in group] for group in design.groups()]
    for line in (*candidates.notes, *_about(groups)):
        note(f"note: {line}")
    column = {text: number for number, text in enumerate(candidates.strings)}
    order = [column[text] for text in dict.fromkeys(strings)]  # the order of the file
    if args.output is not None:
        with replacing(args.output) as path:
            write_map(design, path, order)
    elif not args.json:
        sys.stdout.flush()
        for row in map_lines(design, order):
            sys.stdout.buffer.write(row.encode())  # a file's bytes, on any terminal
    if args.json:
        say_json(_summary(design, groups))
    return 0


def _from_standard_input() -> tuple[list[str], list[str]]:
    from rappor.decoding.candidate_files import decoded, from_lines
    from rappor.errors import DecodeError

    if sys.stdin is None:
        raise DecodeError("standard input is closed: pipe candidates into it, or name a file")
    return from_lines(decoded(sys.stdin.buffer.read(), "standard input"))


def _build(candidates: Candidates, params: Params, dialect: str) -> Design:
    from tqdm import tqdm

    from rappor.decoding.design import build_design

    with tqdm(
        total=len(candidates) * params.m,
        desc="placing",
        unit="",
        unit_scale=True,
        delay=_LONG_SECONDS,
        leave=False,
        file=sys.stderr,
        disable=sys.stderr is None or not sys.stderr.isatty(),
    ) as bar:
        return build_design(candidates, params, dialect, bar.update)


def _about(groups: list[list[str]]) -> list[str]:
    from rappor.decoding.candidates import quoted

    if not groups:
        return []
    members = sum(len(group) for group in groups)
    return [
        f"{members:,} candidates in {plural(len(groups), 'group', 'groups')} have the same bits in "
        f"every cohort and cannot be told apart, such as {quoted(groups[0])}"
    ]


def _summary(design: Design, groups: list[list[str]]) -> dict[str, Any]:
    k, h, m = design.params.k, design.params.h, design.params.m
    # h hashes, each on any of k bits, set k (1 - (1 - 1/k)^h) different ones on average.
    expected = 0.0 if design.dialect == "rappor-v1" else h - k * (1 - (1 - 1 / k) ** h)
    return {
        "params": design.params.to_dict(),
        "dialect": design.dialect,
        "candidates": len(design),
        "merged": design.strings.merged,
        "notes": list(design.strings.notes),
        "groups": groups,
        "collisions": design.collisions,
        "expected_collisions": expected * m * len(design),
    }
