"""Lays out rows so that no deleted bytes stay in the file (sqlite.org/fileformat2.html, 1.6).

When SQLite moves rows between pages, copies of them stay in the unused part of a page.
`secure_delete` overwrites a deleted row, but not such copies. Bytes on overflow pages are never
copied: those pages belong to the row and are overwritten when it is deleted.
"""

from __future__ import annotations

from rappor.store.sqlite.connection import Connection

_USABLE = 4096  # bytes of a page, SQLite's default
_LOCAL = (_USABLE - 12) * 32 // 255 - 23  # the least bytes of a row on its own page
_OVERFLOW = _USABLE - 4  # bytes of a row on one overflow page
_SLACK = 16  # rows whose lengths differ by up to this have the same layout
_OTHERS = 34  # bytes of a row of `reports` without its blob, within 4

HIDDEN = 512  # zero bytes at the start of a blob; these may be copied


def padded(data: bytes) -> bytes:
    """A blob with all of `data` on overflow pages, if it is the largest part of its row.

    Of a row of P bytes, SQLite keeps M + (P - M) mod 4092 bytes on the row's own page, where M is
    489. If the blob's length makes this a little more than M, that page has only zeros of the blob.

    >>> len(padded(b"")), len(padded(bytes(4051))), len(padded(bytes(4052)))
    (4563, 4563, 8655)
    """
    local = _LOCAL + _SLACK - _OTHERS - HIDDEN  # negative: bytes of `data` on the row's own page
    pages = max(1, -(-(len(data) - local) // _OVERFLOW))
    return (bytes(HIDDEN) + data).ljust(HIDDEN + local + pages * _OVERFLOW, b"\0")


def rewrite(connection: Connection, table: str) -> None:
    """Write the rows of a table again, onto pages that were overwritten completely."""
    for statement in (
        f"CREATE TEMP TABLE left_over AS SELECT * FROM {table}",  # noqa: S608 - names of ours
        f"DELETE FROM {table}",  # noqa: S608 - our own names
        f"INSERT INTO {table} SELECT * FROM left_over ORDER BY id",  # noqa: S608 - our own names
        "DROP TABLE left_over",
    ):
        connection.execute(statement)
