"""Reads the contents of a whole SQLite store, and writes those of another store to a backup."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rappor.errors import StoreError
from rappor.store.cell_key import CellKey
from rappor.store.contents import StoreContents
from rappor.store.contract import Fold
from rappor.store.sqlite import (
    audit,
    backup,
    cell_rows,
    count_rows,
    definitions,
    imported_files,
    report_chunks,
    token_rows,
)
from rappor.store.sqlite.connection import Connection, connect
from rappor.store.sqlite.row_cache import RowCache
from rappor.store.sqlite.session import Session

_NAME = "store.sqlite"


@contextmanager
def contents_of(file: Path) -> Iterator[StoreContents]:
    """The verified contents of a backup of a store; an older schema is upgraded in a copy.

    Raises:
        StoreError: the backup is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="rappor-restore-") as folder:
        copy = Path(folder) / _NAME
        backup.restore(file, copy)
        with closing(Session(copy, connect, False)) as session, session.reading() as connection:
            yield StoreContents(
                definitions=definitions.read(connection),
                audit=audit.read(connection),
                imports=imported_files.read(connection),
                folds=_folds(connection),
                reports=_reports(connection),
                tokens=token_rows.read(connection),
            )


def _folds(connection: Connection) -> Iterator[Fold]:
    for cell in cell_rows.read(connection):
        counts = count_rows.read(connection, cell)
        for cohort, total in enumerate(counts.totals.tolist()):
            if total:
                yield Fold(cell.key, cohort, cell.params_digest, total, counts.ones[cohort])


def _reports(connection: Connection) -> Iterator[tuple[CellKey, int, bytes]]:
    for cell in cell_rows.read(connection):
        for cohort, reports in report_chunks.read(connection, cell).items():
            yield cell.key, cohort, reports


def write_backup(given: StoreContents, target: Path) -> None:
    """Write contents to one file, complete, verified and synced before it gets its name."""
    folder = Path(tempfile.mkdtemp(prefix=".rappor-backup-", dir=target.parent))
    try:
        with closing(Session(folder / _NAME, connect, False)) as session:
            with session.writing() as connection:
                _load(connection, given)
            session.settle()
        backup.backup(folder / _NAME, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load(connection: Connection, given: StoreContents) -> None:
    for definition in given.definitions:
        definitions.save(connection, definition.toml)
    for entry in given.audit:
        audit.append(connection, entry)
    for digest, detail in given.imports:
        imported_files.insert(connection, digest, detail)
    count_rows.apply(connection, given.folds, RowCache())
    for key, cohort, reports in given.reports:
        cell = cell_rows.find(connection, key)
        if cell is None:
            raise StoreError(f"{key}: reports without counts")
        report_chunks.put(connection, cell, cohort, reports)
        cell.save(connection)
    for day, tokens in given.tokens:
        token_rows.load(connection, tokens, day)
