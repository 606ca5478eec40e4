r"""Files cut into pieces that any engine can count: Spark, Dask, Ray, Beam, or a loop.

`cut` describes the pieces of files, and `count_piece` counts one, with the readers of the local
engine. Both are pure functions; a piece is a few words, so that an engine ships no reports.

>>> import tempfile
>>> from rappor.params import Params
>>> params = Params(k=4, h=1, m=2, f=0.5, p=0.5, q=0.75)
>>> with tempfile.TemporaryDirectory() as folder:
...     file = Path(folder, "reports.csv")
...     _ = file.write_text("client,cohort,rappor\n1,0,0101\n2,1,1000\n")
...     parts = [count_piece(piece, params) for piece in cut([file])]
>>> sum(part.totals for part in parts).tolist()
[1, 1]
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from rappor.aggregate import read_csv, read_jsonl, read_parquet
from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import MalformedLines, ReadJob
from rappor.aggregate.lines import CHUNK, LineFile
from rappor.aggregate.read_csv import CsvColumns
from rappor.aggregate.report_files import (
    Aggregated,
    CountedPart,
    MalformedTally,
    count_job,
)
from rappor.errors import DecodeError, MissingExtraError
from rappor.params import Params

PIECE_BYTES = 32 * 2**20
_BOM = b"\xef\xbb\xbf"
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file.

    Attributes:
        number: the place of its file among all files, from 0.
        file: the file, as it was named: a path or a URL.
        format: csv, jsonl or parquet; with .gz, the file is one piece.
        start: the first byte whose line belongs to the piece; in Parquet the first row group.
        end: the first byte after it, or the first row group after it.
        columns: of CSV: which columns hold the cohort and the bits.
        begins: whether nothing of the file comes before it, apart from a header.
    """

    number: int
    file: str
    format: str
    start: int
    end: int
    columns: CsvColumns | None = None
    begins: bool = False


def cut(names: Iterable[str | os.PathLike[str]], size: int = PIECE_BYTES) -> list[Piece]:
    """The pieces of files, in order.

    Args:
        names: .csv, .jsonl, .ndjson (all three also with .gz) or .parquet files: paths or URLs that
            every process which counts a piece can open.
        size: the number of bytes in a piece, about.

    Raises:
        DecodeError: a file is empty, damaged or of an unknown format.
        OSError: a file cannot be opened.
    """
    found: list[Piece] = []
    for number, given in enumerate(names):
        name = os.fspath(given)
        pieces = list(_cut_file(Piece(number, name, format_of(name), 0, 0), size))
        found += [replace(pieces[0], begins=True), *pieces[1:]]
    return found


def format_of(name: str) -> str:
    """The format that the end of a name says, or DecodeError."""
    bare = name.partition("?")[0].lower()
    packed = ".gz" if bare.endswith(".gz") else ""
    for ending, form in _ENDINGS.items():
        if bare.removesuffix(".gz").endswith(ending) and not (packed and form == "parquet"):
            return form + packed
    known = ", ".join(_ENDINGS)
    raise DecodeError(f"{name}: expected a name that ends in {known} (text also with .gz)")


def _cut_file(whole: Piece, size: int) -> Iterator[Piece]:
    with opened(whole.file) as file:
        if whole.format.endswith(".gz"):
            yield replace(whole, end=1)
            return
        if whole.format == "parquet":
            groups = _parquet(file, whole.file)
            sizes = [
                groups.metadata.row_group(at).total_byte_size for at in range(groups.num_row_groups)
            ]
            yield from _cut_groups(whole, sizes, size)
            return
        first, columns = 0, None
        if whole.format == "csv":
            lines = LineFile(Path(whole.file), file, packed=False)
            columns = read_csv.columns_of(lines.header(), Path(whole.file))
            first = file.tell()
        end = file.seek(0, os.SEEK_END)
    if not end:
        raise DecodeError(f"{whole.file}: the file is empty; name a file of reports")
    for start in range(first, max(end, first + 1), size):
        yield replace(whole, start=start, end=min(start + size, end), columns=columns)


def _cut_groups(whole: Piece, sizes: Sequence[int], size: int) -> Iterator[Piece]:
    start = held = 0
    for at, more in enumerate(sizes):
        held += more
        if held >= size:
            yield replace(whole, start=start, end=at + 1)
            start, held = at + 1, 0
    if start < len(sizes) or not sizes:
        yield replace(whole, start=start, end=len(sizes))


