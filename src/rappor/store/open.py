"""Which store is meant: a data folder today, a database server's address later."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from rappor.errors import StoreError
from rappor.store.sqlite import backup as sqlite_backup
from rappor.store.sqlite.store import SqliteStore
from rappor.store.types import Store

FILE_NAME = "store.sqlite"


def open_store(
    where: str | PathLike[str], *, read_only: bool = False, accept_loss: str | None = None
) -> Store:
    """The store in a data folder, made where it is missing and not `read_only`.

    Args:
        where: the folder; `~` is expanded.
        read_only: only look; the folder and its store must exist.
        accept_loss: who goes on without acknowledged transactions that are missing, for the audit
            log; None: nobody, and such a store does not open.

    Raises:
        StoreLost: acknowledged transactions are missing.
        StoreError: no store there, one of a newer version, a damaged one, or an address of a kind
            that is not known.
    """
    return SqliteStore(_file(where), read_only=read_only, accept_loss=accept_loss)


def restore_store(backup: str | PathLike[str], where: str | PathLike[str]) -> None:
    """Put a backup into a data folder that has no store, verified first.

    Raises:
        StoreError: there is a store already, or the backup is damaged; nothing is changed then.
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
