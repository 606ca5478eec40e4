"""`rappor decode COLLECTION --data DIR`: decode the counts of a store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count
from rappor.cli.decode_inputs import check_shape, overlap_from
from rappor.cli.output import Ticker, say, say_json
from rappor.cli.store_options import add_store, analysed, day_range
from rappor.decoding.options import check_decoded
from rappor.errors import DecodeError
from rappor.params import FIELDS

if TYPE_CHECKING:
    from rappor.collection import Collection
    from rappor.decoding.candidates import Candidates
    from rappor.decoding.result import Decoded
    from rappor.stored_view import StoredView
    from rappor.workspace import Workspace

# Options that a collection's definition replaces.
_OTHER_FORM = ("counts", "params", "preset", "kind", "dialect", "categories", "edges", *FIELDS)
_ONLY_HERE = ("data", "period", "by", "version", "exact")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this form."""
    group = parser.add_argument_group("a collection from a data folder, instead of all above")
    group.add_argument("collection", nargs="?", metavar="COLLECTION", help="its name")
    group.add_argument("--data", metavar="DIR", help="the data folder")
    add_store(group, dest="data")
    group.add_argument(
        "--period",
        metavar="P",
        help="a period such as 2026-11-16 or 2026-W47; FROM..TO or `all` are added up (default: "
        "the latest period with enough reports; all with --by period)",
    )
    group.add_argument(
        "--by",
        metavar="DIMENSION",
        help="decode each value of a declared dimension by itself, or with `period` each period",
    )
    group.add_argument(
        "--version",
        type=count,
        metavar="N",
        help="the collection's version (default: the newest with reports)",
    )
    add_exact(group)


def add_exact(group: argparse._ArgumentGroup) -> None:
    """--exact, for verbs that show what pages show by default."""
    group.add_argument(
        "--exact",
        action="store_true",
        default=None,
        help="count every stored report, also the newest of open periods, which pages show in "
        "steps of 50",
    )


def wanted(args: argparse.Namespace) -> bool:
    """Whether the arguments ask for this form; UsageError if they mix both."""
    if args.collection is None:
        given = [name for name in _ONLY_HERE if getattr(args, name) is not None]
        if given:
            raise UsageError(f"--{given[0]} goes with a collection: rappor decode NAME --data DIR")
        return False
    if args.data is None:
        raise UsageError(f"where is {args.collection}? Give its data folder: --data DIR")
    given = [name for name in _OTHER_FORM if getattr(args, name) is not None]
    given += ["sum-periods"] if args.sum_periods else []
    given += ["reports-per-client"] if args.reports_per_client is not None else []
    given += ["null-reports"] if args.null_reports else []
    if given:
        raise UsageError(
            f"--{given[0]} does not go with a collection: its definition says it; leave it out"
        )
    return True


def run(args: argparse.Namespace) -> int:
    """Read, decode each part, write, summarise."""
    from rappor.cli.decode import NOTHING, show

    view, listed = read_view(args)
    parts = {"": view} if args.by is None else view.by(args.by)
    results = {name: _decode(args, part, listed, name) for name, part in parts.items()}
    if args.by is None:
        return show(args, results[""], view)
    return NOTHING if _show_each(args, results, parts) and args.exit_code else 0


def read_view(args: argparse.Namespace) -> tuple[StoredView, Candidates | None]:
    """The stored counts that were asked for, and the list of candidates, if it is not a map."""
    from rappor.stored_view import ALL
    from rappor.view_results import list_size
    from rappor.workspace import Workspace

    period = args.period
    if period is not None and period != ALL:
        day_range(period)  # UsageError for a range that ends before it begins
    if period is None and args.by == "period":
        period = ALL
    workspace = Workspace(analysed(args.data), exact=bool(args.exact))
    view = workspace.view(args.collection, period=period, version=args.version)
    if args.by is not None:
        view.by(args.by)  # DecodeError before the list is read
    check(args, view.collection)
    if view.collection.kind != "string":
        return view, None
    listed = listed_from(args, workspace, view.collection)
    if period is None:  # how many reports are enough depends on the number of candidates
        size = list_size(args.map if listed is None else listed)
        version = view.collection.version
        view = workspace.view(args.collection, version=version, candidates=size)
    return view, listed


