"""The files of a simulated collection: its reports, its candidates and its truth.

Our format: Parquet with a cohort and a packed report in each row, no client. google/rappor's:
reports.csv with `client,cohort,rappor`, or `client,cohort,bloom,prr,irr` as its own simulation
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np

from rappor import csv_cells
from rappor.errors import MissingExtraError
from rappor.files import replacing
from rappor.simulate.full_reports import Reports
from rappor.typing import ByteArray


class SimulatedReports(Protocol):
    """A file that reports are written to, part by part."""

    def write(self, part: Reports) -> None:
        """Append these reports."""

    def close(self) -> None:
        """Finish the file."""


@contextmanager
def report_file(
    path: str | PathLike[str], k: int, *, google: bool = False, steps: bool = False
) -> Iterator[SimulatedReports]:
    """Open a file of reports; it replaces the file at `path` when all of it is written.

    Args:
        path: the file to write.
        k: bits in a report.
        google: write google/rappor's reports.csv, not Parquet.
        steps: in google/rappor's format, with B and B'.
    """
    with replacing(Path(path).expanduser().resolve()) as draft:
        file: SimulatedReports = (
            _CsvReports(draft, k, steps) if google else _ParquetReports(draft, k)
        )
        try:
            yield file
        finally:
            file.close()


class _ParquetReports:
    """The columns cohort (uint16) and packed (binary of ceil(k/8) bytes)."""

    def __init__(self, path: Path, k: int) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError("simulate", "analysis") from None
        self._arrow: Any = pa
        self._width = (k + 7) // 8
        fields = [("cohort", pa.uint16()), ("packed", pa.binary(self._width))]
        schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])
        self._file: Any = pq.ParquetWriter(
            path, schema, use_dictionary=["cohort"], compression="none"
        )

    def write(self, part: Reports) -> None:
        """Append these reports."""
        pa = self._arrow
        data = pa.py_buffer(np.ascontiguousarray(part.packed))
        kind = pa.binary(self._width)
        packed = pa.FixedSizeBinaryArray.from_buffers(kind, len(part), [None, data])
        schema = self._file.schema
        self._file.write_table(
            pa.Table.from_arrays([pa.array(part.cohorts), packed], schema=schema)
        )

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class _CsvReports:
    """google/rappor's reports.csv; with B and B' if the reports kept them."""

    def __init__(self, path: Path, k: int, steps: bool) -> None:
        self._k, self._steps = k, steps
        self._file = path.open("wb")
        columns = "client,cohort,bloom,prr,irr" if steps else "client,cohort,rappor"
        self._file.write(columns.encode() + b"\n")

    def write(self, part: Reports) -> None:
        """Append these reports."""
        columns = [part.bloom, part.prr, part.packed] if self._steps else [part.packed]
        rows = np.concatenate(
            [self._text(column) for column in columns if column is not None], axis=1
        )
        data, width = rows.tobytes(), rows.shape[1]
        starts = zip(part.clients.tolist(), part.cohorts.tolist(), strict=True)
        self._file.write(
            b"".join(
                b"c%d,%d%b\n" % (client, cohort, data[number * width : (number + 1) * width])
                for number, (client, cohort) in enumerate(starts)
            )
        )

    def _text(self, packed: ByteArray) -> ByteArray:
        """A comma and k characters for each row, bit k-1 first."""
        bits = np.unpackbits(packed, axis=1, count=self._k, bitorder="little")
        text = np.full((len(bits), self._k + 1), ord(","), np.uint8)
        np.add(bits[:, ::-1], ord("0"), out=text[:, 1:])
        return text

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def write_truth(path: str | PathLike[str], truth: Mapping[str, int]) -> None:
    """The columns string, count, proportion: how many reports really hold each string."""
    reports = max(1, sum(truth.values()))
    with _new_text(path) as file:
        file.write("string,count,proportion\n")
        file.writelines(
            csv_cells.line((name, held, held / reports)) for name, held in truth.items()
        )


def write_candidates(path: str | PathLike[str], candidates: Sequence[str]) -> None:
    """One candidate a line; CSV with the header `string` if the name ends in .csv."""
    with _new_text(path) as file:
        if str(path).lower().endswith(".csv"):
            file.write("string\n")
            file.writelines(csv_cells.line((name,)) for name in candidates)
        else:
            file.writelines(f"{name}\n" for name in candidates)


@contextmanager
def _new_text(path: str | PathLike[str]) -> Iterator[TextIO]:
    """A text file that replaces the one at `path` when all of it is written."""
    with (
        replacing(Path(path).expanduser().resolve()) as draft,
        draft.open("w", encoding="utf-8", newline="") as file,
    ):
        yield file


def fits_lines(candidates: Sequence[str]) -> bool:
    r"""Whether a text file can hold all candidates, one a line.

    >>> fits_lines(["a.org", "two\nlines"])
    False
    """
    return all(
        name and not name.isspace() and "\n" not in name and not name.endswith("\r")
        for name in candidates
    ) and not (candidates and candidates[0].startswith("\ufeff"))
