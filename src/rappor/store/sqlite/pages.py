"""Where SQLite puts bytes, so that none stay behind (sqlite.org/fileformat2.html, section 1.6).

When SQLite shares rows out among pages, copies of them stay in the unused part of a page;
`secure_delete` overwrites a row where it is deleted, and does not know of copies. What a row has on
overflow pages is never copied: those belong to the row, and are overwritten when it goes.
"""

from __future__ import annotations

from rappor.store.sqlite.connection import Connection

_USABLE = 4096  # bytes of a page: SQLite's default, which our files have
_LOCAL = (_USABLE - 12) * 32 // 255 - 23  # of a row's bytes that stay on its own page, at least
_OVERFLOW = _USABLE - 4  # of a row's bytes on one overflow page
_SLACK = 16  # rows of other lengths by so much have the same layout
_OTHERS = 34  # bytes of a row of `reports` besides its blob, give or take 4

HIDDEN = 512  # bytes at the start of a blob that may be copied: they hold nothing


def padded(data: bytes) -> bytes:
    """A blob that has all of `data` on overflow pages, if it is the largest part of its row.

    SQLite keeps M + (P - M) mod 4092 bytes of a row of P bytes on the row's own page, M being 489:
    a length that makes this a little more than M leaves that page with zeros.

    >>> len(padded(b"")), len(padded(bytes(4051))), len(padded(bytes(4052)))
    (4563, 4563, 8655)
    """
    most = _LOCAL + _SLACK - _OTHERS - HIDDEN  # of data on no overflow page at all: negative
    pages = max(1, -(-(len(data) - most) // _OVERFLOW))
    return (bytes(HIDDEN) + data).ljust(HIDDEN + most + pages * _OVERFLOW, b"\0")


def rewrite(connection: Connection, table: str) -> None:
    """Write what is left of a table onto pages that were overwritten as a whole."""
    for statement in (
        f"CREATE TEMP TABLE left_over AS SELECT * FROM {table}",  # noqa: S608 - names of ours
        f"DELETE FROM {table}",  # noqa: S608 - our own names
        f"INSERT INTO {table} SELECT * FROM left_over ORDER BY id",  # noqa: S608 - our own names
        "DROP TABLE left_over",
    ):
        connection.execute(statement)
