"""Writers: one for each connection that adds reports. Rows of those that are gone are merged."""

from __future__ import annotations

from rappor.errors import StoreError
from rappor.store.postgres import cell_rows, count_rows
from rappor.store.postgres.connection import Connection
from rappor.store.postgres.count_rows import WriterRows

MERGED = 0  # the writer that has the rows of all writers that are gone


def register(connection: Connection) -> int:
    """Register this connection as a writer, until it ends."""
    row = connection.execute("SELECT rappor.register_writer()").fetchone()
    if row is None:
        raise StoreError("the database gave no number to this writer")
    return int(row[0])


def unregister(connection: Connection, writer: int) -> None:
    """Say that this connection adds nothing more."""
    connection.execute("SELECT pg_advisory_unlock(%s::bigint)", (writer,))


def may_merge(connection: Connection) -> bool:
    """Whether the role may change the rows of others."""
    row = connection.execute("SELECT has_table_privilege('rappor.counts', 'DELETE')").fetchone()
    return bool(row and row[0])


def any_gone(connection: Connection) -> bool:
    """Whether a writer is gone; ends with the transaction."""
    return bool(gone(connection))


def gone(connection: Connection) -> list[int]:
    """The writers whose connections have ended; nobody can claim their numbers meanwhile."""
    writers = connection.execute("SELECT writer FROM rappor.writers WHERE writer <> 0").fetchall()
    return [
        writer
        for (writer,) in writers
        if connection.execute("SELECT pg_try_advisory_xact_lock(%s::bigint)", (writer,)).fetchone()
        == (True,)
    ]


def merge(connection: Connection) -> int:
    """Merge the rows of writers that are gone, within a transaction that holds STORE.

    Returns:
        The number of merged writers.
    """
    ended = set(gone(connection))
    if not ended:
        return 0
    merged = WriterRows(MERGED)
    cells = [cell for cell in cell_rows.of_cells(connection) if cell.writer in ended]
    merged.apply(
        connection, (fold for cell in cells for fold in count_rows.folds_of(connection, cell))
    )
    count_rows.remove(connection, cells)
    connection.execute(
        "DELETE FROM rappor.writers WHERE writer = ANY(%s::bigint[])", (list(ended),)
    )
    connection.execute("UPDATE rappor.state SET epoch = epoch + 1")
    return len(ended)
