"""Reports in Parquet: the column cohort, and one of irr, rappor, bits and packed.

The column's type decides: text is k characters, bit k-1 first; binary is ceil(k/8) packed bytes.
Other columns are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rappor.aggregate.file_parts import (
    WRONG_BITS,
    FilePart,
    MalformedLines,
    ReadJob,
    wrong_cohort,
    wrong_length,
)
from rappor.errors import DecodeError, MissingExtraError
from rappor.params import Params
from rappor.typing import BoolArray, ByteArray, IntArray

_NAMES = ("irr", "rappor", "bits", "packed")
_BYTES_AT_ONCE = 8 * 2**20


def jobs(path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    with path.open("rb") as raw:
        try:
            file = pq.ParquetFile(raw)
            name = reports_column(file.schema_arrow, pa, path)
            per_row = path.stat().st_size / max(1, file.metadata.num_rows)
            rows = max(1, _BYTES_AT_ONCE // params.k)
            for batch in file.iter_batches(rows, columns=["cohort", name], use_threads=False):
                arrays = batch["cohort"], batch[name]
                yield ReadJob(round(per_row * len(batch)), partial(parse_batch, *arrays, params))
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.strerror:
                raise
            raise DecodeError(
                f"{path}: damaged, or not a Parquet file; copy it again, or name another"
            ) from None


def reports_column(schema: Any, pa: Any, path: Path) -> str:
    """The name of the reports' column, or DecodeError if a column is missing or of a wrong type."""
    names = [name for name in _NAMES if name in schema.names]
    if len(names) != 1 or schema.names.count("cohort") != 1 or schema.names.count(names[0]) != 1:
        raise DecodeError(
            f"{path}: expected the column cohort and one of {', '.join(_NAMES)}; found "
            f"{len(schema.names)} columns without that"
        )
    if not pa.types.is_integer(_values(schema.field("cohort").type, pa)):
        raise DecodeError(f"{path}: the column cohort must hold whole numbers")
    kind = _values(schema.field(names[0]).type, pa)
    if not (_is_text(kind, pa) or _is_binary(kind, pa)):
        raise DecodeError(f"{path}: the column {names[0]} must hold text or binary")
    return names[0]


def _values(kind: Any, pa: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: Any, pa: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: Any, pa: Any) -> bool:
    types = pa.types
    variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(variable or types.is_fixed_size_binary(kind))


def parse_batch(cohort: Any, reports: Any, params: Params) -> FilePart:
    """The reports of one batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _is_text(_values(reports.type, pa), pa)
    width = params.k if text else (params.k + 7) // 8
    plain = reports.cast(_values(reports.type, pa)).cast(pa.large_binary())
    lengths = pc.binary_length(plain).fill_null(-1).to_numpy(zero_copy_only=False)
    numbers = cohort.cast(_values(cohort.type, pa))
    # Cohorts that are out of range become 0, because uint64 may hold more than int64.
    inside = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, params.m)).fill_null(False)
    cohorts: IntArray = pc.if_else(inside, numbers, None).fill_null(0).cast(pa.int64()).to_numpy()
    in_range: BoolArray = inside.to_numpy(zero_copy_only=False)

    fits: BoolArray = lengths == width
    rows = _matrix(plain.filter(pa.array(fits)), width)
    packed, clean = _pack(rows) if text else (rows, _padding_is_zero(rows, params.k))
    good = fits.copy()
    good[fits] = clean
    taken = good & in_range
    wrong = MalformedLines()
    for index in np.flatnonzero(~taken).tolist():
        wrong.add(index + 1, _reason(int(lengths[index]), in_range[index], text, params))
    return FilePart(packed[taken[fits]], cohorts[taken], len(lengths), wrong)


def _matrix(plain: Any, width: int) -> ByteArray:
    """Binary values of one length as rows, without a copy."""
    if len(plain) == 0:
        return np.empty((0, width), np.uint8)
    _, offsets, data = plain.buffers()
    first = int(np.frombuffer(offsets, np.int64)[plain.offset])
    flat: ByteArray = np.frombuffer(data, np.uint8)[first : first + len(plain) * width]
    return flat.reshape(-1, width)


def _pack(rows: ByteArray) -> tuple[ByteArray, BoolArray]:
    """Characters, bit k-1 first, as packed bytes; and which rows are only 0 and 1."""
    digits = rows ^ np.uint8(ord("0"))
    clean: BoolArray = np.all(digits <= 1, axis=1)
    return np.packbits(digits[:, ::-1], axis=1, bitorder="little"), clean


def _padding_is_zero(rows: ByteArray, k: int) -> BoolArray:
    """Which packed rows leave the unused bits of the last byte 0."""
    if k % 8 == 0:
        return np.ones(len(rows), np.bool_)
    clean: BoolArray = rows[:, -1] >> np.uint8(k % 8) == 0
    return clean


def _reason(length: int, in_range: bool, text: bool, params: Params) -> str:
    """What is wrong with a row."""
    k = params.k
    if length < 0:
        return "the report is missing"
    if text and length != k:
        return wrong_length(length, k)
    if not text and length != (k + 7) // 8:
        return f"a report of {k} bits takes {(k + 7) // 8} bytes, got {length}"
    if not in_range:
        return wrong_cohort(params.m)
    return WRONG_BITS if text else f"a report of {k} bits must leave its padding bits 0"
