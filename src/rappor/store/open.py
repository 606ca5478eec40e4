"""Opens the store of a data folder, and restores one from a backup."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from rappor.errors import MissingExtraError, StoreError
from rappor.store.contract import Store
from rappor.store.link import read_link
from rappor.store.sqlite import backup as sqlite_backup
from rappor.store.sqlite.store import SqliteStore
from rappor.store.url import check_url, is_url

if TYPE_CHECKING:
    from rappor.store.postgres.store import PostgresStore

FILE_NAME = "store.sqlite"


def open_store(
    where: str | PathLike[str], *, read_only: bool = False, accept_loss: str | None = None
) -> Store:
    """Open the store of a data folder or a database; make it if it is missing, unless `read_only`.

    Args:
        where: the folder, `~` is expanded; or the URL of a PostgreSQL database. A folder may name
            the database in a file (`rappor.store.link`).
        read_only: open for reading only; the folder and its store must exist.
        accept_loss: go on if acknowledged transactions are missing; the name of the person who
            decides this, for the audit log. None: do not open such a store.

    Raises:
        StoreLost: acknowledged transactions are missing.
        StoreError: there is no store, or it is damaged or of a newer version.
    """
    url = url_of(where)
    if url is not None:
        return open_database(url, read_only=read_only)
    return SqliteStore(_file(where), read_only=read_only, accept_loss=accept_loss)


def url_of(where: str | PathLike[str]) -> str | None:
    """The URL of a store that is a database; None if it is a file in a folder."""
    text = fspath(where)
    return text if is_url(text) else read_link(_file(where).parent)


def has_store(folder: Path) -> bool:
    """Whether a data folder has a store, or names a database."""
    return (folder / FILE_NAME).exists() or read_link(folder) is not None


def check_database(url: str) -> None:
    """StoreError unless there is a store in a database, of any schema."""
    check_url(url)
    if find_spec("psycopg") is None:
        raise MissingExtraError("store", "postgres")
    from rappor.store.postgres.schema import check_exists
    from rappor.store.postgres.session import opened

    with opened(url, read_only=True) as connection:
        check_exists(connection)


def open_database(url: str, *, read_only: bool) -> PostgresStore:
    """Open the store in a PostgreSQL database; make it if it is missing, unless `read_only`."""
    check_url(url)
    if find_spec("psycopg") is None:
        raise MissingExtraError("store", "postgres")
    from rappor.store.postgres.store import PostgresStore

    return PostgresStore(url, read_only=read_only)


def restore_store(backup: str | PathLike[str], where: str | PathLike[str]) -> None:
    """Verify a backup and put it into a data folder that has no store, or an empty database.

    Raises:
        StoreError: there is a store, or the backup is damaged; nothing is changed then.
    """
    source = Path(backup).expanduser()
    url = url_of(where)
    if url is not None:
        from rappor.store.sqlite.contents import contents_of

        with (
            closing(open_database(url, read_only=False)) as store,
            contents_of(source) as saved,
        ):
            store.load(saved)
    else:
        sqlite_backup.restore(source, _file(where))


def _file(where: str | PathLike[str]) -> Path:
    text = fspath(where)
    try:
        return Path(text).expanduser() / FILE_NAME
    except RuntimeError:
        raise StoreError(f"{text}: no such home directory") from None
