"""`rappor associate COLLECTION --data DIR` and `COUNTS --definition FILE`: fields of a tuple."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rappor.cli.arguments import UsageError, count
from rappor.cli.decode_store import add_exact
from rappor.cli.paths import path_of
from rappor.cli.store_options import add_store, analysed, day_range
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.decoding.association import Association
    from rappor.decoding.field_design import FieldValues
    from rappor.mechanism.views import Views

_OTHER_FORMS = ("schema", "params_dir", "metric", "save", "map", "dialect")
_OF_STORE = ("period", "version", "exact")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of these forms."""
    group = parser.add_argument_group("a collection of kind tuple")
    group.add_argument("--data", metavar="DIR", help="the data folder that has its counts")
    add_store(group, dest="data")
    group.add_argument(
        "--definition",
        metavar="FILE",
        help="its definition (.toml), for counts in a file (.csv, .npz, .parquet)",
    )
    group.add_argument(
        "--period",
        metavar="P",
        help="a period such as 2026-11-16 or 2026-W47; FROM..TO or `all` are added up (default: "
        "the latest period with enough reports)",
    )
    group.add_argument(
        "--version",
        type=count,
        metavar="N",
        help="the collection's version (default: the newest with reports)",
    )
    add_exact(group)


def wanted(args: argparse.Namespace) -> bool:
    """Whether the arguments ask for fields of a tuple; UsageError if they mix forms."""
    if args.data is not None and args.definition is not None:
        raise UsageError("give --data or --definition, not both")
    if args.data is None:
        given = [name for name in _OF_STORE if getattr(args, name) is not None]
        if given:
            raise UsageError(
                f"--{given[0]} goes with a collection: rappor associate NAME --data DIR"
            )
    if args.data is None and args.definition is None:
        return False
    given = [name for name in _OTHER_FORMS if getattr(args, name) is not None]
    if args.data is not None and args.reports_per_client is not None:
        given.append("reports_per_client")
    if given:
        name = given[0].replace("_", "-")
        raise UsageError(f"--{name} does not go with a collection of kind tuple: leave it out")
    return True


def associated(args: argparse.Namespace) -> Association:
    """Read, and associate two fields."""
    if args.data is not None:
        return _from_store(args)
    from rappor.collection import Collection
    from rappor.decoding.associate import associate

    collection = Collection.read(path_of(args.definition))
    views = _views(collection)
    fields = _fields(args, views)
    return associate(
        _counts(args, collection),
        _candidates(args, views, fields),
        views=views,
        fields=fields,
        null_reports=collection.null_reports,
        correction=args.correction,
        alpha=args.alpha,
    )


def _from_store(args: argparse.Namespace) -> Association:
    from rappor.stored_view import ALL
    from rappor.workspace import Workspace

    if args.period is not None and args.period != ALL:
        day_range(args.period)  # UsageError for a range that ends before it begins
    workspace = Workspace(analysed(args.data), exact=bool(args.exact))
    views = _views(workspace.collection(args.what, args.version))
    fields = _fields(args, views)
    lists = _candidates(args, views, fields, is_complete=False)
    missing = [name for name in _strings(views, fields) if name not in lists]
    if missing:
        try:
            lists |= workspace.saved_field_lists(args.what, missing)
        except DecodeError:
            raise UsageError(
                f"{missing[0]} holds strings, and the data folder has no list for it: give "
                "--candidates, or save a list on the page Candidates"
            ) from None
    return workspace.associate(
        args.what,
        lists,
        fields=fields,
        period=args.period,
        version=args.version,
        correction=args.correction,
        alpha=args.alpha,
    )


def _views(collection: Collection) -> Views:
    if collection.tuple_views is None:
        raise UsageError(
            f"{collection.name} is of kind {collection.kind}: it holds one variable; decode it "
            "with `rappor decode`"
        )
    return collection.tuple_views


def _counts(args: argparse.Namespace, collection: Collection) -> Counts:
    """The counts in a file, which must be of the collection's kind and parameters."""
    from rappor.aggregate.counts import Counts

    path = path_of(args.what)
    match path.suffix.lower():
        case ".npz":
            counts = Counts.from_npz(path)
        case ".parquet":
            counts = Counts.from_parquet(path)
        case _:
            return Counts.from_csv(
                path,
                collection.params,
                kind=collection.kind,
                dialect=collection.dialect,
                collection=collection.name,
                version=collection.version,
                reports_per_client=args.reports_per_client,
            )
    if args.reports_per_client is not None:
        raise UsageError(f"--reports-per-client: {path.name} says it; leave it out")
    if counts.kind != collection.kind or counts.params != collection.params:
        raise UsageError(
            f"{path.name} does not hold counts of {collection.name}: kind or parameters differ "
            "from the definition; give the definition that they were made with"
        )
    return counts


def _fields(args: argparse.Namespace, views: Views) -> tuple[str, str]:
    """The two fields that were asked for, or the only two there are."""
    names = [declared.name for declared in views.fields]
    chosen = names if args.variables is None else args.variables.split(",")
    if args.variables is None and len(names) != 2:
        raise UsageError(
            f"the tuple has {len(names)} fields: name two of {', '.join(names)} with --variables "
            "FIRST,SECOND"
        )
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise UsageError(f"--variables must be two of {', '.join(names)}: FIRST,SECOND")
    return chosen[0], chosen[1]


def _strings(views: Views, fields: tuple[str, str]) -> list[str]:
    """The fields that hold strings."""
    return [each.name for each in views.fields if each.name in fields and each.kind == "string"]


def _candidates(
    args: argparse.Namespace, views: Views, fields: tuple[str, str], *, is_complete: bool = True
) -> dict[str, FieldValues]:
    """The lists of fields that hold strings; if `is_complete`, none of them may be missing."""
    from rappor.decoding.candidates import Candidates

    kinds = {each.name: each.kind for each in views.fields if each.name in fields}
    choice = "--candidates" if is_complete else None
    files = candidate_files(args, {name: kinds[name] for name in fields}, choice)
    return {name: Candidates.read(file) for name, (_, file) in files.items()}


def candidate_files(
    args: argparse.Namespace, kinds: Mapping[str, str], choice: str | None = "--candidates or --map"
) -> dict[str, tuple[str, str]]:
    """For each variable that holds strings, the option and the file of its list.

    Args:
        args: the arguments.
        kinds: the kind of each variable.
        choice: how a list is given, for the UsageError if one is missing; None: it may be missing.
    """
    given: dict[str, tuple[str, str]] = {}
    open_names = [name for name, kind in kinds.items() if kind == "string"]
    for option in ("candidates", "map"):
        for text in getattr(args, option) or ():
            name, sign, file = text.partition("=")
            if not sign or name not in kinds:
                if len(open_names) != 1:
                    raise UsageError(
                        f"--{option} {text}: say for which variable: NAME=FILE, with NAME one of "
                        f"{', '.join(open_names) or 'the string variables (there are none)'}"
                    )
                name, file = open_names[0], text
            if name in given:
                raise UsageError(f"--{option}: {name} has a list already; give one for each")
            if name not in open_names:
                raise UsageError(f"--{option}: {name} is {kinds[name]} and needs no list")
            given[name] = option, file
    for name in open_names:
        if name not in given and choice is not None:
            raise UsageError(f"{name} holds strings: give {choice} for it")
    return given
