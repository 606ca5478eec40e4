"""`rappor compare`: which shares differ between two periods, two parts or two files of counts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, add_params, count, need_analysis
from rappor.cli.decode import NOTHING, add_correction, add_looked_for, check_kind
from rappor.cli.decode_inputs import check_targets, design_from, read_one
from rappor.cli.decode_store import add_exact, check, listed_from, named_for, view_facts
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.store_options import add_store, analysed, day_range
from rappor.params import FIELDS

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.decoding.differences import Compared
    from rappor.stored_view import StoredView

# Options that a collection's definition replaces, and those that only go with a collection.
_OF_FILES = ("params", "preset", "kind", "dialect", "categories", "edges", *FIELDS)
_OF_FILES_TOO = ("reports_per_client", "null_reports")
_OF_COLLECTIONS = ("period", "against", "dimension", "by", "version", "exact")
_SAID = {"against": "with"}  # options with other names than their attributes


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "compare",
        help="which shares differ between two periods, parts or files of counts",
        description="Tests every candidate for a difference between two periods, two values of a "
        "dimension, or two files of counts. A difference is the newer share minus the older one, "
        "in percentage points, with a 95 % interval.",
        epilog="Examples: rappor compare homepage --data data (the latest period with enough "
        "reports, and the one before); rappor compare homepage --data data --by country (the same "
        "in each country); rappor compare homepage --data data --period 2026-W47 --with 2026-W40; "
        "rappor compare homepage --data data --dimension country=NZ --with country=AU; rappor "
        "compare may.npz june.npz --candidates candidates.txt. Without --candidates, strings of a "
        "collection are those of the newest list saved on the page Candidates. "
        f"Exit code {NOTHING}: nothing differs (with --exit-code).",
        allow_abbrev=False,
    )
    parser.add_argument(
        "what",
        nargs="+",
        metavar="COLLECTION | OLD NEW",
        help="a collection of --data, or two files of counts, the older first",
    )
    group = parser.add_argument_group("a collection from a data folder")
    group.add_argument("--data", metavar="DIR", help="the data folder")
    add_store(group, dest="data")
    group.add_argument(
        "--period",
        metavar="P",
        help="a period such as 2026-11-16 or 2026-W47; FROM..TO is added up (default: the latest "
        "period with enough reports)",
    )
    group.add_argument(
        "--dimension",
        action="append",
        metavar="NAME=VALUE",
        help="only reports with this value; may be repeated",
    )
    group.add_argument(
        "--with",
        dest="against",
        metavar="P | NAME=VALUE",
        help="what to compare with: other periods, or another value of --dimension (default: the "
        "period before)",
    )
    group.add_argument(
        "--by",
        metavar="DIMENSION",
        help="compare each value of a declared dimension by itself: what changed, by country",
    )
    group.add_argument(
        "--version",
        type=count,
        metavar="N",
        help="the collection's version (default: the newest with reports)",
    )
    add_params(parser)
    add_exact(group)
    group = parser.add_argument_group("two files of counts")
    group.add_argument(
        "--reports-per-client",
        type=count,
        metavar="N",
        help="the most reports that one client made on one value, in each file",
    )
    group.add_argument(
        "--null-reports",
        action="store_true",
        default=None,
        help="clients without a value report too, so that fewer bits may be set",
    )
    add_looked_for(parser)
    add_correction(parser)
    group = parser.add_argument_group("what to write (default: a table of what differs)")
    group.add_argument(
        "--output", metavar="FILE", help="results as .csv, .json or .parquet; - prints CSV"
    )
    group.add_argument(
        "--all", action="store_true", help="also what does not differ, with a column that says so"
    )
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument(
        "--exit-code", action="store_true", help=f"exit with {NOTHING} when nothing differs"
    )
    # Options of `decode` that a comparison does not have.
    parser.set_defaults(
        run=run, counts=(), method="auto", decoder=None, smooth=None, overlap=None, plot=None
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Read both sides, compare, write, summarise."""
    if args.json and args.output == "-":
        raise UsageError("--json and --output - both print: give one of them")
    from_store = _from_store(args)
    if not from_store:
        args.counts = args.what
    check_targets(args)
    need_analysis("compare")
    if not from_store:
        return _show(args, _compare_files(args), {})
    if args.by is not None and args.output == "-":
        raise UsageError("--by makes several tables: --output must be a file's name")
    results = _compare_stored(args)
    if args.by is None:
        return _show(args, *results[""])
    return _show_each(args, results)


def _from_store(args: argparse.Namespace) -> bool:
    """Whether a collection is compared; UsageError if the arguments mix both forms."""
    if args.data is None:
        given = [name for name in _OF_COLLECTIONS if getattr(args, name) is not None]
        if given:
            option = _SAID.get(given[0], given[0])
            raise UsageError(f"--{option} goes with a collection: rappor compare NAME --data DIR")
        if len(args.what) == 1:
            raise UsageError(
                f"what is {args.what[0]} to be compared with? Give two files of counts, the older "
                "first, or a collection with its data folder: --data DIR"
            )
        if len(args.what) > 2:
            raise UsageError(f"give two files, the older first; got {len(args.what)}")
        return False
    if len(args.what) > 1:
        raise UsageError("--data goes with the name of one collection: rappor compare NAME")
    names = (*_OF_FILES, *_OF_FILES_TOO)
    given = [name for name in names if getattr(args, name) is not None]
    if given:
        option = given[0].replace("_", "-")
        raise UsageError(
            f"--{option} does not go with a collection: its definition says it; leave it out"
        )
    return True


