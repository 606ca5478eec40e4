"""Opens the store of a data folder, and restores one from a backup."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from rappor.errors import StoreError
from rappor.store.contract import Store
from rappor.store.sqlite import backup as sqlite_backup
from rappor.store.sqlite.store import SqliteStore

FILE_NAME = "store.sqlite"


def open_store(
    where: str | PathLike[str], *, read_only: bool = False, accept_loss: str | None = None
) -> Store:
    """Open the store of a data folder; make it if it is missing, unless `read_only`.

    Args:
        where: the folder; `~` is expanded.
        read_only: open for reading only; the folder and its store must exist.
        accept_loss: go on if acknowledged transactions are missing; the name of the person who
            decides this, for the audit log. None: do not open such a store.

    Raises:
        StoreLost: acknowledged transactions are missing.
        StoreError: there is no store, it is damaged or of a newer version, or `where` is a URL.
    """
    return SqliteStore(_file(where), read_only=read_only, accept_loss=accept_loss)


def restore_store(backup: str | PathLike[str], where: str | PathLike[str]) -> None:
    """Verify a backup and put it into a data folder that has no store.

    Raises:
        StoreError: there is a store, or the backup is damaged; nothing is changed then.
    """
    sqlite_backup.restore(Path(backup).expanduser(), _file(where))


def _file(where: str | PathLike[str]) -> Path:
    text = fspath(where)
    if "://" in text:
        raise StoreError(f"a store is a folder; {text.partition('://')[0]}:// is not supported")
    try:
        return Path(text).expanduser() / FILE_NAME
    except RuntimeError:
        raise StoreError(f"{text}: no such home directory") from None
