"""`rappor associate`: the joint table of two variables, and whether they are independent."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli import associate_tuple as tuple_forms
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.cli.associate_tuple import candidate_files
from rappor.cli.decode import NOTHING, add_correction
from rappor.cli.decode_inputs import OUTPUTS, PLOTS
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.paths import path_of, target_of
from rappor.mechanism import DIALECTS

if TYPE_CHECKING:
    from rappor.aggregate.association_files import ReportedVariable
    from rappor.aggregate.counts import Counts
    from rappor.aggregate.pair_counts import PairCounts
    from rappor.decoding.association import Association
    from rappor.decoding.field_design import FieldValues

_PAIRS = ".npz"


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "associate",
        help="the joint table of two variables, and whether they are independent",
        description="Estimates how often two values are held together, with 95 % intervals, tests "
        "whether the two variables are independent, and which pairs depart from that.",
        epilog="Examples: rappor associate install --data data --candidates pages.txt (two fields "
        "of a tuple); rappor associate reports.csv --schema rappor-vars.csv --map domain_map.csv "
        "(google/rappor's association files). Variables that are reported separately cost the sum "
        "of their ε; a tuple costs one report. "
        f"Exit code {NOTHING}: no association was found (with --exit-code).",
        allow_abbrev=False,
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="a collection of kind tuple (with --data), its counts in a file (with --definition), "
        "google/rappor's association reports (with --schema), or pair counts that --save wrote "
        "(.npz)",
    )
    tuple_forms.add_options(parser)
    group = parser.add_argument_group("reports of several variables")
    group.add_argument("--schema", metavar="FILE", help="rappor-vars.csv: the list of variables")
    group.add_argument(
        "--params-dir",
        metavar="DIR",
        help="the folder of the params.csv files that the list names (default: that of the list)",
    )
    group.add_argument(
        "--metric", metavar="NAME", help="the metric to take, if the list has several"
    )
    group.add_argument(
        "--variables",
        metavar="FIRST,SECOND",
        help="the two variables or fields, if there are more",
    )
    group.add_argument(
        "--reports-per-client",
        type=count,
        metavar="N",
        help="the most reports that one client made on one pair of values",
    )
    group.add_argument("--save", metavar="FILE", help="keep the pair counts, as .npz")
    group = parser.add_argument_group("what to look for")
    group.add_argument(
        "--candidates",
        action="append",
        metavar="[NAME=]FILE",
        help="strings to look for, one a line, or .csv or .parquet; with NAME= for that variable "
        "(default with --data: the newest list that the page Candidates saved)",
    )
    group.add_argument(
        "--map",
        action="append",
        metavar="[NAME=]FILE",
        help="google/rappor's map.csv instead; with NAME= for that variable",
    )
    group.add_argument(
        "--dialect",
        choices=list(DIALECTS),
        metavar="NAME",
        help=f"how clients placed strings: {', '.join(DIALECTS)} (default: google for reports)",
    )
    add_correction(parser)
    parser.set_defaults(correction="holm")
    group = parser.add_argument_group("what to write (default: a table)")
    group.add_argument(
        "--output", metavar="FILE", help="every cell as .csv, .json or .parquet; - prints CSV"
    )
    group.add_argument("--plot", metavar="FILE", help="a heat map as .svg, .png, .html or .json")
    group.add_argument("--all", action="store_true", help="print every cell")
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument(
        "--exit-code",
        action="store_true",
        help=f"exit with {NOTHING} when no association is found",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read, associate, write, summarise."""
    _check_targets(args)
    need_analysis("associate")
    from rappor.decoding.associate import associate

    if tuple_forms.wanted(args):
        with Ticker() as tick:
            tick("solving for the joint table")
            return _show(args, tuple_forms.associated(args))
    with Ticker() as tick:
        counts = _pairs(args, tick)
        names = (counts.first.collection or "first", counts.second.collection or "second")
        sides = dict(zip(names, (counts.first, counts.second), strict=True))
        files = candidate_files(args, {name: side.kind for name, side in sides.items()})
        values = _values(files, sides)
        tick("solving for the joint table")
        found = associate(
            counts,
            values,
            names=names,
            dialect=args.dialect,
            correction=args.correction,
            alpha=args.alpha,
        )
    if args.save is not None:
        counts.to_npz(args.save)
    return _show(args, found)


def _check_targets(args: argparse.Namespace) -> None:
    """UsageError or ParamsError if results could not be written in the end."""
    if args.json and args.output == "-":
        raise UsageError("--json and --output - both print: give one of them")
    taken = {path_of(args.what).resolve()}
    for option, endings in (("output", OUTPUTS), ("plot", PLOTS), ("save", (_PAIRS,))):
        name = getattr(args, option)
        if name is None or (option, name) == ("output", "-"):
            continue
        path = path_of(name).resolve()
        if path.suffix.lower() not in endings:
            raise UsageError(f"--{option} must end in {', '.join(endings)}; got {name}")
        if path in taken:
            raise UsageError(
                f"--{option} {name} is also another file of this command; choose another name"
            )
        taken.add(path)
        target_of(name)


