"""Files of reports to counts: any size in flat memory, all cores, nothing silently dropped."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rappor.aggregate import _engine, kernel, read_csv, read_jsonl, read_parquet
from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import SHOWN, MalformedLines, ReadJob
from rappor.errors import DecodeError
from rappor.params import Params
from rappor.typing import IntArray

Reader = Callable[[Path, Params], Iterator[ReadJob]]

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
    """A line that is no report.

    Attributes:
        file: where.
        line: its number, from 1, header and blank lines included; in Parquet the row's.
        reason: what is wrong; never what is in it.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """Counts of files, and what could not be counted.

    Attributes:
        counts: of all well-formed reports.
        rows: how many those are.
        malformed: lines that are no reports.
        examples: the first 20 of them.
        reasons: how many there are for each reason.
    """

    counts: Counts
    rows: int
    malformed: int
    examples: tuple[Malformed, ...]
    reasons: Mapping[str, int]


class _CountedPart(NamedTuple):
    """What a worker makes of a job."""

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
    """Counts of the reports in files; their names' ends say the format.

    Args:
        paths: .csv, .jsonl, .ndjson (all three also with .gz) or .parquet files, in order.
        params: the parameters that the reports were made with.
        strict: stop at the first malformed line with DecodeError, instead of counting them.
        progress: called with the bytes of a file that have been dealt with since the last call.
        threads: pieces that are parsed at once (default: the cores, at most four).
        kind: the kind of collection.
        dialect: how strings were placed, where known.
        collection: the collection's name, where known.
        version: the collection's version, where known.
        reports_per_client: the most reports of one client on one value, where known.

    Raises:
        DecodeError: a file that is empty, damaged or of no known format; a malformed line when
            `strict`.
        OSError: a file that cannot be opened.
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
    account = _Account(strict)
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
    """The path, and what reads a file whose name ends so; DecodeError where nothing does."""
    path = Path(name).expanduser()
    ends = "".join(path.suffixes[-2:]).lower()
    for ending, reader in _READERS.items():
        if ends.endswith(ending):
            if stat.S_ISDIR(path.stat().st_mode):  # a missing file also shows before any is read
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            return path, reader
    raise DecodeError(f"{path}: expected a name that ends in {', '.join(_READERS)}")


def _in_order(
    files: Sequence[tuple[str, Path, Reader]], params: Params, workers: int
) -> Iterator[tuple[int, int, _CountedPart]]:
    """Run the jobs of all files in threads and give their results in order.

    Only one job more than there are threads is ever read ahead: that keeps memory flat.
    """
    waiting: deque[tuple[int, int, Future[_CountedPart]]] = deque()
    with ThreadPoolExecutor(workers, "rappor-aggregate") as pool:
        try:
            for number, (_, path, reader) in enumerate(files):
                for job in reader(path, params):
                    waiting.append((number, job.size, pool.submit(_count, job, params)))
                    if len(waiting) > workers:
                        yield _result(*waiting.popleft())
            while waiting:
                yield _result(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _result(number: int, size: int, future: Future[_CountedPart]) -> tuple[int, int, _CountedPart]:
    return number, size, future.result()


def _count(job: ReadJob, params: Params) -> _CountedPart:
    """What happens in a thread: understand a piece of a file, and count it."""
    part = job.run()
    totals, ones, _ = kernel.engine().count_rows(part.packed, part.cohorts, -1, params.m)
    return _CountedPart(totals, ones[:, : params.k], part.lines, part.wrong)


class _Account:
    """Malformed lines of all files, with their real line numbers."""

    def __init__(self, strict: bool) -> None:
        self.count = 0
        self.examples: list[Malformed] = []
        self.reasons: Counter[str] = Counter()
        self._strict = strict
        self._number, self._lines = 0, 0

    def add(self, number: int, file: str, done: _CountedPart) -> None:
        """Go on with the next piece; DecodeError at a malformed line when strict."""
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
