"""`rappor decode`: find the strings behind counts (§4)."""

from __future__ import annotations

import argparse
import importlib.util
import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli import decode_store
from rappor.cli.arguments import UsageError, add_kind, add_params, count, ranges_from
from rappor.cli.decode_inputs import (
    check_shape,
    check_targets,
    design_from,
    overlap_from,
    read_counts,
    smoothed,
)
from rappor.cli.decoder_import import own_decoder
from rappor.cli.output import Ticker, note, say, say_json
from rappor.decoding.options import CORRECTIONS, METHODS, STRENGTHS, check_decoded
from rappor.errors import MissingExtraError
from rappor.mechanism import DIALECTS

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.decoding.result import Decoded
    from rappor.simulate.judge import Judgement
    from rappor.stored_view import StoredView

NOTHING = 4  # the exit code of --exit-code


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "decode",
        help="find the strings behind counts (results.csv)",
        description="Tests every candidate against the counts and estimates how many reports hold "
        "each detected one, with a 95 % interval. Results come as a table, as "
        "google/rappor's results.csv, as Parquet, JSON or a chart.",
        epilog="Examples: rappor decode --params params.csv --counts counts.csv "
        "--candidates candidates.txt --dialect google; rappor decode --params params.csv "
        "--counts counts.csv --map map.csv --output results.csv --plot results.svg; "
        "rappor decode --params params.csv --counts counts.csv --categories red,green,blue; "
        "rappor decode homepage --data data --candidates candidates.txt (the latest period with "
        "enough reports; --period all adds up all periods). "
        "Exit code 4: nothing was detected (with --exit-code).",
        allow_abbrev=False,
    )
    _add_inputs(parser)
    _add_tests(parser)
    _add_shape(parser)
    _add_outputs(parser)
    decode_store.add_options(parser)
    parser.set_defaults(run=run)
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add_params(parser)
    group = parser.add_argument_group("what was counted")
    group.add_argument(
        "--counts",
        action="append",
        metavar="FILE",
        help="counts as .csv, or as .parquet or .npz, which bring their parameters along; may be "
        "repeated for several periods, or for several p and q",
    )
    group.add_argument(
        "--sum-periods",
        action="store_true",
        help="add up several --counts of different periods with the same parameters",
    )
    group.add_argument(
        "--reports-per-client",
        type=count,
        metavar="N",
        help="the most reports that one client made on one value, in each of --counts",
    )
    group.add_argument(
        "--null-reports",
        action="store_true",
        help="clients without a value report too, so that fewer bits may be set",
    )
    add_looked_for(parser)


def add_looked_for(parser: argparse.ArgumentParser) -> None:
    """Add the kind of values, and the options that name the values."""
    add_kind(parser)
    group = parser.add_argument_group("what to look for: one of --candidates and --map for strings")
    group.add_argument(
        "--candidates", metavar="FILE", help="strings as .txt (one a line), .csv or .parquet"
    )
    group.add_argument(
        "--dialect",
        choices=list(DIALECTS),
        metavar="NAME",
        help=f"how clients place strings: {', '.join(DIALECTS)} (default: what the counts say, "
        "else rappor-v1)",
    )
    group.add_argument("--map", metavar="FILE", help="a map.csv, as `rappor candidates` writes it")
    group.add_argument(
        "--categories", metavar="A,B,C", help="the names of bits, in order (kind category)"
    )
    group.add_argument("--edges", metavar="X,Y,Z", help="the range edges of kind ordinal")


def _add_tests(parser: argparse.ArgumentParser) -> None:
    group = add_correction(parser)
    methods = "; ".join(f"{name}: {text}" for name, text in METHODS.items())
    group.add_argument(
        "--method",
        choices=list(METHODS),
        default="auto",
        metavar="NAME",
        help=f"{methods} (default: %(default)s)",
    )
    group.add_argument(
        "--decoder",
        metavar="MODULE:NAME",
        help="a decoder of your own for strings, imported from this folder or an installed "
        "package; it runs as your code, with your rights (docs/decoder.md)",
    )


