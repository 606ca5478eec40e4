"""`rappor collection retire NAME`: end a collection, and do with its data what is said."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rappor import formats
from rappor.checks import show
from rappor.cli.arguments import count
from rappor.cli.output import note, say, say_json
from rappor.cli.paths import existing_folder, path_of
from rappor.cli.store_options import add_data, open_data, saved, today, where
from rappor.collection import Collection, Registry
from rappor.collection.expiry import at_expiry
from rappor.collection.fields import ON_EXPIRY
from rappor.collection.registry import definition_files
from rappor.collection.retirement import retired, retired_text
from rappor.errors import ParamsError
from rappor.files import write_text
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import Store


class _File(NamedTuple):
    """The file of a definition, and its text after the end."""

    path: Path
    collection: Collection
    text: str


class _Holding(NamedTuple):
    """What the store has of a collection."""

    counted: int
    cells: int
    kept: int


def add_retire(actions: Any) -> Any:
    """Add the action."""
    parser = actions.add_parser(
        "retire",
        help="end a collection now, and delete its data or keep its counts",
        description="End every version of a collection today: set expires in its files and in the "
        "store, run retention, and say what was deleted. By default its counts and reports are "
        "deleted, or what its on_expiry says. This cannot be undone: make a backup, or try "
        "--dry-run first.",
        epilog="Example: rappor collection retire homepage --data data --collections collections "
        "--dry-run",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="the collection")
    add_data(parser)
    parser.add_argument(
        "--collections",
        required=True,
        metavar="DIR",
        help="the collector's folder of definitions; the collection's files in it are changed",
    )
    parser.add_argument(
        "--version", type=count, metavar="N", help="end only this version (default: all)"
    )
    parser.add_argument(
        "--on-expiry",
        choices=ON_EXPIRY,
        help="what happens to its counts (default: what its definition says)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would happen")
    parser.set_defaults(run=run_retire)
    return parser


def run_retire(args: argparse.Namespace) -> int:
    """Change the definitions, then let retention delete."""
    existing_folder(args.collections, "folder of collections")
    with closing(open_data(where(args), read_only=args.dry_run)) as store:
        stored = [item for item in saved(store) if _is_meant(item, args)]
        files = _files(args)
        if not stored and not files:
            which = "" if args.version is None else f" v{args.version}"
            raise ParamsError(
                f"neither the store nor {args.collections} has a collection "
                f"{show(args.name)}{which}; see `rappor status`"
            )
        ended = [retired(item, today(), args.on_expiry) for item in stored]
        before = _holding(store, ended)
        if args.dry_run:
            after, settled = _planned(before, ended), True
        else:
            after, settled = _retire(store, args, ended, files)
    document = _document(args, ended, files, before, after)
    if args.json:
        say_json(document)
    else:
        for line in _lines(
            args, ended or [file.collection for file in files], files, before, after
        ):
            say(line)
    if not settled:
        note("note: another process reads the store: the bytes are erased when it ends")
    _remind(args)
    return 0


def _is_meant(collection: Collection, args: argparse.Namespace) -> bool:
    return collection.name == args.name and args.version in (None, collection.version)


def _files(args: argparse.Namespace) -> list[_File]:
    """The files of the collection, each with its new text."""
    found = []
    for path in definition_files(args.collections):
        collection = Collection.read(path)
        if _is_meant(collection, args):
            ended = retired(collection, today(), args.on_expiry)
            text = retired_text(formats.read_text(path), path.parent, collection, ended)
            found.append(_File(path, ended, text))
    return found


def _retire(
    store: Store, args: argparse.Namespace, ended: list[Collection], files: list[_File]
) -> tuple[dict[str, _Holding], bool]:
    """Files first: if this stops half-way, the collector still learns that the collection ended."""
    from rappor.cli.retain import forget_results

    for file in files:
        write_text(file.path, file.text)
    for collection in ended:
        store.save_definition(collection.to_toml(), actor=actor())
    versions = ", ".join(f"v{collection.version}" for collection in ended) or "no version"
    ways = "; ".join(dict.fromkeys(at_expiry(collection) for collection in ended))
    store.audit(actor(), "retire", f"{args.name} {versions}: {ways}")
    # By the files: another collection's saved definition may be older than its file.
    done = store.retain(today(), Registry.open(args.collections), actor=actor())
    forget_results(args.data, {summary.cell[:2] for summary in store.cells()})
    return _holding(store, ended), done.settled


def _holding(store: Store, collections: list[Collection]) -> dict[str, _Holding]:
    """What the store has, by name and version."""
    cells = store.cells()
    found = {}
    for collection in collections:
        mine = [cell for cell in cells if cell.cell[:2] == (collection.name, collection.version)]
        found[_label(collection)] = _Holding(
            sum(cell.reports for cell in mine), len(mine), sum(cell.kept for cell in mine)
        )
    return found


def _planned(before: dict[str, _Holding], ended: list[Collection]) -> dict[str, _Holding]:
    """What retention would leave."""
    return {
        _label(item): _Holding(0, 0, 0)
        if item.on_expiry == "delete"
        else before[_label(item)]._replace(kept=0)
        for item in ended
    }


def _label(collection: Collection) -> str:
    return f"{collection.name} v{collection.version}"


def _lines(
    args: argparse.Namespace,
    ended: list[Collection],
    files: list[_File],
    before: dict[str, _Holding],
    after: dict[str, _Holding],
) -> list[str]:
    would = "would be " if args.dry_run else ""
    lines = []
    for collection in ended:
        label = _label(collection)
        lines.append(f"{label}: {would}ended as of {collection.expires}; {at_expiry(collection)}")
        if label in before:
            had, has = before[label], after[label]
            lines.append(
                f"  {would}deleted: {had.counted - has.counted:,} counted reports in "
                f"{had.cells - has.cells:,} cells, {had.kept - has.kept:,} single reports"
            )
            lines.append(f"  kept: {has.counted:,} counted reports in {has.cells:,} cells")
    lines += [f"  {would}changed: {file.path}" for file in files]
    if not files:
        lines.append(f"  {args.collections} has no file of it")
    return lines


def _document(
    args: argparse.Namespace,
    ended: list[Collection],
    files: list[_File],
    before: dict[str, _Holding],
    after: dict[str, _Holding],
) -> dict[str, Any]:
    return {
        "collection": args.name,
        "dry_run": args.dry_run,
        "versions": [
            {
                "version": item.version,
                "expires": str(item.expires),
                "on_expiry": item.on_expiry,
                "before": before[_label(item)]._asdict(),
                "after": after[_label(item)]._asdict(),
            }
            for item in ended
        ],
        "files": [str(file.path) for file in files],
    }


def _remind(args: argparse.Namespace) -> None:
    """Say what is left to do."""
    if args.dry_run:
        note("nothing was changed; without --dry-run, it is")
        return
    from rappor.collector.folder_lock import is_locked

    if args.data is None or is_locked(path_of(args.data)):
        note(
            "a collector runs: make it read its files (SIGHUP, systemctl reload rappor). Until "
            "then it accepts reports of this collection; at that moment it deletes them"
        )
    note("backups and exports still have its data: delete those that should not")
