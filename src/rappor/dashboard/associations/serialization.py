"""Associations as they are stored: facts as JSON, cells as an Arrow table, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rappor.dashboard.jobs.queue import JobResult
from rappor.decoding.association import Association, JointCells, MarginShare
from rappor.decoding.exports import without_nan
from rappor.decoding.joint_fit import ChiSquare
from rappor.decoding.quality import Check

_FACTS = ("reports", "tested", "method", "correction", "alpha", "notes", "title")
_EPSILONS = ("epsilon_one", "epsilon_infinity")


def pack(found: Association, about: dict[str, Any]) -> JobResult:
    """Serialize a result; `about` becomes part of its facts."""
    meta = about | {
        **{name: getattr(found, name) for name in _FACTS},
        **{name: without_nan(getattr(found, name)) for name in _EPSILONS},
        "detected": len(found.associated),
        "names": found.names,
        "labels": found.labels,
        "independence": without_nan(found.independence._asdict()),
        "unlisted_mass": without_nan(found.unlisted_mass),
        "margins": without_nan([[value[1:] for value in margin] for margin in found.margins]),
        "checks": [check._asdict() for check in found.checks],
    }
    cells = {name: np.asarray(table).ravel() for name, table in found.rows.columns.items()}
    table, sink = pa.table(cells), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return JobResult(meta, sink.getvalue().to_pybytes())


def unpack(meta: dict[str, Any], table: bytes) -> Association:
    """Read a result from facts and a table."""
    cells = pa.ipc.open_file(pa.BufferReader(table)).read_all()
    first, second = (tuple(side) for side in meta["labels"])
    shape = (len(first), len(second))
    columns = {
        name: cells.column(name).to_numpy(zero_copy_only=False).reshape(shape)
        for name in cells.column_names
    }
    test = {name: _number(value) for name, value in meta["independence"].items()}
    one, two = (
        tuple(
            MarginShare(label, *map(_number, numbers))
            for label, numbers in zip(labels, side, strict=True)
        )
        for labels, side in zip((first, second), meta["margins"], strict=True)
    )
    share, low, high = map(_number, meta["unlisted_mass"])
    facts: dict[str, Any] = {name: meta[name] for name in _FACTS}
    facts |= {name: _number(meta[name]) for name in _EPSILONS} | {"notes": tuple(meta["notes"])}
    return Association(
        names=(meta["names"][0], meta["names"][1]),
        rows=JointCells((first, second), columns),
        margins=(one, two),
        independence=ChiSquare(**test),
        unlisted_mass=(share, low, high),
        checks=tuple(Check(**check) for check in meta["checks"]),
        **facts,
    )


def _number(value: float | str | None) -> float:
    """A number as `without_nan` wrote it."""
    return float("nan") if value is None else float(value)
