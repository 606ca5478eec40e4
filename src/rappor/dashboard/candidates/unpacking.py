"""How much a Parquet file holds, found out before it is unpacked: small ones can hold much."""

from __future__ import annotations

import io
from typing import Any

from rappor.errors import ParamsError

_ROWS = 2**16  # that are looked at together
_ROOM = 16  # other columns and repetitions may take so many times what the strings may


def check_size(data: bytes, most_strings: int, most_bytes: int) -> None:
    """ParamsError where a Parquet file would unpack to a list beyond the limits.

    A file that cannot be read is no matter of this function: reading it says what is wrong.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(io.BytesIO(data))
        if about.num_rows > most_strings:
            raise ParamsError(
                f"a list may have {most_strings:,} strings; this one has {about.num_rows:,}"
            )
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        _check(sum(group.total_byte_size for group in groups), _ROOM * most_bytes, most_bytes)
        names = [about.schema.column(number).path for number in range(about.num_columns)]
        file = parquet.ParquetFile(io.BytesIO(data), read_dictionary=names)
        for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types, strict=True):
            if pa.types.is_dictionary(kind):
                _check(_letters(file, name), most_bytes, most_bytes)
    except (pa.ArrowException, OSError):
        return


def _letters(file: Any, name: str) -> int:
    """Bytes of all texts of a column, counted without writing repetitions out."""
    import pyarrow.compute as pc

    size = 0
    for batch in file.iter_batches(_ROWS, columns=[name]):
        column = batch.column(0)
        lengths = pc.binary_length(column.dictionary).cast("int64")
        size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    return size


def _check(size: int, limit: int, most_bytes: int) -> None:
    if size > limit:
        raise ParamsError(
            f"a list may have {most_bytes // 10**6} MB; this one unpacks to {size / 1e6:,.1f} MB"
        )
