"""The results of a trend by period, stored so that a new period costs one decode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rappor.aggregate.counts import Counts
from rappor.charts.trends import MAX_MULTIPLES, TrendLine, TrendPoint
from rappor.dashboard.jobs.queue import JobResult
from rappor.decoding.exports import mass_in
from rappor.decoding.result import Decoded, Rows

KEEP_ALL = (
    1000  # up to this many candidates all rows are stored; of more, the detected and the largest
)
KEEP_LARGEST = 300
_COLUMNS = ("period", "string", "share", "low", "high", "detected")


class TrendCell(NamedTuple):
    """One string in one period."""

    share: float
    low: float
    high: float
    detected: bool


@dataclass(frozen=True, slots=True)
class PeriodResult:
    """The result of one period.

    Attributes:
        period: the period.
        version: the version of the collection.
        digest: a digest of its counts and of how they were decoded.
        reports: N.
        detected: the number of detected strings.
        threshold: about the smallest share that is detected; ∞ if there is none.
        undetected_mass: share and interval of reports that no detected string explains; None if it
            is not known.
        rows: the stored rows by string.
    """

    period: str
    version: int
    digest: str
    reports: int
    detected: int
    threshold: float
    undetected_mass: tuple[float, float, float] | None
    rows: Mapping[str, TrendCell] = field(repr=False)


def digest_of(parts: Sequence[Counts], about: str) -> str:
    """A digest of counts and of how they are decoded."""
    state = blake2b(about.encode(), digest_size=16, person=b"rappor-trend")
    for part in parts:
        state.update(part.params.digest.encode())
        for numbers in (part.totals, part.ones):
            state.update(np.ascontiguousarray(numbers).tobytes())
    return state.hexdigest()


def summary_of(
    period: str,
    version: int,
    digest: str,
    found: Decoded,
    also: Iterable[str] = (),
) -> PeriodResult:
    """The part of a decode that a trend stores.

    Args:
        period: the period.
        version: the version of the collection.
        digest: the digest of the counts.
        found: the decode.
        also: strings to store even if they are small.
    """
    table = found
    mass = table.undetected_mass
    known = table.kind in ("string", "category") and math.isfinite(mass.proportion)
    return PeriodResult(
        period=period,
        version=version,
        digest=digest,
        reports=table.reports,
        detected=int(table.rows.detected.sum()),
        threshold=table.threshold / table.reports if table.reports else math.inf,
        undetected_mass=(mass.proportion, mass.prop_low_95, mass.prop_high_95) if known else None,
        rows=_kept(found.rows, also),
    )


def _kept(rows: Rows, also: Iterable[str]) -> dict[str, TrendCell]:
    if len(rows) <= KEEP_ALL:
        chosen: Iterable[int] = range(len(rows))
    else:
        wanted = set(also)
        more = (
            [place for place, text in enumerate(rows.strings) if text in wanted] if wanted else []
        )
        chosen = sorted({*range(KEEP_LARGEST), *np.flatnonzero(rows.detected).tolist(), *more})
    found = (rows.row(int(place)) for place in chosen)
    return {
        row.string: TrendCell(row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
        for row in found
    }


def largest(results: Iterable[PeriodResult], most: int = MAX_MULTIPLES) -> list[str]:
    """The strings to draw: those detected in some period, by their largest detected share.

    >>> one = PeriodResult(
    ...     "2026-W27", 1, "", 9, 1, 0.1, None, {"a": TrendCell(0.3, 0.2, 0.4, True)}
    ... )
    >>> largest([one])
    ['a']
    """
    best: dict[str, float] = {}
    for result in results:
        for name, cell in result.rows.items():
            if cell.detected:
                best[name] = max(cell.share, best.get(name, -math.inf))
    return sorted(best, key=lambda name: (-best[name], name))[:most]


def line_of(name: str, results: Mapping[str, PeriodResult], axis: Sequence[str]) -> TrendLine:
    """One string over all periods of an axis, with gaps where it is not known."""
    points = []
    for period in axis:
        result = results.get(period)
        cell = result.rows.get(name) if result else None
        points.append(
            TrendPoint(period, None, None, None) if cell is None else TrendPoint(period, *cell)
        )
    return TrendLine(name, points)


def pack(results: Sequence[PeriodResult], about: dict[str, Any]) -> JobResult:
    """Serialize the results of periods."""
    facts = [
        {
            "period": result.period,
            "version": result.version,
            "digest": result.digest,
            "reports": result.reports,
            "detected": result.detected,
            "threshold": result.threshold if math.isfinite(result.threshold) else None,
            "undetected_mass": result.undetected_mass and list(result.undetected_mass),
        }
        for result in results
    ]
    cells = [
        (result.period, name, *cell) for result in results for name, cell in result.rows.items()
    ]
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(_COLUMNS)
    types = (pa.string(), pa.string(), pa.float64(), pa.float64(), pa.float64(), pa.bool_())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    table = pa.table(dict(zip(_COLUMNS, arrays, strict=True)))
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return JobResult(about | {"periods": facts}, sink.getvalue().to_pybytes())


def unpack(meta: Mapping[str, Any], table: bytes) -> dict[str, PeriodResult]:
    """Read the results of periods from facts and a table."""
    rows = pa.ipc.open_file(pa.BufferReader(table)).read_all()
    cells: dict[str, dict[str, TrendCell]] = {}
    for period, name, *cell in zip(
        *(rows.column(column).to_pylist() for column in _COLUMNS), strict=True
    ):
        cells.setdefault(period, {})[name] = TrendCell(*cell)
    found = {}
    for fact in meta["periods"]:
        mass, threshold = mass_in(fact), fact["threshold"]
        found[fact["period"]] = PeriodResult(
            period=fact["period"],
            version=fact["version"],
            digest=fact["digest"],
            reports=fact["reports"],
            detected=fact["detected"],
            threshold=math.inf if threshold is None else threshold,
            undetected_mass=None if mass is None else (mass[0], mass[1], mass[2]),
            rows=cells.get(fact["period"], {}),
        )
    return found
