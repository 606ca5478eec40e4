"""Snapshots of cells that pages may show, in tables of the database.

A snapshot is a copy of the rows of all writers. The database copies them itself
(`functions.RELEASE`): a role that analyses needs no right to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rappor.store import released
from rappor.store.cell_key import CellKey, cell_id
from rappor.store.contract import Store, StoredCounts
from rappor.store.postgres import cell_rows, count_rows
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection
from rappor.store.postgres.session import PostgresSession


class PostgresSnapshots:
    """Snapshots next to the cells that they are copies of.

    Args:
        session: the open database.
    """

    def __init__(self, session: PostgresSession) -> None:
        """Read nothing yet."""
        self._session = session

    def reports(self) -> dict[CellKey, int]:
        """The number of reports in each snapshot."""
        with self._session.reading() as connection:
            return _reports(connection)

    def update(
        self,
        store: Store,  # noqa: ARG002 - the database copies the rows itself
        due: Sequence[CellKey],
        gone: Iterable[CellKey],
    ) -> dict[CellKey, int]:
        """Delete snapshots, replace those that are still due, and return `reports`."""
        with self._session.releasing() as connection:
            _forget(connection, gone)
            connection.execute(
                "SELECT rappor.release(%s::bigint[], %s::integer)",
                ([cell_id(key) for key in due], released.STEP),
            )
            return _reports(connection)

    def read(self, collection: str, version: int, periods: set[str]) -> list[StoredCounts]:
        """The snapshots of some periods."""
        with self._session.reading() as connection:
            cells: dict[CellKey, list[WriterCell]] = {}
            for cell in cell_rows.released(connection):
                key = cell.key
                if key[:2] == (collection, version) and key.period in periods:
                    cells.setdefault(key, []).append(cell)
            return [count_rows.read(connection, rows, "released_counts") for rows in cells.values()]

    def forget(self, gone: Iterable[CellKey]) -> None:
        """Delete snapshots."""
        with self._session.releasing() as connection:
            _forget(connection, gone)


def _reports(connection: Connection) -> dict[CellKey, int]:
    found: dict[CellKey, int] = {}
    for cell in cell_rows.released(connection):
        found[cell.key] = found.get(cell.key, 0) + cell.reports
    return found


def _forget(connection: Connection, gone: Iterable[CellKey]) -> None:
    connection.execute(
        "SELECT rappor.forget_released(%s::bigint[])", ([cell_id(key) for key in gone],)
    )
