"""The rows of a lake's files: reports of one cell and cohort as a blob, in an order of chance.

A row has a collection, version, period, dimensions, cohort, count, and a blob of up to 4,096 packed
reports. All reports of a cell and cohort are shuffled together before they are cut into blobs, and
rows are in the order of their keys: nothing tells when a report came, or with which others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rappor.collection import Collection
from rappor.errors import DecodeError, MissingExtraError, RapporError
from rappor.store import CellKey
from rappor.typing import ByteArray

BLOB_REPORTS = 4096
KEY = b"rappor.lake"
FORMAT = 1
COLUMNS = ("collection", "version", "period", "dimensions", "cohort", "count", "reports")
_GROUP_BYTES = 32 * 2**20  # of a row group


class NotParquet(DecodeError):
    """Bytes that are no Parquet file: truncated, damaged, or something else."""


class ForeignFile(DecodeError):
    """A Parquet file that another program wrote."""


@dataclass(frozen=True, slots=True)
class LakeRow:
    """One row: reports of a cell and cohort, packed one after the other."""

    cell: CellKey
    cohort: int
    count: int
    reports: bytes = field(repr=False)


def rows_of(cell: CellKey, cohort: int, packed: bytes, k: int) -> Iterator[LakeRow]:
    """The rows of all reports of a cell and cohort, which the caller has shuffled."""
    step = BLOB_REPORTS * ((k + 7) // 8)
    for start in range(0, len(packed), step):
        blob = packed[start : start + step]
        yield LakeRow(cell, cohort, len(blob) // ((k + 7) // 8), blob)


def write_rows(rows: Iterable[LakeRow], collection: Collection) -> bytes:
    """The bytes of a Parquet file with these rows, sorted, and the collection's definition."""
    pa, pq = pyarrow()
    schema = schema_of(pa, collection)
    listed = sorted(rows, key=lambda row: (row.cell, row.cohort))
    sink = pa.BufferOutputStream()
    # Reports are noise: compression would cost time and save nothing.
    with pq.ParquetWriter(
        sink, schema, compression="none", use_dictionary=list(COLUMNS[:5]), write_statistics=False
    ) as writer:
        for group in _groups(listed):
            columns: dict[str, Any] = {
                name: [row.cell[place] for row in group] for place, name in enumerate(COLUMNS[:4])
            }
            for name in COLUMNS[4:]:
                columns[name] = [getattr(row, name) for row in group]
            writer.write_table(pa.Table.from_pydict(columns, schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def _groups(rows: list[LakeRow]) -> Iterator[list[LakeRow]]:
    group: list[LakeRow] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.reports)
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def schema_of(pa: Any, collection: Collection) -> Any:
    """The columns of a lake's file, and what its reader has to know."""
    kinds = (pa.string(), pa.int32(), pa.string(), pa.string(), pa.int32(), pa.int32(), pa.binary())
    fields = [
        pa.field(name, kind, nullable=False) for name, kind in zip(COLUMNS, kinds, strict=True)
    ]
    about = json.dumps({"format": FORMAT, "definition": collection.to_toml()})
    return pa.schema(fields, metadata={KEY: about.encode()})


def read_rows(data: bytes) -> tuple[Collection, list[LakeRow]]:
    """The definition and the rows of a file.

    Raises:
        NotParquet: it is not a Parquet file.
        ForeignFile: another program wrote it.
        DecodeError: a row contradicts its definition.
    """
    pa, pq = pyarrow()
    try:
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
    except (pa.ArrowException, OSError):
        raise NotParquet("it is not a Parquet file") from None
    collection = definition_in(table.schema.metadata)
    if tuple(table.schema.names) != COLUMNS:
        raise DecodeError(f"its columns must be {', '.join(COLUMNS)}")
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    rows = []
    for *key, cohort, count, reports in zip(*columns, strict=True):
        cell = CellKey(*key)
        if (cell.collection, cell.version) != (collection.name, collection.version):
            raise DecodeError(f"it has rows of {cell}, which its definition does not describe")
        rows.append(LakeRow(cell, cohort, count, reports))
    return collection, rows


def definition_in(metadata: dict[bytes, bytes] | None) -> Collection:
    """The definition in the metadata of a file, or DecodeError."""
    about = (metadata or {}).get(KEY)
    if about is None:
        raise ForeignFile("it is a Parquet file of another program")
    try:
        facts = json.loads(about)
        if facts["format"] != FORMAT:
            raise DecodeError("it has a format that this version does not know")
        return Collection.from_toml(facts["definition"])
    except (ValueError, KeyError, TypeError, RapporError) as error:
        raise DecodeError(f"its definition cannot be read ({error})") from None


def matrix(row: LakeRow, k: int) -> ByteArray:
    """The reports of a row, of shape (count, ceil(k/8)), or DecodeError if they are not as many."""
    width = (k + 7) // 8
    if not 0 < row.count <= BLOB_REPORTS or len(row.reports) != row.count * width:
        raise DecodeError(
            f"a row of {row.cell} must have {row.count} reports of {width} bytes, and has "
            f"{len(row.reports)} bytes"
        )
    found: ByteArray = np.frombuffer(row.reports, np.uint8).reshape(-1, width)
    return found


def pyarrow() -> tuple[Any, Any]:
    """Pyarrow and its Parquet module, or MissingExtraError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("lake", "analysis") from None
    return pyarrow, pyarrow.parquet