def add_correction(parser: argparse.ArgumentParser) -> Any:
    """Add --correction and --alpha; return their group."""
    group = parser.add_argument_group("how to test")
    corrections = "; ".join(f"{name}: {text.promise}" for name, text in CORRECTIONS.items())
    group.add_argument(
        "--correction",
        choices=list(CORRECTIONS),
        default="fdr",
        metavar="NAME",
        help=f"{corrections} (default: %(default)s)",
    )
    group.add_argument(
        "--alpha", type=_level, default=0.05, metavar="A", help="error rate (default: %(default)s)"
    )
    return group


def _add_shape(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to assume, for kinds with a bit for each value")
    group.add_argument(
        "--smooth",
        nargs="?",
        const="auto",
        metavar="STRENGTH",
        help="kind ordinal: also print shares that assume neighbouring ranges to be alike, without "
        f"intervals: auto (default), {', '.join(STRENGTHS)}, or a number above 0",
    )
    group.add_argument(
        "--overlap",
        metavar="HOW",
        help="how many clients reported in two of several --counts: bound, the most there can be "
        "(default); none; or a CSV file with the pairs of reports, a row for each of --counts",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to write (default: a table of what was detected)")
    group.add_argument(
        "--output", metavar="FILE", help="results as .csv, .json or .parquet; - prints CSV"
    )
    group.add_argument(
        "--all", action="store_true", help="also what was not detected, with a column that says so"
    )
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument("--plot", metavar="FILE", help="a chart as .svg, .png, .html or .json")
    group.add_argument(
        "--diagnose", action="store_true", help="print how far the results can be trusted, and why"
    )
    group.add_argument(
        "--truth",
        metavar="FILE",
        help="the truth.csv of a simulated collection: all outputs get a column `truth`, and "
        "--plot draws it",
    )
    group.add_argument(
        "--exit-code", action="store_true", help=f"exit with {NOTHING} when nothing is detected"
    )


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return level


def run(args: argparse.Namespace) -> int:
    """Read, decode, write, summarise."""
    if args.json and args.output == "-":
        raise UsageError("--json and --output - both print: give one of them")
    from_store = decode_store.wanted(args)
    if not from_store and args.counts is None:
        raise UsageError(
            "the following arguments are required: --counts FILE; or name a collection: rappor "
            "decode NAME --data DIR"
        )
    if args.decoder is not None and args.method != "auto":
        raise UsageError("--decoder and --method exclude each other: leave one of them out")
    check_targets(args)
    if any(importlib.util.find_spec(package) is None for package in ("numpy", "scipy")):
        raise MissingExtraError("decode", "analysis")
    args.own_decoder = own_decoder(args)  # before anything is read: its path may be wrong
    if from_store:
        return decode_store.run(args)
    parts = read_counts(args)
    check_kind(args, parts[0].kind)
    return show(args, _decode(args, parts))


def show(args: argparse.Namespace, found: Decoded, view: StoredView | None = None) -> int:
    """Write and print a result, its diagnosis if requested, and its notes and warnings.

    Args:
        args: the arguments.
        found: the result.
        view: the stored counts that it was made of, if it comes from a data folder.
    """
    from rappor.cli import result_files, truth_table
    from rappor.decoding import exports, result_table
    from rappor.decoding.quality import too_few_reports
    from rappor.simulate.judge import judge

    summary = result_table.summary(found)
    diagnosis = None
    if args.diagnose:
        from rappor.decoding.diagnosis import diagnose

        diagnosis = diagnose(found)
    truth = None if args.truth is None else _truth(args.truth, found, view)
    judged = None if truth is None else judge(found, truth)
    shape = smoothed(args, found)
    also = exports.Also(truth, shape)
    facts = {} if view is None else decode_store.view_facts(view)
    if args.output is not None:
        result_files.write(found, args.output, every=args.all, also=also, facts=facts)
    if args.plot is not None:
        result_files.draw(found, args.plot, truth)
    if args.json:
        document = facts | exports.document(found, every=args.all, also=also)
        document |= {} if diagnosis is None else {"diagnosis": diagnosis.lines()}
        say_json(document | ({} if judged is None else {"judgement": _as_document(judged)}))
    elif judged is not None and truth is not None:
        for line in (*truth_table.next_to_truth(found, judged, truth, every=args.all), ""):
            say(line)
        say(f"Truth: {judged}")
        for line in (*result_table.in_words(found), *result_table.smooth_lines(shape)):
            say(line)
    elif args.output is None:
        shown = result_table.lines(found, every=args.all)
        for line in (*shown, *result_table.smooth_lines(shape)):
            say(line)
    if args.output is None and not args.json:
        say()
        say(summary)
    if diagnosis is not None and not args.json:
        for line in ("", *diagnosis.lines()):
            say(line)
    first = too_few_reports(found) if _prints_table(args) else None
    for text in (*found.notes, *(text for text in found.warnings if text != first)):
        note(f"note: {text}")
    if args.output is not None:
        note(summary)
    return NOTHING if args.exit_code and not found.detected else 0


def _prints_table(args: argparse.Namespace) -> bool:
    return args.output is None and not args.json and args.truth is None


def check_kind(args: argparse.Namespace, kind: str) -> None:
    """UsageError for options that do not go with the kind."""
    check_decoded(kind)
    if args.candidates is not None and args.map is not None:
        raise UsageError("give --candidates or --map, not both")
    if kind == "string" and args.candidates is None and args.map is None:
        raise UsageError("strings are decoded against a list: give --candidates or --map")
    if kind == "category" and args.candidates is None and args.categories is None:
        raise UsageError("kind category needs the names of its bits: give --categories A,B,C")
    if args.candidates is not None and args.categories is not None:
        raise UsageError("give --candidates or --categories, not both")
    wrong = {
        "--map": args.map is not None and kind != "string",
        "--dialect": args.dialect is not None and kind != "string",
        "--method": args.method != "auto" and kind != "string",
        "--decoder": args.decoder is not None and kind != "string",
        "--candidates": args.candidates is not None and kind == "ordinal",
        "--categories": args.categories is not None and kind in ("string", "ordinal"),
        "--edges": args.edges is not None and kind != "ordinal",
    }
    check_shape(args, kind)
    for option, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(f"{option} does not go with counts of kind {kind}: leave it out")


def _decode(args: argparse.Namespace, parts: list[Counts]) -> Decoded:
    from rappor.decoding.decode import decode

    with Ticker() as tick:
        looked_for: Any = args.candidates
        if parts[0].kind == "string":
            looked_for = design_from(args, parts[0], tick)
        elif args.categories is not None:
            looked_for = args.categories.split(",")
        elif args.edges is not None:
            looked_for = ranges_from(args.edges)
        return decode(
            parts,
            looked_for,
            correction=args.correction,
            alpha=args.alpha,
            method=args.method,
            decoder=args.own_decoder,
            overlap=overlap_from(args),
            null_reports=args.null_reports,
            progress=tick,
        )


def _truth(name: str, decoded: Decoded, view: StoredView | None) -> dict[str, int]:
    """The truth of a simulation; a note if it is that of another number of reports."""
    from rappor.simulate.judge import read_truth

    truth = read_truth(name)
    held = sum(truth.values())
    left_out = 0 if view is None else view.left_out
    if not decoded.reports <= held <= decoded.reports + left_out:
        note(
            f"note: {name} is the truth of {plural(held, 'report', 'reports')}, but "
            f"{decoded.reports:,} were decoded: is it that of another run?"
        )
    return truth


def _as_document(judged: Judgement) -> dict[str, Any]:
    """The judgement, ready for JSON."""
    facts = {field.name: getattr(judged, field.name) for field in fields(judged)}
    return facts | {"rows": [row._asdict() for row in judged.rows]}
