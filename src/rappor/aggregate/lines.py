"""Text files of reports: pieces of whole lines, plain or gzip, and the reports in them.

Memory does not grow with a file. Machine code parses the lines that look as expected; a careful
reader in Python judges all others, or every line if numba is not installed. Both give the same
reports.
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from rappor.aggregate import _engine
from rappor.aggregate.file_parts import FilePart, MalformedLines, NotAReport, PackedReports
from rappor.errors import DecodeError
from rappor.params import Params
from rappor.typing import ByteArray, IntArray

LONGEST = 100_000  # characters in a line; a report of 4096 bits in three columns takes 12,300
_ODD_AT_ONCE = 2**14

Careful = Callable[[str, Params], tuple[int, int]]  # a line -> cohort and bits, or NotAReport
Columns = tuple[int, int, int]  # number of columns, the cohort's column, the bits' column
NO_COLUMNS: Columns = (0, 0, 0)  # JSON
CHUNK = 8 * 2**20
_HEADER = 2**16
_BOM = b"\xef\xbb\xbf"


def parse_lines(data: bytes, params: Params, careful: Careful, columns: Columns) -> FilePart:
    """The reports of some whole lines, the last one with or without its newline."""
    fast = _engine.load("lines_numba")
    if fast is None:
        return _all_carefully(data, params, careful)
    array: ByteArray = np.frombuffer(data, np.uint8)
    most = len(data) // (params.k + 2) + 2  # a report takes its bits, a cohort and a comma
    packed: ByteArray = np.empty((most, (params.k + 7) // 8), np.uint8)
    cohorts: IntArray = np.empty(most, np.int64)
    odd: IntArray = np.empty((_ODD_AT_ONCE, 3), np.int64)
    layout: IntArray = np.array(columns, np.int64)
    limits = (params.k, params.m, LONGEST)
    others, wrong = PackedReports(params), MalformedLines()
    at = lines = rows = 0
    while at < len(data):
        at, seen, parsed, odds = fast.parse(
            layout, array, at, limits, packed[rows:], cohorts[rows:], odd
        )
        for line, start, end in odd[:odds].tolist():
            _take(data[start:end], lines + line + 1, careful, others, wrong)
        lines += seen
        rows += parsed
    more_packed, more_cohorts = others.arrays()
    return FilePart(
        np.concatenate([packed[:rows], more_packed]),
        np.concatenate([cohorts[:rows], more_cohorts]),
        lines,
        wrong,
    )


def _all_carefully(data: bytes, params: Params, careful: Careful) -> FilePart:
    """Parse every line with the careful reader."""
    reports, wrong = PackedReports(params), MalformedLines()
    lines = data.removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        _take(line, number, careful, reports, wrong)
    return FilePart(*reports.arrays(), len(lines), wrong)


def _take(
    line: bytes, number: int, careful: Careful, reports: PackedReports, wrong: MalformedLines
) -> None:
    """Add one line to the reports or to the malformed lines; a blank line to neither."""
    text = line.removesuffix(b"\r").decode("latin-1")  # the parts that are read are ASCII
    if not text.strip(" \t"):
        return
    try:
        if len(line) > LONGEST:
            raise NotAReport(f"a line of more than {LONGEST:,} characters")
        cohort, bits = careful(text, reports.params)
    except NotAReport as reason:
        wrong.add(number, str(reason))
    else:
        reports.add(cohort, bits)


class LineFile:
    """A file read in pieces that end where a line ends."""

    __slots__ = ("_file", "_name", "_raw", "_seen")

    def __init__(self, path: Path, raw: IO[bytes], *, packed: bool | None = None) -> None:
        self._name, self._raw, self._seen = path, raw, 0
        packed = path.suffix.lower() == ".gz" if packed is None else packed
        # GzipFile has all that is used here, but is not declared to be an IO[bytes].
        self._file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]

    def header(self) -> bytes:
        """The first line, without its line end."""
        with self._reading():
            line = self._file.readline(_HEADER)
        if not line:
            raise DecodeError(f"{self._name}: the file is empty; name a file of reports")
        return line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The rest, as pairs of (bytes read from the file, whole lines)."""
        rest = b""
        while True:
            with self._reading():
                fresh = self._file.read(CHUNK)
            end = fresh.rfind(b"\n") + 1
            if not fresh:
                if rest:
                    yield self._progress(), rest
                return
            if end:
                yield self._progress(), rest + fresh[:end]
                rest = fresh[end:]
            else:
                rest += fresh
            if len(rest) >= CHUNK:
                raise DecodeError(
                    f"{self._name}: a line of more than {CHUNK // 2**20} MB; are these reports?"
                )

    def _progress(self) -> int:
        if not self._raw.seekable():  # a pipe: nobody knows how much there is
            return 0
        before, self._seen = self._seen, self._raw.tell()
        return self._seen - before

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DecodeError(
                f"{self._name}: damaged, or not a gzip file; copy it again, or name another"
            ) from None


def first_without_bom(chunks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The pieces of a file that has no header, without its byte order mark."""
    for number, (size, data) in enumerate(chunks):
        yield size, data if number else data.removeprefix(_BOM)
