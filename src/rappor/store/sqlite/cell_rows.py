"""The rows of cells: key, parameters, and the seals of the counts and kept reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey, cell_id, key_bytes
from rappor.store.checksums import NONE, checksum, typed
from rappor.store.contract import CellCache, CellSummary
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import check_seal, reseal

_COLUMNS = (
    "id, collection, version, period, dimensions, params_digest, k, m, reports, cohorts, parity, "
    "kept, chunks, chunk_parity, checksum"
)
_KEY = "collection, version, period, dimensions"
_TYPES = "isisssiiiibiibb"


@dataclass(slots=True)
class CellRow:
    """One row of `cells`, within a transaction.

    Attributes:
        key: the cell's key.
        params_digest: the digest of the parameters that its reports were made with.
        k: the number of bits in a report.
        m: the number of cohorts.
        reports: the number of reports that were counted.
        cohorts: the number of its rows in `counts`.
        parity: the XOR of their checksums.
        kept: the number of reports that are kept.
        chunks: the number of its rows in `reports`.
        chunk_parity: the XOR of their checksums.
        id: the cell's number, a hash of its key.
    """

    key: CellKey
    params_digest: str
    k: int
    m: int
    reports: int = 0
    cohorts: int = 0
    parity: bytes = NONE
    kept: int = 0
    chunks: int = 0
    chunk_parity: bytes = NONE
    id: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the number once: it is needed for every cohort."""
        self.id = cell_id(self.key)

    def slot(self, cohort: int) -> int:
        """The row number of one of its cohorts."""
        return self.id << COHORT_BITS | cohort

    @property
    def slots(self) -> tuple[int, int]:
        """The first and the last possible row number of its cohorts."""
        return self.slot(0), self.slot((1 << COHORT_BITS) - 1)

    @property
    def identity(self) -> bytes:
        """A checksum of what never changes; the seal of all cells is made of it."""
        return checksum("cells", key_bytes(self.key), self.params_digest, self.k, self.m)

    @property
    def summary(self) -> CellSummary:
        """The cell as `Store.cells` returns it."""
        return CellSummary(self.key, self.params_digest, self.k, self.m, self.reports, self.kept)

    def _values(self) -> tuple[str | int | bytes, ...]:
        about = (self.params_digest, self.k, self.m)
        counted = (self.reports, self.cohorts, self.parity)
        return (self.id, *self.key, *about, *counted, self.kept, self.chunks, self.chunk_parity)

    def save(self, connection: Connection) -> None:
        """Insert or update the row."""
        values = self._values()
        marks = ", ".join("?" * (len(values) + 1))
        connection.execute(
            f"INSERT INTO cells ({_COLUMNS}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET "  # noqa: S608 - our own names
            "reports=excluded.reports, cohorts=excluded.cohorts, parity=excluded.parity, "
            "kept=excluded.kept, chunks=excluded.chunks, chunk_parity=excluded.chunk_parity, "
            "checksum=excluded.checksum",
            (*values, checksum("cell", *values)),
        )

    def create(self, connection: Connection) -> None:
        """Insert a new row."""
        self.save(connection)
        reseal(connection, "cells", 1, self.identity)

    def remove(self, connection: Connection) -> None:
        """Delete the row, after its counts and reports."""
        connection.execute("DELETE FROM cells WHERE id=?", (self.id,))
        reseal(connection, "cells", -1, self.identity)


def _cell(row: object) -> CellRow:
    number, *values, seal = typed(row, _TYPES, "a cell")
    key = CellKey(*values[:4])
    if checksum("cell", number, *values) != seal or number != cell_id(key):
        raise StoreError(f"{str(key)[:200]}: damaged (the cell's checksum)")
    return CellRow(key, *values[4:])


def find(connection: Connection, key: CellKey) -> CellRow | None:
    """A cell by its key."""
    query = f"SELECT {_COLUMNS} FROM cells WHERE id=?"  # noqa: S608 - our own names
    row = connection.execute(query, (cell_id(key),)).fetchone()
    if row is None:
        return None
    cell = _cell(row)
    if cell.key != key:
        raise StoreError(f"{key}: its number is taken by {cell.key}")
    return cell


def read(connection: Connection) -> list[CellRow]:
    """All cells, sorted by key, or StoreError if one was changed or is missing."""
    query = f"SELECT {_COLUMNS} FROM cells"  # noqa: S608 - our own names
    cells = [_cell(row) for row in connection.execute(query)]
    check_seal(connection, "cells", [cell.identity for cell in cells])
    return sorted(cells, key=lambda cell: cell.key)


def summaries(connection: Connection, cache: CellCache) -> list[CellSummary]:
    """Summaries of all cells. Rows that are in the cache, byte by byte, are not checked again.

    Each row is read and compared, so a changed one is noticed, and the seal is always checked.
    SQLite sorts in the same order as Python and lets other threads work meanwhile.
    """
    checked: dict[object, tuple[CellSummary, bytes]] = {}
    query = f"SELECT {_COLUMNS} FROM cells ORDER BY {_KEY}"  # noqa: S608 - our own names
    for row in connection.execute(query):
        known = cache.rows.get(row)
        if known is None:
            cell = _cell(row)
            known = cell.summary, cell.identity
        checked[row] = known
    check_seal(connection, "cells", [identity for _, identity in checked.values()])
    cache.rows = checked
    return [summary for summary, _ in checked.values()]


def matching(
    connection: Connection,
    collection: str,
    version: int | None,
    periods: Iterable[str] | None,
    dimensions: str | None,
) -> Iterator[CellRow]:
    """The cells that match, sorted by key."""
    wanted = None if periods is None else set(periods)
    for cell in read(connection):
        key = cell.key
        if (
            key.collection == collection
            and (version is None or key.version == version)
            and (wanted is None or key.period in wanted)
            and (dimensions is None or key.dimensions == dimensions)
        ):
            yield cell
