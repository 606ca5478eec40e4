"""A diagnosis as it is stored: checks, cohort sizes, and the cells of cohorts and bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rappor.collection import Collection
from rappor.dashboard.jobs.queue import JobResult
from rappor.decoding.diagnosis import BitTable, Diagnosis
from rappor.decoding.quality import Check
from rappor.decoding.result import Decoded
from rappor.mechanism import bloom_positions
from rappor.typing import FloatArray

MAX_GROUPS = 200  # groups of candidates that set the same bits
MAX_STRINGS = 500  # detected strings that the page offers to light up


@dataclass(frozen=True, slots=True, eq=False)
class StoredDiagnosis:
    """A diagnosis read back.

    Attributes:
        meta: the facts as they are stored.
        checks: the checks, failed or not.
        counts: shape (m, k).
        fitted: shape (m, k), or None.
        residuals: shape (m, k), nan if there are no reports; or None.
    """

    meta: Mapping[str, Any]
    checks: tuple[Check, ...]
    counts: NDArray[np.int64] = field(repr=False)
    fitted: FloatArray | None = field(repr=False)
    residuals: FloatArray | None = field(repr=False)

    @property
    def reports(self) -> int:
        """N."""
        return int(self.meta["reports"])


def pack(
    table: Decoded,
    diagnosis: Diagnosis,
    cells: BitTable,
    about: dict[str, Any],
) -> JobResult:
    """Serialize a diagnosis."""
    cohorts, bits = cells.counts.shape
    meta = about | {
        "reports": table.reports,
        "candidates": table.candidates,
        "detected": [row.string for row in table.detected[:MAX_STRINGS]],
        "checks": [check._asdict() for check in table.checks],
        "diagnosis": diagnosis.to_dict(),
        "groups": [list(group) for group in table.groups[:MAX_GROUPS]],
        "group_count": len(table.groups),
        "untestable": list(table.untestable[:MAX_GROUPS]),
        "totals": cells.totals.tolist(),
        "cohorts": cohorts,
        "bits": bits,
        "notes": list(table.notes),
    }
    columns: dict[str, Any] = {"counts": cells.counts.ravel()}
    if cells.fitted is not None and cells.residuals is not None:
        columns["fitted"] = cells.fitted.ravel()
        columns["residuals"] = cells.residuals.ravel()
    sink = pa.BufferOutputStream()
    made = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, made.schema, options=options) as writer:
        writer.write_table(made)
    return JobResult(meta, sink.getvalue().to_pybytes())


def unpack(meta: Mapping[str, Any], table: bytes) -> StoredDiagnosis:
    """Read a diagnosis from facts and a table."""
    rows = pa.ipc.open_file(pa.BufferReader(table)).read_all()
    shape = (meta["cohorts"], meta["bits"])
    found = {name: rows.column(name).to_numpy().reshape(shape) for name in rows.column_names}
    checks = tuple(read_check(check) for check in meta["checks"])
    return StoredDiagnosis(
        meta, checks, found["counts"], found.get("fitted"), found.get("residuals")
    )


def read_check(saved: Mapping[str, Any]) -> Check:
    """A check as it was saved; older versions called its code `name`."""
    return Check(saved.get("code") or saved["name"], saved["ok"], saved["text"])


def lit_cells(string: str, collection: Collection) -> list[tuple[int, int]]:
    """The (cohort, bit) that a string sets; the heat map lights them up.

    >>> from rappor import Params
    >>> made = Collection("homepage", 1, Params(8, 2, 2, 0.5, 0.5, 0.75))
    >>> lit_cells("a.org", made)
    [(0, 0), (0, 5), (1, 3), (1, 7)]
    """
    if collection.kind != "string":
        return []
    found = []
    for cohort in range(collection.params.m):
        bits = bloom_positions(string, cohort, collection.params, dialect=collection.dialect)
        found += [(cohort, bit) for bit in sorted(set(bits))]
    return found
