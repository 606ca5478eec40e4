"""The rows of cells: each writer has its own row for each cell that it has added to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rappor.errors import StoreError
from rappor.store.cell_key import COHORT_BITS, CellKey, cell_id, key_bytes
from rappor.store.checksums import NONE, checksum, typed, xor
from rappor.store.contract import CellCache, CellSummary
from rappor.store.postgres.connection import Connection

COLUMNS = (
    "id, writer, collection, version, period, dimensions, params_digest, k, m, reports, cohorts, "
    "parity, checksum"
)
_TYPES = "iisisssiiiibb"
_KEPT = (
    f"SELECT c.id, sum(length(r.data) / ((c.k + 7) / 8))::bigint FROM rappor.reports r "  # noqa: S608 - a number of ours
    "JOIN (SELECT DISTINCT id, k FROM rappor.cells) c "
    f"ON c.id = r.slot >> {COHORT_BITS} GROUP BY c.id"
)


@dataclass(slots=True)
class WriterCell:
    """One row of `cells`: what one writer has added to a cell.

    Attributes:
        writer: the writer's number; 0 for all writers that are gone.
        key: the cell's key.
        params_digest: the digest of the parameters that its reports were made with.
        k: the number of bits in a report.
        m: the number of cohorts.
        reports: the number of reports that the writer has counted.
        cohorts: the number of the writer's rows in `counts` for this cell.
        parity: the XOR of their checksums.
        id: the cell's number, a hash of its key.
    """

    writer: int
    key: CellKey
    params_digest: str
    k: int
    m: int
    reports: int = 0
    cohorts: int = 0
    parity: bytes = NONE
    id: int = field(init=False)

    def __post_init__(self) -> None:
        self.id = cell_id(self.key)

    def slot(self, cohort: int) -> int:
        """The number of one of its cohorts."""
        return self.id << COHORT_BITS | cohort

    @property
    def slots(self) -> tuple[int, int]:
        """The first and the last possible number of its cohorts."""
        return self.slot(0), self.slot((1 << COHORT_BITS) - 1)

    @property
    def identity(self) -> bytes:
        """A checksum of what never changes; the seal of a writer's cells is made of it."""
        about = (self.params_digest, self.k, self.m)
        return checksum("cells", self.writer, key_bytes(self.key), *about)

    @property
    def values(self) -> tuple[str | int | bytes, ...]:
        """The fields of the row without its checksum."""
        about = (self.params_digest, self.k, self.m)
        return (self.id, self.writer, *self.key, *about, self.reports, self.cohorts, self.parity)

    @property
    def checksum(self) -> bytes:
        """The checksum of the row."""
        return checksum("cell", *self.values)


def parse_row(row: object) -> WriterCell:
    """A row, or StoreError if it was changed."""
    number, writer, *values, seal = typed(row, _TYPES, "a cell")
    key = CellKey(*values[:4])
    if checksum("cell", number, writer, *values) != seal or number != cell_id(key):
        raise StoreError(f"{str(key)[:200]}: damaged (the cell's checksum)")
    return WriterCell(writer, key, *values[4:])


def save(connection: Connection, cells: Iterable[WriterCell]) -> None:
    """Insert or update rows."""
    marks = ", ".join(["%s"] * len(COLUMNS.split(",")))
    query = (
        f"INSERT INTO rappor.cells AS c ({COLUMNS}) VALUES ({marks}) "  # noqa: S608 - our own names
        "ON CONFLICT (id, writer) DO UPDATE SET reports = excluded.reports, "
        "cohorts = excluded.cohorts, parity = excluded.parity, checksum = excluded.checksum"
    )
    rows = [(*cell.values, cell.checksum) for cell in cells]
    if len(rows) == 1:
        connection.execute(query, rows[0])
    elif rows:
        with connection.cursor() as cursor:
            cursor.executemany(query, rows)


def reseal(connection: Connection, writer: int, change: int, identities: Iterable[bytes]) -> None:
    """Add cells to the seal of a writer, or remove them from it."""
    parity = NONE
    for identity in identities:
        parity = xor(parity, identity)
    row = connection.execute(
        "SELECT cells, parity FROM rappor.writers WHERE writer = %s", (writer,), binary=True
    ).fetchone()
    cells, before = typed(row, "ib", "a writer")
    connection.execute(
        "UPDATE rappor.writers SET cells = %s, parity = %s WHERE writer = %s",
        (cells + change, xor(before, parity), writer),
    )


