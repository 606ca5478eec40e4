"""Counting on Spark: a DataFrame of reports, files cut into pieces, or a lake.

Executors count with the kernel of the local engine and send back one row of counts for each
partition; partial sums are added in a tree. A task that is lost is done again by Spark, and only
the rows of finished tasks are added, so a lost executor changes no count. Executors need rappor
with the extra `spark`.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import SHOWN, MalformedLines
from rappor.aggregate.pieces import Piece, combine, count_piece
from rappor.aggregate.report_files import Aggregated, CountedPart, Malformed
from rappor.errors import DecodeError, MissingExtraError, WireError
from rappor.params import Params, check_params
from rappor.typing import IntArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "totals binary, ones binary, notes string"
_BLOB_ROWS = "256"  # in one Arrow batch: blobs of 4,096 reports are large
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_TREE_FROM = 16  # partitions from which partial sums are added on executors first
_TASKS_PER_CORE = 4
_WORD = np.dtype("<i8")
Item = TypeVar("Item")
Work = Callable[[Item], CountedPart]


def session(master: str | None = None, name: str = "rappor") -> SparkSession:
    """The session of this process, or a new one.

    Args:
        master: such as spark://host:7077 or local[4]; None: what spark-submit or the environment
            says, else all cores of this machine.
        name: what the cluster's pages call the application.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("aggregate.spark", "spark") from None
    # Executors start this interpreter unless PYSPARK_PYTHON names theirs: `python3` has no rappor.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    return builder.getOrCreate()


def count(df: DataFrame, params: Params, **about: Any) -> Counts:
    """Count a DataFrame of reports.

    Args:
        df: the columns cohort, count and reports (rows of a lake: packed reports one after the
            other); or cohort and one of irr, rappor, bits and packed (one report a row). Other
            columns are not read.
        params: the parameters that the reports were made with.
        **about: kind, dialect, collection, version and reports_per_client of the counts.

    Raises:
        DecodeError: a column is missing, or a row is not a report; `aggregate_frame` counts the
            others and says which are malformed.
    """
    done = aggregate_frame(df, params, **about)
    if done.malformed:
        first = ", ".join(f"{times:,} x {reason}" for reason, times in done.reasons.items())
        raise DecodeError(f"{done.malformed:,} rows are not reports: {first}")
    return done.counts


def aggregate_frame(df: DataFrame, params: Params, **about: Any) -> Aggregated:
    """Count a DataFrame of reports as `count` does; malformed rows are counted with their reasons.

    The rows of a DataFrame have no order, so an example names the number of a row in its partition.
    """
    check_params(params)
    names = set(df.columns)
    if {"cohort", "count", "reports"} <= names:
        chosen, work = df.select("cohort", "count", "reports"), _blobs
    else:
        found = [name for name in ("irr", "rappor", "bits", "packed") if name in names]
        if "cohort" not in names or len(found) != 1:
            raise DecodeError(
                "expected the columns cohort, count and reports, or cohort and one of irr, rappor, "
                f"bits and packed; found {', '.join(df.columns)}"
            )
        chosen, work = df.select("cohort", found[0]), _single

    def partial_sums(batches: Iterator[Any]) -> Iterator[Any]:
        total, notes = _zero(params), _Notes()
        for batch in batches:
            part = work(batch, params)
            notes.add(0, part)
            total = (total[0] + part.totals, total[1] + part.ones)
        yield _row(total, notes)

    with _batches_of(df.sparkSession, _BLOB_ROWS if work is _blobs else None):
        rows = _collected(chosen.mapInArrow(partial_sums, _SCHEMA), df.sparkSession, params)
    totals, ones, noted = _sum(rows, params)
    counts = Counts(params, totals, ones, **({"reports_per_client": None} | about))
    tally = MalformedLines()
    for note in noted:
        tally.count += note["count"]
        tally.reasons.update(note["reasons"])
        tally.first += [(line, reason) for line, reason in note["first"]]
    examples = tuple(Malformed("DataFrame", *each) for each in tally.first[:SHOWN])
    return Aggregated(counts, counts.reports, tally.count, examples, dict(tally.reasons))


def aggregate_pieces(
    spark: SparkSession,
    pieces: Sequence[Piece],
    params: Params,
    *,
    strict: bool = False,
    **about: Any,
) -> Aggregated:
    """Count files that `rappor.aggregate.pieces.cut` has cut; as `aggregate_files` on one machine.

    Executors open the files by the same names: paths on a shared disk, or URLs.
    """
    check_params(params)

    def work(piece: Piece) -> CountedPart:
        return count_piece(piece, params)

    totals, ones, parts = map_sum(spark, pieces, work, params)
    about = {"reports_per_client": None} | about
    done = combine(pieces, parts, params, strict=strict, **about)
    counts = Counts(params, totals, ones, **about)
    return Aggregated(counts, counts.reports, done.malformed, done.examples, done.reasons)


