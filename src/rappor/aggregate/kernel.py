"""Packed reports to counts: a pure function of bytes (§4).

Threads, Spark partitions and files all use it. `kernel_numba` does the work, or `kernel_numpy` if
numba is not installed; both give the same numbers.
"""

from __future__ import annotations

import operator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rappor.aggregate import _engine, kernel_numpy
from rappor.aggregate.counts import Counts
from rappor.aggregate.kernel_numpy import AnyInts
from rappor.checks import is_whole, show
from rappor.errors import WireError
from rappor.params import Params, check_params
from rappor.typing import ByteArray

_AS_THEY_ARE = (np.uint8, np.uint16, np.int64)  # each costs a compilation; others are converted


def engine() -> ModuleType:
    """The module that counts: machine code if numba is installed."""
    return _engine.load("kernel_numba") or kernel_numpy


def count(
    packed: ArrayLike | bytes | bytearray | memoryview,
    cohorts: ArrayLike | int,
    params: Params,
    *,
    kind: str = "string",
    dialect: str | None = None,
    collection: str | None = None,
    version: int | str | None = None,
    reports_per_client: int | None = None,
) -> Counts:
    """Count the reports of each cohort, and how many of them have each bit set.

    It is fastest for reports grouped by cohort, or in one blob for each cohort.

    Args:
        packed: reports of ceil(k/8) bytes, bit i in bit i % 8 of byte i // 8: uint8 of shape
            (N, ceil(k/8)), or all reports one after another as bytes.
        cohorts: the cohort of each report, shape (N,), or one number for all of them.
        params: the parameters that the reports were made with.
        kind: the kind of collection.
        dialect: how strings were placed, if known.
        collection: the collection's name, if known.
        version: the collection's version, if known.
        reports_per_client: the largest number of reports of one client on one value, if known.

    Raises:
        WireError: a wrong shape, a cohort out of range, or a padding bit that is set.

    >>> two = count(bytes([0b101, 0b100]), 1, Params(k=3, h=1, m=2, f=0.5, p=0.5, q=0.75))
    >>> two.totals.tolist(), two.ones.tolist()
    ([0, 2], [[0, 0, 0], [1, 0, 2]])
    """
    check_params(params)
    rows = packed_rows(packed, params.k)
    each, only = _cohorts(cohorts, len(rows), params.m)
    totals, ones, wrong = engine().count_rows(rows, each, only, params.m)
    if wrong >= 0:
        raise WireError(
            f"report {wrong}: its cohort must be from 0 to {params.m - 1}, got {int(each[wrong])}"
        )
    if ones[:, params.k :].any():
        index = int(np.flatnonzero(rows[:, -1] >> (params.k % 8))[0])
        raise WireError(
            f"report {index}: a report of {params.k} bits must leave its last {-params.k % 8} "
            "padding bits 0"
        )
    about: dict[str, Any] = {"kind": kind, "dialect": dialect, "collection": collection}
    about |= {"version": version, "reports_per_client": reports_per_client}
    return Counts(params, totals, ones[:, : params.k], **about)


def packed_rows(packed: ArrayLike | bytes | bytearray | memoryview, k: int) -> ByteArray:
    """The reports as contiguous uint8 of shape (N, ceil(k/8))."""
    width = (k + 7) // 8
    if isinstance(packed, (bytes, bytearray, memoryview)):
        given: Any = np.frombuffer(packed, np.uint8)
    else:
        given = np.asarray(packed)
        if given.dtype != np.uint8:
            raise WireError(f"packed reports must be bytes (uint8), got {given.dtype}")
    if given.ndim == 1:
        if given.size % width:
            raise WireError(
                f"reports of {k} bits take {width} bytes each; {given.size} bytes are not a "
                "whole number of reports"
            )
        given = given.reshape(-1, width)
    if given.ndim != 2 or given.shape[1] != width:
        raise WireError(
            f"packed reports of {k} bits must have the shape (N, {width}), got {given.shape}"
        )
    rows: ByteArray = np.ascontiguousarray(given)
    return rows


def _cohorts(given: ArrayLike | int, reports: int, m: int) -> tuple[AnyInts, int]:
    """The cohort of each report and -1; or an empty array and the cohort of all."""
    if is_whole(given):
        # is_whole has checked it, which the checker cannot follow through numpy's unions.
        only = operator.index(given)  # type: ignore[arg-type]
        if not 0 <= only < m:
            raise WireError(f"the cohort must be from 0 to {m - 1}, got {show(only)}")
        return np.empty(0, np.int64), only
    each = np.asarray(given)
    if each.size == 0 and each.ndim == 1:
        each = each.astype(np.int64)  # an empty list is an array of floats
    if each.dtype.kind not in "iu":
        raise WireError(f"cohorts must be whole numbers, got {each.dtype}")
    if each.shape != (reports,):
        raise WireError(f"{reports} reports need {reports} cohorts, got the shape {each.shape}")
    if each.dtype.kind == "u" and each.dtype.itemsize == 8:
        each = np.minimum(each, np.uint64(m))  # too large stays too large, but fits int64
    if each.dtype not in _AS_THEY_ARE:
        each = each.astype(np.int64)
    return np.ascontiguousarray(each), -1