def _pairs(args: argparse.Namespace, tick: Ticker) -> PairCounts:
    """The pair counts of the reports, or of a file that holds them."""
    from rappor.aggregate.association_files import count_association_reports
    from rappor.aggregate.pair_counts import PairCounts

    if args.what.lower().endswith(_PAIRS):
        for option in ("schema", "params_dir", "metric", "variables", "reports_per_client"):
            if getattr(args, option) is not None:
                name = option.replace("_", "-")
                raise UsageError(
                    f"--{name} does not go with pair counts, which hold it: leave it out"
                )
        return PairCounts.from_npz(args.what)
    if args.schema is None:
        raise UsageError(
            "reports of several variables need the list of their variables: --schema "
            "rappor-vars.csv"
        )
    chosen = _variables(args)
    read = 0

    def counted(size: int) -> None:
        nonlocal read
        read += size
        tick(f"counting pairs of bits: {read / 1e6:.0f} MB")

    result = count_association_reports(
        path_of(args.what),
        chosen,
        dialect=args.dialect or "google",
        reports_per_client=args.reports_per_client,
        progress=counted,
    )
    if result.malformed:
        lines = plural(result.malformed, "line is not a report", "lines are not reports")
        why = max(result.reasons, key=lambda reason: result.reasons[reason])
        note(f"note: {lines} and left out; the most frequent reason: {why}")
    return result.counts


def _variables(args: argparse.Namespace) -> tuple[ReportedVariable, ReportedVariable]:
    """The two variables that were asked for, or the only two there are."""
    from rappor.aggregate.association_files import read_variables

    listed = read_variables(args.schema, args.params_dir)
    metrics = list(dict.fromkeys(variable.metric for variable in listed))
    metric = args.metric or (metrics[0] if len(metrics) == 1 else None)
    if metric is None:
        raise UsageError(f"the list has {len(metrics)} metrics: say which with --metric")
    if metric not in metrics:
        raise UsageError(f"--metric must be one of {', '.join(metrics)}; got {metric}")
    mine = {variable.name: variable for variable in listed if variable.metric == metric}
    names = list(mine) if args.variables is None else args.variables.split(",")
    if args.variables is None and len(mine) != 2:
        raise UsageError(
            f"metric {metric} has {plural(len(mine), 'variable', 'variables')}: name two with "
            "--variables FIRST,SECOND"
        )
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("--variables must name two variables: FIRST,SECOND")
    for name in names:
        if name not in mine:
            raise UsageError(f"--variables must be two of {', '.join(mine)}; got {name}")
    return mine[names[0]], mine[names[1]]


def _values(
    files: dict[str, tuple[str, str]], sides: dict[str, Counts]
) -> tuple[FieldValues, FieldValues]:
    """What to look for in each variable: a design from a map, strings, or nothing."""
    from rappor.decoding.candidates import Candidates
    from rappor.decoding.mapfile import read_map

    given: dict[str, FieldValues] = {}
    for name, (option, file) in files.items():
        is_map = option == "map"
        given[name] = read_map(file, sides[name].params) if is_map else Candidates.read(file)
    first, second = sides
    return given.get(first), given.get(second)


def _show(args: argparse.Namespace, found: Association) -> int:
    from rappor.cli.result_files import replacing
    from rappor.decoding import association_table

    summary = association_table.summary(found)
    if args.output is not None:
        _write(args.output, found)
    if args.plot is not None:
        with replacing(args.plot) as path:
            found.plot().save(path)
    if args.json:
        say_json(association_table.document(found))
    elif args.output is None:
        for line in (*association_table.lines(found, every=args.all), "", summary):
            say(line)
    told = [check.text for check in found.checks if not check.ok or check.code == "epsilon"]
    for text in (*found.notes, *told):
        note(f"note: {text}")
    if args.output is not None:
        note(summary)
    return NOTHING if args.exit_code and not found.is_associated else 0


def _write(name: str, found: Association) -> None:
    """Write the cells in the format of the name's suffix; "-" prints CSV."""
    from rappor.cli.result_files import replacing
    from rappor.decoding import association_table, exports

    table = found.columns()
    if name == "-":
        sys.stdout.flush()
        for line in exports.csv_lines(table):
            sys.stdout.buffer.write(line.encode())
        return
    with replacing(name) as path:
        match path.suffix.lower():
            case ".json":
                text = json.dumps(association_table.document(found), indent=2, allow_nan=False)
                path.write_text(text + "\n", encoding="ascii")
            case ".parquet":
                exports.write_parquet(table, path)
            case _:
                with path.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(exports.csv_lines(table))
