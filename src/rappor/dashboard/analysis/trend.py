"""A trend: what each period holds of each string, kept so that a new period costs one decode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rappor.aggregate.counts import Counts
from rappor.charts.trends import MOST, TrendLine, TrendPoint
from rappor.dashboard.jobs.job import JobResult
from rappor.decoding.result import Decoded, Rows

KEEP_ALL = 1000  # candidates of which every row is kept; of more, detected and the largest ones
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
    """What one period holds.

    Attributes:
        period: which.
        version: of the collection.
        digest: of its counts and of how they were decoded; the same digest, the same result.
        reports: N.
        detected: how many strings were detected.
        threshold: the share that is about detected; ∞ where nothing is.
        unlisted: share and interval of reports that no detected string explains; None where that
            is not known.
        rows: by string; those that were kept.
    """

    period: str
    version: int
    digest: str
    reports: int
    detected: int
    threshold: float
    unlisted: tuple[float, float, float] | None
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
    """What is kept of one period's decoding.

    Args:
        period: which.
        version: of the collection.
        digest: of the counts.
        found: what `decode` made of them.
        also: strings to keep, however small.
    """
    table = found
    mass = table.unlisted
    known = table.kind in ("string", "category") and math.isfinite(mass.proportion)
    return PeriodResult(
        period=period,
        version=version,
        digest=digest,
        reports=table.reports,
        detected=int(table.rows.detected.sum()),
        threshold=table.threshold / table.reports if table.reports else math.inf,
        unlisted=(mass.proportion, mass.prop_low_95, mass.prop_high_95) if known else None,
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


def largest(results: Iterable[PeriodResult], most: int = MOST) -> list[str]:
    """The strings to draw: detected in some period, by the largest share they were detected with.

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
    """One string over all periods of an axis; where a period does not know it, a gap."""
    points = []
    for period in axis:
        result = results.get(period)
        cell = result.rows.get(name) if result else None
        points.append(
            TrendPoint(period, None, None, None) if cell is None else TrendPoint(period, *cell)
        )
    return TrendLine(name, points)


def pack(results: Sequence[PeriodResult], about: dict[str, Any]) -> JobResult:
    """Periods as a result to keep."""
    facts = [
        {
            "period": each.period,
            "version": each.version,
            "digest": each.digest,
            "reports": each.reports,
            "detected": each.detected,
            "threshold": each.threshold if math.isfinite(each.threshold) else None,
            "unlisted": each.unlisted and list(each.unlisted),
        }
        for each in results
    ]
    cells = [(each.period, name, *cell) for each in results for name, cell in each.rows.items()]
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
    """The periods behind a kept result."""
    rows = pa.ipc.open_file(pa.BufferReader(table)).read_all()
    cells: dict[str, dict[str, TrendCell]] = {}
    for period, name, *cell in zip(
        *(rows.column(each).to_pylist() for each in _COLUMNS), strict=True
    ):
        cells.setdefault(period, {})[name] = TrendCell(*cell)
    found = {}
    for fact in meta["periods"]:
        unlisted, threshold = fact["unlisted"], fact["threshold"]
        found[fact["period"]] = PeriodResult(
            period=fact["period"],
            version=fact["version"],
            digest=fact["digest"],
            reports=fact["reports"],
            detected=fact["detected"],
            threshold=math.inf if threshold is None else threshold,
            unlisted=None if unlisted is None else (unlisted[0], unlisted[1], unlisted[2]),
            rows=cells.get(fact["period"], {}),
        )
    return found
