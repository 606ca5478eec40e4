"""The header of an SQLite file, read without opening the database: nothing is locked or changed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rappor.errors import StoreError

_MAGIC = b"SQLite format 3\x00"


class FileHeader(NamedTuple):
    """What the first hundred bytes say: the schema's version, and whose file it is."""

    schema: int
    application_id: int


def read_header(path: Path) -> FileHeader:
    """The header of a file, as of the last time that its log was moved into it.

    Raises:
        StoreError: not an SQLite file.
    """
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise StoreError(f"{path}: damaged, or not a database")
    return FileHeader(int.from_bytes(head[60:64], "big"), int.from_bytes(head[68:72], "big"))