def _compare_stored(args: argparse.Namespace) -> dict[str, tuple[Compared, dict[str, Any]]]:
    """The comparison of each value of --by, with what was compared; without it, one named ""."""
    from rappor.stored_view import ALL, sides_by
    from rappor.view_results import compare_views, list_size
    from rappor.workspace import Workspace

    dimensions = _dimensions(args.dimension or ())
    for text in (args.period, args.against):
        if text is not None and text != ALL and "=" not in text:
            day_range(text)  # UsageError for a range that ends before it begins
    workspace = Workspace(analysed(args.data), exact=bool(args.exact))
    about: dict[str, Any] = {"period": args.period, "dimensions": dimensions}
    first = workspace.view(args.what[0], version=args.version, **about)
    check(args, first.collection)
    listed, size = None, 0
    if first.collection.kind == "string":
        listed = listed_from(args, workspace, first.collection)
        size = list_size(args.map if listed is None else listed)
    if args.against is None and first.periods[0] == first.stored[0]:
        raise UsageError(
            f"{first.title}: there is no earlier period; say what to compare with: --with"
        )
    sides = workspace.sides(
        args.what[0],
        against=args.against,
        version=first.collection.version,
        candidates=size,
        **about,
    )
    parts = {"": sides} if args.by is None else sides_by(*sides, args.by)
    with Ticker() as tick:
        design = None
        if first.collection.kind == "string":
            design = design_from(args, sides[0].counts[0], tick, listed)
        asked = {"correction": args.correction, "alpha": args.alpha}
        results = {}
        for value, (new, old) in parts.items():
            tick(f"comparing {value}".rstrip())
            compared = compare_views(new, old, design, **asked)
            results[value] = (compared, {"new": _side(new), "old": _side(old)})
    return results


def _side(view: StoredView) -> dict[str, Any]:
    return view_facts(view) | {"reports": view.reports}


def _dimensions(given: list[str] | tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not name or not sign or not value:
            raise UsageError(f"--dimension must be NAME=VALUE, got {text}")
        found[name] = value
    return found


def _compare_files(args: argparse.Namespace) -> Compared:
    from rappor.decoding.compare import compare

    old, new = (read_one(args, name) for name in args.what)
    check_kind(args, new.kind)
    names = [Path(name).name for name in reversed(args.what)]
    if names[0] == names[1]:
        names = list(reversed(args.what))
    with Ticker() as tick:
        tick("comparing")
        return compare(
            new,
            old,
            _looked_for(args, new, tick),
            correction=args.correction,
            alpha=args.alpha,
            null_reports=bool(args.null_reports),
            names=(names[0], names[1]),
        )


def _looked_for(args: argparse.Namespace, counts: Counts, tick: Ticker) -> Any:
    from rappor.cli.arguments import ranges_from

    if counts.kind == "string":
        return design_from(args, counts, tick)
    if args.categories is not None:
        return args.categories.split(",")
    return args.candidates if args.edges is None else ranges_from(args.edges)


def _show(args: argparse.Namespace, compared: Compared, facts: dict[str, Any]) -> int:
    from rappor.decoding import exports, result_table

    summary = result_table.difference_summary(compared)
    every = args.all or compared.kind != "string"
    if args.output is not None:
        _write(args.output, compared, facts, every=every)
    if args.json:
        say_json(facts | exports.difference_document(compared, every=every))
    elif args.output is None:
        for line in (*result_table.difference_lines(compared, every=args.all), "", summary):
            say(line)
    for text in (*compared.notes, *compared.warnings):
        note(f"note: {text}")
    if args.output is not None:
        note(summary)
    return NOTHING if args.exit_code and not compared.different else 0


def _show_each(
    args: argparse.Namespace, results: dict[str, tuple[Compared, dict[str, Any]]]
) -> int:
    """Print all comparisons, one after the other; NOTHING if none has a difference."""
    from rappor.decoding.exports import difference_document

    if args.json:
        parts = {
            value: facts
            | difference_document(compared, every=args.all or compared.kind != "string")
            for value, (compared, facts) in results.items()
        }
        say_json({"collection": args.what[0], "by": args.by, "results": parts})
    for number, (value, (compared, facts)) in enumerate(results.items()):
        part = argparse.Namespace(**vars(args))
        part.output, part.json = named_for(args.output, value), False
        if args.json and part.output is None:
            continue
        if part.output is None:
            say(f"{'' if number == 0 else chr(10)}{args.by} {value}")
        _show(part, compared, facts)
    different = any(compared.different for compared, _ in results.values())
    return NOTHING if args.exit_code and not different else 0


def _write(name: str, compared: Compared, facts: dict[str, Any], *, every: bool) -> None:
    """Write the rows in the format of the name's suffix; "-" prints CSV."""
    from rappor.cli.result_files import replacing
    from rappor.decoding import exports

    table = exports.difference_columns(compared, every)
    if name == "-":
        sys.stdout.flush()
        for line in exports.csv_lines(table):
            sys.stdout.buffer.write(line.encode())
        return
    with replacing(name) as path:
        match path.suffix.lower():
            case ".json":
                whole = facts | exports.difference_document(compared, every=every)
                path.write_text(
                    json.dumps(whole, indent=2, allow_nan=False) + "\n", encoding="ascii"
                )
            case ".parquet":
                exports.write_parquet(table, path)
            case _:
                with path.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(exports.csv_lines(table))