def of_writer(connection: Connection, writer: int, keys: Iterable[CellKey]) -> list[WriterCell]:
    """A writer's rows of some cells."""
    query = f"SELECT {COLUMNS} FROM rappor.cells WHERE id = ANY(%s::bigint[]) AND writer = %s"  # noqa: S608 - our own names
    ids = [cell_id(key) for key in keys]
    cells = [parse_row(row) for row in connection.execute(query, (ids, writer), binary=True)]
    wanted = {cell_id(key): key for key in keys}
    for cell in cells:
        if cell.key != wanted[cell.id]:
            raise StoreError(f"{wanted[cell.id]}: its number is taken by {cell.key}")
    return cells


def of_cells(connection: Connection, ids: Iterable[int] | None = None) -> list[WriterCell]:
    """The rows of all writers, of all cells or of some, sorted by cell and writer."""
    query = f"SELECT {COLUMNS} FROM rappor.cells"  # noqa: S608 - our own names
    if ids is None:
        rows = connection.execute(query, binary=True).fetchall()
        cells = [parse_row(row) for row in rows]
        check_seals(connection, cells)
    else:
        query += " WHERE id = ANY(%s::bigint[])"
        rows = connection.execute(query, (list(ids),), binary=True).fetchall()
        cells = [parse_row(row) for row in rows]
    return sorted(cells, key=lambda cell: (cell.key, cell.writer))


def released(connection: Connection) -> list[WriterCell]:
    """The rows of all released snapshots."""
    query = f"SELECT {COLUMNS} FROM rappor.released_cells"  # noqa: S608 - our own names
    return [parse_row(row) for row in connection.execute(query, binary=True)]


def check_seals(connection: Connection, cells: Iterable[WriterCell]) -> None:
    """StoreError unless these are all rows of all writers."""
    _check_seals(connection, ((cell.writer, cell.identity) for cell in cells))


def _check_seals(connection: Connection, found: Iterable[tuple[int, bytes]]) -> None:
    seals: dict[int, tuple[int, bytes]] = {}
    for writer, identity in found:
        size, parity = seals.get(writer, (0, NONE))
        seals[writer] = size + 1, xor(parity, identity)
    query = "SELECT writer, cells, parity FROM rappor.writers"
    for row in connection.execute(query, binary=True):
        writer, size, parity = typed(row, "iib", "a writer")
        if seals.pop(writer, (0, NONE)) != (size, parity):
            raise StoreError("cells: damaged (one is missing, or was changed)")
    if seals:
        raise StoreError("cells: damaged (a writer is missing)")


def kept(connection: Connection) -> dict[int, int]:
    """The number of kept reports, by cell."""
    return {int(row[0]): int(row[1]) for row in connection.execute(_KEPT, binary=True)}


def summaries(connection: Connection, cache: CellCache) -> list[CellSummary]:
    """Summaries of all cells. Rows that are in the cache, byte by byte, are not checked again."""
    checked: dict[object, tuple[CellSummary, bytes]] = {}
    found: dict[int, CellSummary] = {}
    identities: list[tuple[int, bytes]] = []
    keeps = kept(connection)
    for row in connection.execute(f"SELECT {COLUMNS} FROM rappor.cells", binary=True):  # noqa: S608 - our own names
        known = cache.rows.get(row)
        if known is None:
            cell = parse_row(row)
            about = (cell.key, cell.params_digest, cell.k, cell.m, cell.reports, 0)
            known = CellSummary(*about), cell.identity
        checked[row] = known
        identities.append((row[1], known[1]))
        summary, number = known[0], row[0]
        if number in found:
            summary = summary._replace(reports=summary.reports + found[number].reports)
        found[number] = summary._replace(kept=keeps.get(number, 0))
    _check_seals(connection, identities)
    cache.rows = checked
    return sorted(found.values())


def matching(
    connection: Connection,
    collection: str,
    version: int | None,
    periods: Iterable[str] | None,
    dimensions: str | None,
) -> list[list[WriterCell]]:
    """The rows of all writers for the cells that match, by cell, sorted by key."""
    wanted = None if periods is None else set(periods)
    cells: dict[CellKey, list[WriterCell]] = {}
    for cell in of_cells(connection):
        key = cell.key
        if (
            key.collection == collection
            and (version is None or key.version == version)
            and (wanted is None or key.period in wanted)
            and (dimensions is None or key.dimensions == dimensions)
        ):
            cells.setdefault(key, []).append(cell)
    return list(cells.values())
