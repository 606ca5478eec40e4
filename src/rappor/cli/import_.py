"""`rappor import`: a file of reports into the store, exactly once."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError
from rappor.cli.output import note, say, say_json
from rappor.cli.store_options import (
    actor,
    add_data,
    add_version,
    definition,
    open_data,
    today,
    verb,
)
from rappor.collection import Collection, Registry, check_period, period_of
from rappor.errors import DecodeError, ParamsError

if TYPE_CHECKING:
    from rappor.store import Fold

_SHOWN = 5
_STAGED = 256 * 2**20  # bytes of reports that wait in memory before the store is asked


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "import",
        "put a file of reports into the store",
        "Counts the reports of google/rappor's reports.csv, JSON lines or Parquet into one cell of "
        "the store. The same file is counted once, however often it is imported; the whole file "
        "or, if anything fails, none of it.",
        "rappor import reports.csv --data data --collection homepage --period 2026-11-16",
    )
    parser.add_argument("reports", metavar="REPORTS", help="a .csv, .jsonl or .parquet file")
    add_data(parser)
    parser.add_argument("--collection", required=True, metavar="NAME", help="what they are about")
    add_version(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="a folder of definitions, if the store does not know the collection yet",
    )
    parser.add_argument(
        "--period", metavar="P", help="2026-11-16 or 2026-W47 (default: the current one)"
    )
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='a declared dimension of all these reports (default: "other"); may be repeated',
    )
    parser.add_argument("--strict", action="store_true", help="import nothing if a line is wrong")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read, count, store, say what was done."""
    path = Path(args.reports).expanduser()
    path.stat()  # before a store is made for a file that is not there
    with closing(open_data(args.data, read_only=False, create=bool(args.collections))) as store:
        from rappor.aggregate.stored import ReportFile
        from rappor.store import CellKey

        if args.collections is not None:
            wanted = Registry.open(args.collections).get(args.collection, args.version)
            store.save_definition(wanted.to_toml(), actor=actor())
        collection = definition(store, args.collection, args.version)
        if collection.expires is not None and collection.expires <= today():
            raise ParamsError(
                f"{collection.name} v{collection.version} has expired on {collection.expires}: "
                "nothing more is counted, and retention removes what is there"
            )
        period = args.period or period_of(collection.period, today())
        check_period(collection.period, period)
        cell = CellKey.of(
            collection.name, collection.version, period, _dimensions(args.dimension, collection)
        )
        file = ReportFile(path, collection, cell)
        folds = _Counted(file, strict=args.strict)
        ready = _staged(iter(folds))
        new = store.add_file(folds.digest, ready, actor=actor(), detail=f"{path.name} to {cell}")
    document = {
        "file": str(path),
        "collection": collection.name,
        "version": collection.version,
        "period": period,
        "dimensions": dict(cell.pairs),
        "new": new,
        "reports": folds.reports if new else 0,
        "malformed": file.malformed,
    }
    for each in file.examples[:_SHOWN]:
        note(f"malformed: {each}")
    if args.json:
        say_json(document)
    elif not new:
        say(f"{path.name} has been imported before: nothing was counted again.")
    else:
        wrong = f"; {file.malformed:,} malformed lines left out" if file.malformed else ""
        say(f"{folds.reports:,} reports of {path.name} counted in {cell}{wrong}")
    return 0


def _dimensions(given: list[str], collection: Collection) -> tuple[tuple[str, str], ...]:
    pairs = dict(each.partition("=")[::2] for each in given)
    for name, value in pairs.items():
        allowed = collection.dimensions.get(name)
        if allowed is None:
            declared = ", ".join(collection.dimensions) or "no dimensions"
            raise UsageError(f"--dimension {name}: {collection.name} declares {declared}")
        if value not in (*allowed, "other"):
            raise UsageError(f"--dimension {name} must be one of {', '.join(allowed)}, other")
    return collection.cell(pairs)


def _staged(folds: Iterator[Fold]) -> Iterable[Fold]:
    """The same folds, read before the store is asked to take them: a collector need not wait.

    Of a file with more than 256 MiB of reports to keep, the rest is read while it does.
    """
    ready, size = [], 0
    for fold in folds:
        ready.append(fold)
        size += len(fold.reports or b"")
        if size > _STAGED:
            note("a large file: the store takes no batches until it is in (clients try again)")
            return chain(ready, folds)
    return ready


class _Counted:
    """Folds that are added up as they pass; at the end, an error if there is nothing in them.

    Attributes:
        digest: of the file that they come from: if it is another at the end, that is an error too,
            because the digest is what the file is known by from then on.
        reports: how many there were.
    """

    def __init__(self, file: Any, strict: bool) -> None:
        self.digest: bytes = file.digest()
        self.reports = 0
        self._file, self._strict = file, strict

    def __iter__(self) -> Iterator[Fold]:
        for fold in self._file.folds():
            self.reports += fold.total
            yield fold
        if self._file.malformed and (self._strict or not self.reports):
            self.reports = 0
            raise DecodeError(f"nothing was imported: {self._file.examples[0]}")
        if self._file.digest() != self.digest:
            raise DecodeError("nothing was imported: the file was changed while it was read")
