"""Count files of reports of any size, in constant memory and on all cores."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rappor.aggregate import _engine, kernel, read_csv, read_jsonl, read_parquet
from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import SHOWN, MalformedLines, ReadJob
from rappor.aggregate.lines import LineFile
from rappor.errors import DecodeError
from rappor.files import STANDARD_INPUT
from rappor.params import Params
from rappor.typing import IntArray

Reader = Callable[[Path, Params], Iterator[ReadJob]]

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"  # how such files begin
_BLANK = b"\xef\xbb\xbf \t\r\n"

_READERS: dict[str, Reader] = {
    ".csv": read_csv.jobs,
    ".csv.gz": read_csv.jobs,
    ".jsonl": read_jsonl.jobs,
    ".jsonl.gz": read_jsonl.jobs,
    ".ndjson": read_jsonl.jobs,
    ".ndjson.gz": read_jsonl.jobs,
    ".parquet": read_parquet.jobs,
}


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that is not a report.

    Attributes:
        file: the file.
        line: its number from 1, with header and blank lines; in Parquet the row's number.
        reason: what is wrong; it never shows the content of the line.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """Counts of files, and the lines that could not be counted.

    Attributes:
        counts: of all well-formed reports.
        rows: how many well-formed reports there are.
        malformed: how many lines are not reports.
        examples: the first 20 of them.
        reasons: how many malformed lines there are for each reason.
    """

    counts: Counts
    rows: int
    malformed: int
    examples: tuple[Malformed, ...]
    reasons: Mapping[str, int]


class CountedPart(NamedTuple):
    """The counts of a piece of a file, and its malformed lines."""

    totals: IntArray
    ones: IntArray
    lines: int
    wrong: MalformedLines


def aggregate_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    params: Params,
    *,
    strict: bool = False,
    progress: Callable[[int], object] | None = None,
    threads: int | None = None,
    kind: str = "string",
    dialect: str | None = None,
    collection: str | None = None,
    version: int | str | None = None,
    reports_per_client: int | None = None,
) -> Aggregated:
    """Count the reports in files; the end of a file's name says its format.

    Args:
        paths: .csv, .jsonl, .ndjson (all three also with .gz) or .parquet files, in order; "-" is
            standard input, as CSV or JSON lines.
        params: the parameters that the reports were made with.
        strict: stop at the first malformed line with DecodeError, instead of counting them.
        progress: called with the number of bytes that were counted since the last call.
        threads: how many pieces are parsed at once (default: the cores, at most four).
        kind: the kind of collection.
        dialect: how strings were placed, if known.
        collection: the collection's name, if known.
        version: the collection's version, if known.
        reports_per_client: the largest number of reports of one client on one value, if known.

    Raises:
        DecodeError: a file is empty, damaged or of an unknown format; or a line is malformed and
            `strict` is set.
        OSError: a file cannot be opened.
    """
    counts = Counts.zero(  # refuses bad arguments before anything is read
        params,
        kind=kind,
        dialect=dialect,
        collection=collection,
        version=version,
        reports_per_client=reports_per_client,
    )
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [(str(name), *reader_of(name)) for name in given]
    totals, ones = counts.totals.copy(), counts.ones.copy()
    account = MalformedTally(strict)
    for module in ("kernel_numba", "lines_numba"):
        _engine.load(module)  # imported here, not by several threads at once
    workers = threads or min(4, os.cpu_count() or 1)
    for number, size, done in _in_order(files, params, workers):
        totals += done.totals
        ones += done.ones
        account.add(number, files[number][0], done)
        if progress is not None:
            progress(size)
    counts = Counts(params, totals, ones, kind, dialect, collection, version, reports_per_client)
    examples = tuple(account.examples)
    return Aggregated(counts, counts.reports, account.count, examples, dict(account.reasons))


def reader_of(name: str | os.PathLike[str]) -> tuple[Path, Reader]:
    """The path and the reader for the end of its name, or DecodeError if there is none."""
    if name == STANDARD_INPUT:
        return Path("standard input"), _from_standard_input
    path = Path(name).expanduser()
    ends = "".join(path.suffixes[-2:]).lower()
    for ending, reader in _READERS.items():
        if ends.endswith(ending):
            if stat.S_ISDIR(path.stat().st_mode):  # a missing file also raises before any is read
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            return path, reader
    raise DecodeError(f"{path}: expected a name that ends in {', '.join(_READERS)}")


def _from_standard_input(path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of standard input: CSV or JSON lines, plain or gzip; its first bytes say which."""
    if sys.stdin is None:
        raise DecodeError(f"{path} is closed: pipe reports into it, or name a file")
    raw: Any = sys.stdin.buffer
    packed = raw.peek(2)[:2] == _GZIP
    stream = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
    try:
        first = stream.peek(len(_PARQUET))
    except (OSError, EOFError, zlib.error):
        raise DecodeError(
            f"{path}: damaged, or not a gzip file; copy it again, or name another"
        ) from None
    if first.startswith(_PARQUET):
        raise DecodeError(f"{path}: Parquet cannot be read from a pipe; name the file instead")
    file = LineFile(path, stream, packed=False)
    read = read_jsonl.jobs_of if first.lstrip(_BLANK).startswith(b"{") else read_csv.jobs_of
    yield from read(file, path, params)


def _in_order(
    files: Sequence[tuple[str, Path, Reader]], params: Params, workers: int
) -> Iterator[tuple[int, int, CountedPart]]:
    """Run the jobs of all files in threads, and yield their results in order.

    At most one job more than there are threads is read ahead, so that memory does not grow.
    """
    waiting: deque[tuple[int, int, Future[CountedPart]]] = deque()
    with ThreadPoolExecutor(workers, "rappor-aggregate") as pool:
        try:
            for number, (_, path, reader) in enumerate(files):
                for job in reader(path, params):
                    waiting.append((number, job.size, pool.submit(count_job, job, params)))
                    if len(waiting) > workers:
                        yield _result(*waiting.popleft())
            while waiting:
                yield _result(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _result(number: int, size: int, future: Future[CountedPart]) -> tuple[int, int, CountedPart]:
    return number, size, future.result()


def count_job(job: ReadJob, params: Params) -> CountedPart:
    """Parse and count a piece of a file; runs in a thread."""
    part = job.run()
    totals, ones, _ = kernel.engine().count_rows(part.packed, part.cohorts, -1, params.m)
    return CountedPart(totals, ones[:, : params.k], part.lines, part.wrong)


class MalformedTally:
    """Malformed lines of all files, with their real line numbers."""

    def __init__(self, strict: bool) -> None:
        self.count = 0
        self.examples: list[Malformed] = []
        self.reasons: Counter[str] = Counter()
        self._strict = strict
        self._number, self._lines = 0, 0

    def add(self, number: int, file: str, done: CountedPart) -> None:
        """Add the next piece; raise DecodeError at a malformed line if strict."""
        if number != self._number:
            self._number, self._lines = number, 0
        for line, reason in done.wrong.first:
            example = Malformed(file, self._lines + line, reason)
            if self._strict:
                raise DecodeError(str(example))
            if len(self.examples) < SHOWN:
                self.examples.append(example)
        self.count += done.wrong.count
        self.reasons.update(done.wrong.reasons)
        self._lines += done.lines
