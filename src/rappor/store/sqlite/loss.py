"""Whether acknowledged transactions are missing from a store that nobody has open.

Three witnesses are asked: the log's own checksums and its index (`wal`), the record of commits
(`commits`), and the store's word on whether its last writer has ended in order.
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
    """What there is to write down about a store.

    Attributes:
        note: that an unfinished transaction was dropped, or None.
        doubt: why nobody can say whether something is missing, or None.
        accepted: what is missing, where the operator goes on without it, or None.
    """

    note: str | None = None
    doubt: str | None = None
    accepted: str | None = None


def inspect(path: Path, *, accept: bool = False) -> LossFinding:
    """Look at a store before it is opened.

    Args:
        path: its file.
        accept: go on with what is there.

    Raises:
        StoreLost: transactions that were acknowledged are missing; nothing is changed then.
    """
    try:
        finding = _inspect(path)
    except StoreLost as error:
        if not accept:
            raise StoreLost(f"{error}; {_ADVICE}") from error.__cause__
        finding = LossFinding(accepted=str(error))
    if accept:
        Path(f"{path}{commits.ENDING}").unlink(missing_ok=True)  # it begins again with this
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


def _commits(path: Path) -> tuple[commits.Commits | None, bytes | None]:
    """The number of commits in the file and its log, and whose they are.

    None in a store that does not count them, or has no name yet.

    SQLite opens the file for reading, which neither folds in nor deletes the log.
    """
    if not _size(path):
        return None, None
    beside = [Path(f"{path}{end}") for end in ("-wal", "-shm")]
    missing = [each for each in beside if not each.exists()]
    try:
        with translating(path), closing(connect(path, True, mode="ro")) as connection:
            if schema.version_of(connection) < schema.COUNTS_COMMITS:
                return None, None
            return commits.read(connection), commits.name_of(connection)
    finally:
        for each in missing:  # SQLite may have made them, empty
            each.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def check_nothing_left(path: Path) -> None:
    """StoreError where a store that is not there has left files: it is not to be made anew."""
    log = Path(f"{path}-wal")
    left = f"{path.name}{commits.ENDING}" if commits.recorded(path) else ""
    if _size(log):
        left = log.name
    if left:
        raise StoreError(
            f"{path}: there is no store, though {left} is there: the store was deleted or moved; "
            f"put it back, restore a backup, or move {path.name}* away to begin anew"
        )
