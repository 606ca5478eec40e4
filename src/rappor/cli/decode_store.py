"""`rappor decode COLLECTION --data DIR`: decode the counts of a store."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.store_options import day_range, definition, open_data
from rappor.errors import DecodeError
from rappor.params import FIELDS

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.decoding.result import Decoded
    from rappor.store import StoredCounts

# Options that a collection's definition replaces.
_OTHER_FORM = ("counts", "params", "preset", "kind", "dialect", "categories", "edges", *FIELDS)
_ONLY_HERE = ("data", "period", "by", "version")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this form."""
    group = parser.add_argument_group("a collection from a data folder, instead of all above")
    group.add_argument("collection", nargs="?", metavar="COLLECTION", help="its name")
    group.add_argument("--data", metavar="DIR", help="the data folder")
    group.add_argument(
        "--period",
        metavar="P",
        help="a period such as 2026-11-16 or 2026-W47, or FROM..TO (default: all, added up)",
    )
    group.add_argument(
        "--by",
        metavar="DIMENSION",
        help="decode each value of a declared dimension by itself, or with `period` each period",
    )
    group.add_argument(
        "--version", type=count, metavar="N", help="the collection's version (default: the newest)"
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
        raise UsageError(f"--{given[0]} does not go with a collection: its definition says it")
    return True


def run(args: argparse.Namespace) -> int:
    """Read, decode each part, write, summarise."""
    from rappor.cli.decode import NOTHING, show

    collection, parts = _read(args)
    _check(args, collection)
    results = {
        name: _decode(args, collection, counts, name) for name, counts in parts.items() if counts
    }
    if args.by is None:
        return show(args, next(iter(results.values())))
    return NOTHING if _show_each(args, results) and args.exit_code else 0


def _read(args: argparse.Namespace) -> tuple[Collection, dict[str, list[Counts]]]:
    """The counts by the value of the --by dimension; by "" without one."""
    with closing(open_data(args.data)) as store:
        from rappor.aggregate.stored_counts import split, sum_cells, within

        collection = definition(store, args.collection, args.version)
        days = (None, None) if args.period is None else day_range(args.period)
        everything = store.counts(collection.name, collection.version)
    cells = [each for each in everything if within(each.cell.period, *days)]
    if not cells:
        known = sorted({each.cell.period for each in everything})
        there = f"its periods are {known[0]} to {known[-1]}" if known else "it has no reports yet"
        raise DecodeError(f"nothing to decode in {collection.name} v{collection.version}: {there}")
    note(_said(collection, cells))
    parts = {"": cells} if args.by is None else split(cells, args.by)
    return collection, {name: sum_cells(each, collection) for name, each in parts.items()}


def _said(collection: Collection, cells: list[StoredCounts]) -> str:
    periods = sorted({each.cell.period for each in cells})
    time = periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]} added up"
    return f"{collection.name} v{collection.version}, {time}"


def _check(args: argparse.Namespace, collection: Collection) -> None:
    if args.candidates is not None and args.map is not None:
        raise UsageError("give --candidates or --map, not both")
    given = args.candidates is not None or args.map is not None
    if collection.kind == "string" and not given:
        raise UsageError("strings are decoded against a list: give --candidates or --map")
    if collection.kind != "string" and given:
        raise UsageError(f"{collection.name} is of kind {collection.kind}: it needs no candidates")
    if args.method != "auto" and collection.kind != "string":
        raise UsageError(f"--method does not go with kind {collection.kind}")
    if args.by is not None and args.output == "-":
        raise UsageError("--by makes several tables: --output must be a file's name")


def _decode(
    args: argparse.Namespace, collection: Collection, counts: list[Counts], name: str
) -> Decoded:
    from rappor.cli.decode_inputs import design_from
    from rappor.decoding.decode import decode

    with Ticker() as tick:
        looked_for: Any = collection.categories or collection.ranges
        if collection.kind == "string":
            looked_for = design_from(args, counts[0], tick)
        return decode(
            counts,
            looked_for,
            correction=args.correction,
            alpha=args.alpha,
            method=args.method,
            null_reports=collection.null_reports,
            progress=lambda text: tick(f"{name}: {text}" if name else text),
        )


def _show_each(args: argparse.Namespace, results: dict[str, Decoded]) -> bool:
    """Print all results, one after the other; return whether nothing was detected in any."""
    from rappor.cli.decode import show
    from rappor.decoding.exports import document

    if args.json:
        parts = {name: document(decoded, every=args.all) for name, decoded in results.items()}
        say_json({"collection": args.collection, "by": args.by, "results": parts})
    for number, (name, decoded) in enumerate(results.items()):
        part = argparse.Namespace(**vars(args))
        part.output, part.plot = (_named(path, name) for path in (args.output, args.plot))
        part.json = False
        if args.json and part.output is None:
            continue
        if args.output is None:
            say(f"{'' if number == 0 else chr(10)}{args.by} {name}")
        show(part, decoded)
    return not any(decoded.detected for decoded in results.values())


def _named(path: str | None, value: str) -> str | None:
    """The file of one value: results.csv becomes results.NZ.csv.

    >>> _named("results.csv", "NZ"), _named("a.csv", "x/y")
    ('results.NZ.csv', 'a.x_y.csv')
    """
    if path is None:
        return None
    whole = Path(path)
    safe = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in value)
    return str(whole.with_name(f"{whole.stem}.{safe}{whole.suffix}"))
