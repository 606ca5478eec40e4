"""Full reports of a simulated collection, made on a Spark cluster: for 1e9 reports and more.

The crowd is divided into parts of about four million reports, each with clients, values and a seed
of its own. A part is made whole by one task and written as one Parquet file, so memory does not
grow with the number of reports, and a task that is lost makes the same file again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.aggregate.kernel import count
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.simulate.crowd import draw_crowd
from rappor.simulate.drawn_counts import Simulated, named
from rappor.simulate.full_reports import pieces
from rappor.simulate.output_files import report_file
from rappor.simulate.scenario import Scenario
from rappor.typing import IntArray

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_REPORTS = 1 << 22
_TASKS_PER_CORE = 4
_SCHEMA = "totals binary, ones binary, held binary"
_WORD = np.dtype("<i8")


@dataclass(frozen=True, slots=True)
class Part:
    """The clients that one task simulates.

    Attributes:
        number: the place among all parts, from 0.
        clients: how many clients it has.
        reports: how many reports they send.
    """

    number: int
    clients: int
    reports: int

    @property
    def file(self) -> str:
        """The name of its file of reports."""
        return f"part-{self.number:05}.parquet"


class _Sums(NamedTuple):
    """N_j, shape (m,); c_ij, shape (m, k); and reports of each value, shape (M,)."""

    totals: IntArray
    ones: IntArray
    held: IntArray

    def __add__(self, other: Any) -> _Sums:
        return _Sums(*(one + more for one, more in zip(self, other, strict=True)))


def divide(scenario: Scenario, size: int = PART_REPORTS) -> list[Part]:
    """The parts of a scenario: together they have its clients and its reports.

    >>> from rappor import Params
    >>> [part.reports for part in divide(Scenario(["a"], Params.preset("windows"), 1000), 400)]
    [334, 333, 333]
    """
    clients, reports_each, one_more = scenario.workload()
    number = max(1, min(clients, -(-scenario.reports // size)))
    found = []
    for place in range(number):
        mine = clients // number + (place < clients % number)
        longer = one_more // number + (place < one_more % number)
        found.append(Part(place, mine, mine * reports_each + longer))
    return found


def simulate_on_spark(
    spark: SparkSession, scenario: Scenario, folder: str, size: int = PART_REPORTS
) -> Simulated:
    """Make the reports of a scenario on executors, and write them to a folder.

    Args:
        spark: the session.
        scenario: what to simulate; its seed must be a whole number.
        folder: where the files of reports go: an absolute path that every executor can write to.
        size: the number of reports in a file, about.

    Returns:
        The counts of all reports, and the truth.
    """
    if not isinstance(scenario.seed, int):
        raise ParamsError("a simulation on Spark needs a whole number as its seed")
    crowd = draw_crowd(scenario)  # refuses what cannot be drawn before a cluster is asked
    params, values = crowd.params, len(crowd.names)
    parts = divide(scenario, size)
    cores = spark.sparkContext.defaultParallelism
    partitions = min(len(parts), max(1, cores * _TASKS_PER_CORE))

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        total = _nothing(params, values)
        for batch in batches:
            for place in batch.column(0).to_pylist():
                total += _make(scenario, parts[place], folder)
        yield _row(total)

    rows = spark.range(0, len(parts), 1, partitions).mapInArrow(work, _SCHEMA).collect()
    total = _nothing(params, values)
    for row in rows:
        total += _sums(row.asDict(), params)
    counts = Counts(
        params,
        total.totals,
        total.ones,
        kind=crowd.kind,
        dialect=crowd.dialect if crowd.kind == "string" else None,
        reports_per_client=crowd.repeats,
    )
    return Simulated(counts, named(crowd.names, crowd.nobody, total.held))


def _make(scenario: Scenario, part: Part, folder: str) -> _Sums:
    """Simulate a part, write its file, and count it."""
    seed: Sequence[int] = (int(str(scenario.seed)), part.number)
    own = replace(
        scenario, reports=part.reports, clients=part.clients, reports_per_client=1, seed=seed
    )
    crowd = draw_crowd(own)
    total = _nothing(crowd.params, len(crowd.names))
    Path(folder).mkdir(parents=True, exist_ok=True)
    with report_file(Path(folder, part.file), crowd.params.k) as file:
        for piece in pieces(crowd, threads=1):
            file.write(piece)
            counted = count(piece.packed, piece.cohorts, crowd.params)
            held = np.bincount(piece.values, minlength=len(crowd.names))
            total += _Sums(counted.totals, counted.ones, held)
    return total


def _nothing(params: Params, values: int) -> _Sums:
    shapes = ((params.m,), (params.m, params.k), (values,))
    return _Sums(*(np.zeros(shape, np.int64) for shape in shapes))


def _row(sums: _Sums) -> Any:
    import pyarrow as pa

    arrays = [pa.array([each.astype(_WORD).tobytes()], pa.binary()) for each in sums]
    return pa.RecordBatch.from_arrays(arrays, names=list(_Sums._fields))


def _sums(row: dict[str, bytes], params: Params) -> _Sums:
    flat = [np.frombuffer(row[name], _WORD).astype(np.int64) for name in _Sums._fields]
    return _Sums(flat[0], flat[1].reshape(params.m, params.k), flat[2])
