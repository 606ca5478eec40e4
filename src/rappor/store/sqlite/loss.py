"""Finds out whether acknowledged transactions are missing from a store that nobody has open.

There are three sources: the checksums and the index of the write-ahead log (`wal`), the record of
commits (`commits`), and the mark in the store that tells whether its last writer closed in order.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rappor.errors import StoreError, StoreLost
from rappor.store.sqlite import commits, schema, wal
from rappor.store.sqlite.connection import connect, translating

_ADVICE = (
    "restore a backup, or go on without them: `rappor status --accept-loss` (docs/store.md, "
    '"When something is missing")'
)


class LossFinding(NamedTuple):
    """What was found, for the audit log.

    Attributes:
        note: that an unfinished transaction was dropped, or None.
        doubt: why it cannot be known whether something is missing, or None.
        accepted: what is missing, if the operator accepts the loss, or None.
    """

    note: str | None = None
    doubt: str | None = None
    accepted: str | None = None


def inspect(path: Path, *, accept: bool = False) -> LossFinding:
    """Inspect a store before it is opened.

    Args:
        path: its file.
        accept: go on with what is left.

    Raises:
        StoreLost: acknowledged transactions are missing; nothing is changed then.
    """
    try:
        finding = _inspect(path)
    except StoreLost as error:
        if not accept:
            raise StoreLost(f"{error}; {_ADVICE}") from error.__cause__
        finding = LossFinding(accepted=str(error))
    if accept:
        Path(f"{path}{commits.ENDING}").unlink(missing_ok=True)  # it starts again from here
        return finding._replace(accepted=finding.accepted or finding.doubt, doubt=None)
    return finding


def _inspect(path: Path) -> LossFinding:
    log = wal.inspect(path)
    recorded = commits.recorded(path)
    if recorded is None and log.lost is not None:
        raise StoreLost(log.lost)
    found, name = _commits(path)
    if found is None and not _size(path) and _size(Path(f"{path}-wal")):
        raise StoreLost(
            f"{path}: it is empty, though its log is not"
        )  # SQLite would delete the log
    number = 0 if found is None else found.number
    if name is not None and commits.named(path) not in (None, name):
        raise StoreLost(
            f"{path}: the record of commits next to it ({path.name}{commits.ENDING}) is of another "
            "store: files of two stores were exchanged"
        )
    if recorded is not None and number < recorded:
        raise StoreLost(
            f"{path}: transactions that were acknowledged are missing: {recorded} were committed, "
            f"{number} are there"
        )
    doubt = None
    if recorded is None and found is not None and found.unfinished:
        doubt = (
            f"possible loss: its last writer did not end in order, and there is no record of its "
            f"commits ({path.name}{commits.ENDING}): whether transactions after commit {number} "
            "are missing cannot be known"
        )
    return LossFinding(log.note, doubt)


def _commits(path: Path) -> tuple[commits.CommitRow | None, bytes | None]:
    """The number of commits in the file and its log, and whose they are.

    None in a store that does not count them, or has no name yet.

    SQLite opens the file for reading only, which leaves the log as it is.
    """
    if not _size(path):
        return None, None
    beside = [Path(f"{path}{end}") for end in ("-wal", "-shm")]
    missing = [file for file in beside if not file.exists()]
    try:
        with translating(path), closing(connect(path, True, mode="ro")) as connection:
            if schema.version_of(connection) < schema.COUNTS_COMMITS:
                return None, None
            return commits.read(connection), commits.name_of(connection)
    finally:
        for log in missing:  # SQLite may have made them, empty
            log.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def check_nothing_left(path: Path) -> None:
    """StoreError if there is no store, but files of one: a new store must not replace it."""
    log = Path(f"{path}-wal")
    left = f"{path.name}{commits.ENDING}" if commits.recorded(path) else ""
    if _size(log):
        left = log.name
    if left:
        raise StoreError(
            f"{path}: there is no store, but {left} exists: the store was deleted or moved; "
            f"put it back, restore a backup, or move {path.name}* away to start a new one"
        )