def map_sum(
    spark: SparkSession, items: Sequence[Item], work: Work[Item], params: Params
) -> tuple[IntArray, IntArray, list[CountedPart]]:
    """Do some work for each item on executors, and add up the counts.

    Returns:
        N_j, c_ij, and what each item said about malformed lines, without counts, in order.

    Raises:
        DecodeError: the work of an item raised one; it has the same words.
    """
    if not items:
        return (*_zero(params), [])
    cores = spark.sparkContext.defaultParallelism
    partitions = min(len(items), max(1, cores * _TASKS_PER_CORE))

    def partial_sums(batches: Iterator[Any]) -> Iterator[Any]:
        total, notes = _zero(params), _Notes()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    part = work(items[number])
                except (DecodeError, WireError) as error:
                    notes.fail(number, str(error))
                    continue
                notes.add(number, part)
                total = (total[0] + part.totals, total[1] + part.ones)
        yield _row(total, notes)

    numbered = spark.range(0, len(items), 1, partitions)
    rows = _collected(numbered.mapInArrow(partial_sums, _SCHEMA), spark, params)
    totals, ones, noted = _sum(rows, params)
    by_number = {note["number"]: note for note in noted}
    failed = [note["error"] for _, note in sorted(by_number.items()) if "error" in note]
    if failed:
        raise DecodeError(failed[0])
    return totals, ones, [_without_counts(by_number[at], params) for at in range(len(items))]


def _collected(partial: Any, spark: Any, params: Params) -> list[Any]:
    """The rows of partial sums, added in a tree if there are many."""

    def merge(batches: Iterator[Any]) -> Iterator[Any]:
        total, notes = _zero(params), []
        for batch in batches:
            for row in batch.to_pylist():
                totals, ones = _arrays(row, params)
                total = (total[0] + totals, total[1] + ones)
                notes += json.loads(row["notes"])
        yield _arrow_row(total, notes)

    partitions = spark.sparkContext.defaultParallelism * _TASKS_PER_CORE
    if partitions > _TREE_FROM:
        partial = partial.repartition(math.isqrt(partitions)).mapInArrow(merge, _SCHEMA)
    rows: list[Any] = [row.asDict() for row in partial.collect()]
    return rows


class _Notes:
    """What the items of a partition say, apart from their counts."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []

    def add(self, number: int, part: CountedPart) -> None:
        wrong = part.wrong
        self.listed.append(
            {
                "number": number,
                "lines": part.lines,
                "count": wrong.count,
                "first": wrong.first,
                "reasons": dict(wrong.reasons),
            }
        )

    def fail(self, number: int, error: str) -> None:
        self.listed.append({"number": number, "error": error})


def _zero(params: Params) -> tuple[IntArray, IntArray]:
    empty = np.zeros((params.m, params.k), np.int64)
    return empty[:, 0].copy(), empty


def _row(total: tuple[IntArray, IntArray], notes: _Notes) -> Any:
    return _arrow_row(total, notes.listed)


def _arrow_row(total: tuple[IntArray, IntArray], notes: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    arrays = [pa.array([each.astype(_WORD).tobytes()], pa.binary()) for each in total]
    text = pa.array([json.dumps(notes)], pa.string())
    return pa.RecordBatch.from_arrays([*arrays, text], names=["totals", "ones", "notes"])


def _arrays(row: dict[str, Any], params: Params) -> tuple[IntArray, IntArray]:
    totals = np.frombuffer(row["totals"], _WORD).astype(np.int64)
    ones = np.frombuffer(row["ones"], _WORD).astype(np.int64)
    return totals, ones.reshape(params.m, params.k)


def _sum(
    rows: Iterable[dict[str, Any]], params: Params
) -> tuple[IntArray, IntArray, list[dict[str, Any]]]:
    totals, ones = _zero(params)
    notes: list[dict[str, Any]] = []
    for row in rows:
        more = _arrays(row, params)
        totals, ones = totals + more[0], ones + more[1]
        notes += json.loads(row["notes"])
    return totals, ones, notes


def _without_counts(note: dict[str, Any], params: Params) -> CountedPart:
    first = [(line, reason) for line, reason in note["first"]]
    wrong = MalformedLines(note["count"], first, Counter(note["reasons"]))
    return CountedPart(*_zero(params), note["lines"], wrong)


def _single(batch: Any, params: Params) -> CountedPart:
    """Count a batch with one report a row."""
    from rappor.aggregate.file_parts import ReadJob
    from rappor.aggregate.read_parquet import parse_batch
    from rappor.aggregate.report_files import count_job

    def parse() -> Any:
        return parse_batch(batch.column(0), batch.column(1), params)

    return count_job(ReadJob(batch.nbytes, parse), params)


def _blobs(batch: Any, params: Params) -> CountedPart:
    """Count a batch of blobs; a row whose numbers do not agree is malformed as a whole."""
    from rappor.aggregate.kernel import count as count_packed

    width = (params.k + 7) // 8
    totals, ones = _zero(params)
    wrong = MalformedLines()
    cohorts, counts = (batch.column(place).to_pylist() for place in (0, 1))
    for line, (cohort, number, blob) in enumerate(
        zip(cohorts, counts, batch.column(2), strict=True), 1
    ):
        data = blob.as_buffer() if blob.is_valid else None
        if data is None or number is None or data.size != number * width:
            wrong.add(line, f"a blob of {params.k} bits must have {width} bytes for each report")
            continue
        try:
            part = count_packed(memoryview(data), -1 if cohort is None else cohort, params)
        except WireError as error:
            wrong.add(line, str(error))
            continue
        totals += part.totals
        ones += part.ones
    return CountedPart(totals, ones, len(batch), wrong)


@contextmanager
def _batches_of(spark: Any, rows: str | None) -> Iterator[None]:
    """Let Arrow batches have this many rows; None leaves the session's own number."""
    if rows is None:
        yield
        return
    before = spark.conf.get(_BATCH)
    spark.conf.set(_BATCH, rows)
    try:
        yield
    finally:
        spark.conf.set(_BATCH, before)
