"""Reports to files that `rappor aggregate` and others read: google/rappor's CSV, and Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import numpy as np

from rappor.errors import MissingExtraError
from rappor.files import replacing

Kept = Iterable[tuple[int, bytes]]  # a cohort, and packed reports of it


def write_csv(path: str | PathLike[str], kept: Kept, k: int) -> int:
    """Write google/rappor's `client,cohort,rappor`; returns the number of reports.

    The client is the number of the line, and identifies nobody.
    """
    number = 0
    with replacing(Path(path).expanduser().resolve()) as draft, draft.open("wb") as file:
        file.write(b"client,cohort,rappor\n")
        for cohort, data in kept:
            packed = np.frombuffer(data, np.uint8).reshape(-1, (k + 7) // 8)
            bits = np.unpackbits(packed, axis=1, count=k, bitorder="little")[:, ::-1]
            text, places = (bits + ord("0")).astype(np.uint8).tobytes(), range(len(packed))
            file.writelines(
                b"%d,%d,%b\n" % (number + at, cohort, text[at * k : (at + 1) * k]) for at in places
            )
            number += len(packed)
    return number


def write_parquet(path: str | PathLike[str], kept: Kept, k: int) -> int:
    """Write the columns cohort (uint16) and packed (ceil(k/8) bytes); returns their number."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    width = (k + 7) // 8
    kinds = [("cohort", pa.uint16()), ("packed", pa.binary(width))]
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds])
    number = 0
    with (
        replacing(Path(path).expanduser().resolve()) as draft,
        pq.ParquetWriter(draft, schema, use_dictionary=["cohort"]) as file,
    ):
        for cohort, data in kept:
            size = len(data) // width
            packed = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(width), size, [None, pa.py_buffer(data)]
            )
            cohorts = pa.array(np.full(size, cohort, np.uint16))
            file.write_table(pa.Table.from_arrays([cohorts, packed], schema=schema))
            number += size
    return number
