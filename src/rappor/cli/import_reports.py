"""`rappor import`: count the reports of a file into a store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, need_analysis
from rappor.cli.output import note, say, say_json
from rappor.cli.paths import path_of
from rappor.cli.store_options import (
    add_data,
    add_version,
    definition,
    definitions_in,
    open_data,
    today,
    verb,
    where,
)
from rappor.collection import Collection, check_period, period_of
from rappor.collection.expiry import at_expiry
from rappor.errors import DecodeError, ParamsError
from rappor.host import actor

if TYPE_CHECKING:
    from rappor.store import Fold

_EXAMPLES_SHOWN = 5
_MAX_STAGED = 256 * 2**20  # bytes of reports to read into memory before the store is locked


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "import",
        "add a file of reports to the store",
        "Add the reports of a file (google/rappor's reports.csv, JSON lines or Parquet) to the "
        "counts of one period. A file is counted once, however often it is imported. If anything "
        "fails, nothing of the file is counted.",
        "rappor import reports.csv --data data --collection homepage --period 2026-11-16",
    )
    parser.add_argument("reports", metavar="REPORTS", help="a .csv, .jsonl or .parquet file")
    add_data(parser)
    parser.add_argument("--collection", required=True, metavar="NAME", help="the collection")
    add_version(parser)
    parser.add_argument(
        "--collections",
        metavar="DIR",
        help="a folder of definitions, if the collection is new to the store",
    )
    parser.add_argument(
        "--period", metavar="P", help="2026-11-16 or 2026-W47 (default: the current one)"
    )
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='a dimension of all reports in the file (default: "other"); may be repeated',
    )
    parser.add_argument("--strict", action="store_true", help="refuse files with malformed lines")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.set_defaults(run=run_import)
    return parser


def run_import(args: argparse.Namespace) -> int:
    """Count the reports of a file and store the counts."""
    path = path_of(args.reports)
    need_analysis("store", "numpy")
    from rappor.aggregate.report_files import reader_of

    reader_of(path)  # raises before a new store is made for a missing or unknown file
    with closing(open_data(where(args), read_only=False, create=bool(args.collections))) as store:
        from rappor.aggregate.imported_reports import ImportedReports
        from rappor.store import CellKey

        if args.collections is not None:
            wanted = definitions_in(args.collections).get(args.collection, args.version)
            store.save_definition(wanted.to_toml(), actor=actor())
        collection = definition(store, args.collection, args.version)
        if collection.expires is not None and collection.expires <= today():
            raise ParamsError(
                f"{collection.name} v{collection.version} expired on {collection.expires}: its "
                f"reports are no longer counted; at its end {at_expiry(collection)}"
            )
        period = args.period or period_of(collection.period, today())
        check_period(collection.period, period)
        cell = CellKey.of(
            collection.name, collection.version, period, _dimensions(args.dimension, collection)
        )
        file = ImportedReports(path, collection, cell)
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
    for example in file.examples[:_EXAMPLES_SHOWN]:
        note(f"malformed: {example}")
    if args.json:
        say_json(document)
    elif not new:
        say(f"{path.name} was imported before: nothing was counted again.")
    else:
        wrong = f"; {file.malformed:,} malformed lines skipped" if file.malformed else ""
        say(f"{folds.reports:,} reports of {path.name} counted in {cell}{wrong}")
    return 0


def _dimensions(given: list[str], collection: Collection) -> tuple[tuple[str, str], ...]:
    pairs = dict(text.partition("=")[::2] for text in given)
    for name, value in pairs.items():
        allowed = collection.dimensions.get(name)
        if allowed is None:
            declared = ", ".join(collection.dimensions) or "no dimensions"
            raise UsageError(
                f"--dimension {name}: {collection.name} declares {declared}; leave it out"
            )
        if value not in (*allowed, "other"):
            raise UsageError(f"--dimension {name} must be one of {', '.join(allowed)}, other")
    return collection.cell(pairs)


def _staged(folds: Iterator[Fold]) -> Iterable[Fold]:
    """Read the folds before the store is locked, so that a running collector does not wait.

    Beyond 256 MiB of kept reports, the rest of the file is read while the store is locked.
    """
    ready, size = [], 0
    for fold in folds:
        ready.append(fold)
        size += len(fold.reports or b"")
        if size > _MAX_STAGED:
            note("a large file: the store takes no batches until it is imported; clients retry")
            return chain(ready, folds)
    return ready


class _Counted:
    """Iterate over the folds of a file and count their reports.

    The end of the iteration raises DecodeError if the file has no report, or has changed meanwhile.

    Attributes:
        digest: the digest of the file, by which the store recognises it later.
        reports: the number of reports so far.
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
            raise DecodeError(f"nothing was imported: {self._file.examples[0]}; mend the file")
        if self._file.digest() != self.digest:
            raise DecodeError(
                "nothing was imported: the file changed while it was read; import it again"
            )
