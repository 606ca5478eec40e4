"""Results as they are stored: facts as JSON, rows as an Arrow table, exact to the last bit.

What is read back is a `Decoded` like the one that was kept, so that pages, files and charts come
from the same functions as those of the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rappor.dashboard.jobs.queue import JobResult
from rappor.decoding.differences import Compared, Differences
from rappor.decoding.exports import document, mass_in, without_nan
from rappor.decoding.forgery import Forgery
from rappor.decoding.histogram import Histogram
from rappor.decoding.quality import Check
from rappor.decoding.result import Decoded, Mass, Rows
from rappor.typing import FloatArray

_NUMBERS = ("estimate", "raw_estimate", "std_error", "low", "high", "p_value", "adjusted_p_value")
_OF_DIFFERENCES = (
    "share_one",
    "share_two",
    "difference",
    "std_error",
    "p_value",
    "adjusted_p_value",
    "low",
    "high",
    "different",
)
_OF_HISTOGRAM = ("share", "variance", "edges", "values")


def prepare() -> None:
    """Make pyarrow load now what it loads with the first array: pandas, if it is installed."""
    pa.array([0])


@dataclass(frozen=True, slots=True, eq=False)
class StoredDecode:
    """One stored result.

    Attributes:
        main: what was decoded.
        other: the other side of a comparison, its rows in the order of `main`; or None.
        compared: the comparison, its rows in the order of `main`; or None.
        meta: the facts as they are stored.
    """

    main: Decoded
    other: Decoded | None
    compared: Compared | None
    meta: dict[str, Any]

    @property
    def decoded(self) -> Decoded:
        """The table of what was decoded."""
        return self.main


def pack(
    found: Decoded,
    about: dict[str, Any],
    other: Decoded | None = None,
    compared: Compared | None = None,
) -> JobResult:
    """Serialize a result; `about` becomes part of its facts."""
    meta = about | _facts(found)
    strings = list(found.rows.strings)
    columns: dict[str, Any] = {"string": pa.array(strings, pa.string()), **_columns(found.rows)}
    if other is not None and compared is not None:
        meta["other"] = _facts(other)
        meta["compared"] = without_nan(
            {
                "reports": compared.reports,
                "candidates": compared.candidates,
                "robust": compared.robust,
                "untestable": compared.untestable,
                "checks": [check._asdict() for check in compared.checks],
                "dialect": compared.dialect,
            }
        )
        order = _places(other.rows, strings)
        columns |= {f"other.{name}": each[order] for name, each in _columns(other.rows).items()}
        columns |= _differences(compared.rows, strings)
    return JobResult(meta, _to_bytes(pa.table(columns)))


def unpack(meta: dict[str, Any], table: bytes) -> StoredDecode:
    """Read a result from facts and a table."""
    rows = pa.ipc.open_file(pa.BufferReader(table)).read_all()
    strings: list[str] = rows.column("string").to_pylist()
    found = _result(meta, rows, strings, "")
    if "compared" not in meta:
        return StoredDecode(found, None, None, meta)
    decoded = found
    numbers = {name: _array(rows, f"difference.{name}") for name in _OF_DIFFERENCES}
    said = meta["compared"]
    compared = Compared(
        rows=Differences(strings, **numbers),
        reports=tuple(said["reports"]),
        candidates=said["candidates"],
        robust=said["robust"],
        untestable=tuple(said["untestable"]),
        checks=_checks(said),
        kind=decoded.kind,
        dialect=said["dialect"],
        correction=decoded.correction,
        alpha=decoded.alpha,
    )
    return StoredDecode(found, _result(meta["other"], rows, strings, "other."), compared, meta)


def _facts(found: Decoded) -> dict[str, Any]:
    facts = document(found, every=True) | {"forgery": list(found.forgery)}
    del facts["rows"]
    hist = found.histogram
    if hist is not None:
        numbers = {name: getattr(hist, name) for name in _OF_HISTOGRAM}
        facts["histogram"] = without_nan(
            {
                "labels": hist.labels,
                "complete": hist.complete,
                "discrete": hist.discrete,
                **{key: None if each is None else each.tolist() for key, each in numbers.items()},
            }
        )
    return facts


def _columns(rows: Rows) -> dict[str, NDArray[Any]]:
    return {name: getattr(rows, name) for name in (*_NUMBERS, "detected")}


def _places(rows: Rows | Differences, strings: list[str]) -> NDArray[np.intp]:
    """The place of each string in the rows; -1 if it has none."""
    place = {string: index for index, string in enumerate(rows.strings)}
    return np.array([place.get(string, -1) for string in strings], np.intp)


def _differences(rows: Differences, strings: list[str]) -> dict[str, NDArray[Any]]:
    """The columns of a comparison in the order of these strings; nan for untested strings."""
    order = _places(rows, strings)
    found: dict[str, NDArray[Any]] = {}
    for name in _OF_DIFFERENCES:
        column = getattr(rows, name)
        missing = False if name == "different" else math.nan
        found[f"difference.{name}"] = np.where(order < 0, missing, column[order])
    return found


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _array(table: pa.Table, name: str) -> NDArray[Any]:
    found: NDArray[Any] = table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
    return found


def _result(facts: dict[str, Any], table: pa.Table, strings: list[str], prefix: str) -> Decoded:
    numbers = {name: _array(table, prefix + name) for name in (*_NUMBERS, "detected")}
    decoded = Decoded(
        rows=Rows(reports=facts["reports"], strings=strings, **numbers),
        reports=facts["reports"],
        candidates=facts["candidates"],
        cohorts=facts["cohorts"],
        undetected_mass=Mass(**{key: _number(each) for key, each in mass_in(facts).items()}),
        chi2_dof=_number(facts["chi2_dof"]),
        scale=_number(facts["scale"]),
        design_effect=_number(facts["design_effect"]),
        robust=facts["robust"],
        groups=tuple(map(tuple, facts["groups"])),
        untestable=tuple(facts["untestable"]),
        reports_per_client=facts.get("reports_per_client", 1),
        params_digest=facts["params_digest"],
        kind=facts["kind"],
        dialect=facts["dialect"],
        correction=facts["correction"],
        alpha=facts["alpha"],
        method=facts["method"],
        threshold=_number(facts["threshold"]),
        forgery=Forgery(*facts["forgery"]),
        checks=_checks(facts),
        notes=tuple(facts.get("notes", ())),
    )
    said = facts.get("histogram")
    if said is None:
        return decoded
    share, variance, edges, values = (_numbers(said[name]) for name in _OF_HISTOGRAM)
    if share is None or variance is None:
        raise KeyError("share")
    labels = tuple(said["labels"])
    hist = Histogram(
        decoded, labels, share, variance, said["complete"], edges, values, said["discrete"]
    )
    return replace(decoded, histogram=hist)


def _checks(facts: dict[str, Any]) -> tuple[Check, ...]:
    """The checks; of results that older versions saved, their warnings."""
    if "checks" in facts:
        return tuple(Check(**check) for check in facts["checks"])
    return tuple(Check("earlier", False, text) for text in facts["warnings"])


def _numbers(listed: list[Any] | None) -> FloatArray | None:
    return None if listed is None else np.array([_number(number) for number in listed], np.float64)


def _number(value: float | str | None) -> float:
    """A number that JSON stores as text or null; see `without_nan`."""
    return math.nan if value is None else float(value)