def _parquet(file: IO[bytes], name: str) -> Any:
    """An open Parquet file of reports, or DecodeError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    try:
        found = pq.ParquetFile(file)
    except (pa.ArrowException, OSError):
        raise DecodeError(
            f"{name}: damaged, or not a Parquet file; copy it again, or name another"
        ) from None
    read_parquet.reports_column(found.schema_arrow, pa, Path(name))
    return found


def count_piece(piece: Piece, params: Params) -> CountedPart:
    """Count the reports of a piece; raises as `cut`."""
    with opened(piece.file) as file:
        parts = [count_job(job, params) for job in _jobs(piece, file, params)]
    total = CountedPart(
        np.zeros(params.m, np.int64), np.zeros((params.m, params.k), np.int64), 0, MalformedLines()
    )
    for part in parts:
        total = _joined(total, part)
    return total


def _joined(one: CountedPart, other: CountedPart) -> CountedPart:
    """Two neighbouring pieces as one: the lines of the second go on after those of the first."""
    wrong = MalformedLines(one.wrong.count, list(one.wrong.first), one.wrong.reasons.copy())
    before = len(wrong.first)
    for line, reason in other.wrong.first:
        if len(wrong.first) < max(before, 20):
            wrong.first.append((one.lines + line, reason))
    wrong.count += other.wrong.count
    wrong.reasons.update(other.wrong.reasons)
    return CountedPart(
        one.totals + other.totals, one.ones + other.ones, one.lines + other.lines, wrong
    )


def _jobs(piece: Piece, file: IO[bytes], params: Params) -> Iterator[ReadJob]:
    path = Path(piece.file)
    if piece.format == "parquet":
        yield from _parquet_jobs(piece, file, params)
    elif piece.format.endswith(".gz"):
        read = read_csv.jobs_of if piece.format == "csv.gz" else read_jsonl.jobs_of
        yield from read(LineFile(path, file, packed=True), path, params)
    else:
        data = _lines(piece, file)
        if piece.columns is not None:
            if piece.begins:
                yield ReadJob(0, partial(read_csv.header_part, params))
            parse: Any = partial(read_csv.parse_piece, data, piece.columns, params)
        else:
            data = data.removeprefix(_BOM) if piece.begins else data
            parse = partial(read_jsonl.parse_piece, data, params)
        if data:
            yield ReadJob(len(data), parse)


def _parquet_jobs(piece: Piece, file: IO[bytes], params: Params) -> Iterator[ReadJob]:
    import pyarrow as pa

    groups = _parquet(file, piece.file)
    name = read_parquet.reports_column(groups.schema_arrow, pa, Path(piece.file))
    for at in range(piece.start, piece.end):
        try:
            table = groups.read_row_group(at, columns=["cohort", name], use_threads=False)
        except (pa.ArrowException, OSError):
            raise DecodeError(
                f"{piece.file}: damaged, or not a Parquet file; copy it again, or name another"
            ) from None
        for batch in table.to_batches():
            yield ReadJob(
                batch.nbytes,
                partial(read_parquet.parse_batch, batch["cohort"], batch[name], params),
            )


def _lines(piece: Piece, file: IO[bytes]) -> bytes:
    """The lines that begin in the piece, whole."""
    file.seek(piece.start)
    if not piece.begins:
        file.seek(piece.start - 1)
        _rest(file, piece.file)  # the end of a line that begins before it
    start = file.tell()
    if start >= piece.end:
        return b""
    data = file.read(piece.end - start)
    return data if data.endswith(b"\n") else data + _rest(file, piece.file)


def _rest(file: IO[bytes], name: str) -> bytes:
    """The rest of a line, with its newline."""
    line = file.readline(CHUNK)
    if len(line) >= CHUNK:
        raise DecodeError(f"{name}: a line of more than {CHUNK // 2**20} MB; are these reports?")
    return line


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file to read from: a path, or a URL of one of pyarrow's file systems."""
    if "://" not in name:
        with Path(name).expanduser().open("rb") as file:
            yield file
        return
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    try:
        system, path = fs.FileSystem.from_uri(name)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise DecodeError(
            f"{name}: this URL cannot be opened ({reason}); check the address"
        ) from None
    with system.open_input_file(path) as raw, io.BufferedReader(raw) as file:
        yield file


def combine(
    pieces: Sequence[Piece],
    parts: Iterable[CountedPart],
    params: Params,
    *,
    strict: bool = False,
    **about: Any,
) -> Aggregated:
    """The counts of all pieces together, and their malformed lines with real line numbers.

    Args:
        pieces: what `cut` gave.
        parts: what `count_piece` gave for each, in the same order; sums of counts may be in any.
        params: the parameters.
        strict: raise DecodeError at the first malformed line.
        **about: kind, dialect, collection, version and reports_per_client of the counts.
    """
    counts = Counts.zero(params, **about)
    totals, ones = counts.totals.copy(), counts.ones.copy()
    tally = MalformedTally(strict)
    for piece, part in zip(pieces, parts, strict=True):
        totals += part.totals
        ones += part.ones
        tally.add(piece.number, piece.file, part)
    counts = Counts(params, totals, ones, **about)
    return Aggregated(
        counts, counts.reports, tally.count, tuple(tally.examples), dict(tally.reasons)
    )