def listed_from(
    args: argparse.Namespace, workspace: Workspace, collection: Collection
) -> Candidates | None:
    """The strings of --candidates, or those that the data folder holds; None with --map."""
    from rappor.decoding.candidates import Candidates

    if args.map is not None:
        return None
    if args.candidates is not None:
        return Candidates.read(args.candidates)
    try:
        return workspace.candidates(collection.name)
    except DecodeError:
        raise UsageError(
            f"strings are decoded against a list, and the data folder has none for "
            f"{collection.name}: give --candidates or --map"
        ) from None


def check(args: argparse.Namespace, collection: Collection) -> None:
    """UsageError for options that do not go with the collection."""
    check_decoded(collection.kind, collection.name)
    if args.candidates is not None and args.map is not None:
        raise UsageError("give --candidates or --map, not both")
    given = args.candidates is not None or args.map is not None
    if collection.kind != "string" and given:
        raise UsageError(f"{collection.name} is of kind {collection.kind}: it needs no candidates")
    for option, given in (("--method", args.method != "auto"), ("--decoder", args.decoder)):
        if given and collection.kind != "string":
            raise UsageError(f"{option} does not go with kind {collection.kind}: leave it out")
    check_shape(args, collection.kind)
    if getattr(args, "by", None) is not None and args.output == "-":
        raise UsageError("--by makes several tables: --output must be a file's name")


def _decode(
    args: argparse.Namespace, view: StoredView, listed: Candidates | None, name: str
) -> Decoded:
    from rappor.cli.decode_inputs import design_from
    from rappor.view_results import decode_view

    with Ticker() as tick:
        design = None
        if view.collection.kind == "string":
            design = design_from(args, view.counts[0], tick, listed)
        return decode_view(
            view,
            design,
            correction=args.correction,
            alpha=args.alpha,
            method=args.method,
            decoder=args.own_decoder,
            overlap=overlap_from(args),
            progress=lambda text: tick(f"{name}: {text}" if name else text),
        )


def _show_each(
    args: argparse.Namespace, results: dict[str, Decoded], views: dict[str, StoredView]
) -> bool:
    """Print all results, one after the other; return whether nothing was detected in any."""
    from rappor.cli.decode import show
    from rappor.decoding.exports import document

    if args.json:
        parts = {
            name: view_facts(views[name]) | document(decoded, every=args.all)
            for name, decoded in results.items()
        }
        say_json({"collection": args.collection, "by": args.by, "results": parts})
    for number, (name, decoded) in enumerate(results.items()):
        part = argparse.Namespace(**vars(args))
        part.output, part.plot = (named_for(path, name) for path in (args.output, args.plot))
        part.json = False
        if args.json and part.output is None:
            continue
        if args.output is None:
            say(f"{'' if number == 0 else chr(10)}{args.by} {name}")
        show(part, decoded, views[name])
    return not any(decoded.detected for decoded in results.values())


def view_facts(view: StoredView) -> dict[str, Any]:
    """What was decoded, with the keys of the page's JSON."""
    return {
        "collection": view.collection.name,
        "version": view.collection.version,
        "periods": list(view.periods),
        "dimensions": dict(view.dimensions),
    }


def named_for(path: str | None, value: str) -> str | None:
    """The file of one value: results.csv becomes results.NZ.csv.

    >>> named_for("results.csv", "NZ"), named_for("a.csv", "x/y")
    ('results.NZ.csv', 'a.x_y.csv')
    """
    if path is None:
        return None
    whole = Path(path)
    safe = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in value)
    return str(whole.with_name(f"{whole.stem}.{safe}{whole.suffix}"))
