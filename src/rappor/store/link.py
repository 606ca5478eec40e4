"""A data folder whose store is a database has a file with the database's URL."""

from __future__ import annotations

import os
from pathlib import Path

from rappor.errors import StoreError
from rappor.files import write_text
from rappor.store.url import check_url, public_url

LINK_NAME = "store.url"
_STORE_NAME = "store.sqlite"


def write_link(folder: Path, url: str) -> None:
    """Write the URL, without a password, into a data folder.

    Raises:
        StoreError: the folder has a store of its own.
    """
    if (folder / _STORE_NAME).exists():
        raise StoreError(
            f"{folder}: has a store of its own; move it to the database with rappor backup and "
            "rappor restore, or name another folder"
        )
    if read_link(folder) != public_url(url):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(folder / LINK_NAME, public_url(url) + "\n", private=True)


def read_link(folder: Path) -> str | None:
    """The URL in a data folder, or None if its store is a file."""
    try:
        text = (folder / LINK_NAME).read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    check_url(text)
    if os.path.lexists(folder / _STORE_NAME):
        raise StoreError(f"{folder}: has both {_STORE_NAME} and {LINK_NAME}; move one of them away")
    return text
