"""Sums of table entries at each candidate's bits: the one loop that runs over M × m × h (§4).

Two ways with the same result to the last bit, because each candidate's sum is made in the same
order, cohort by cohort and hash by hash: numpy, and a compiled loop for large designs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rappor.decoding.placement import Positions

# Index entries from which the compiled loop is used. It halves the time of a pass, but its first
# use in a process costs half a second (one and a half when nothing is cached yet).
COMPILE_FROM = 1 << 28

# Candidates at a time, so that their running sums stay in the processor's cache.
_BLOCK = 4096

Table = NDArray[Any]  # (m, k + 1) numbers of one type
Loop = Callable[[Table, Positions, int, Table], None]


def gather_sums(table: Table, index: Positions, h: int) -> Table:
    """Σ over cohorts j, then hashes l, of table[j, index[j * h + l, i]], for every column i.

    Args:
        table: shape (m, k + 1), of any numeric type; unsigned integers wrap around.
        index: shape (m * h, M), entries from 0 to k.
        h: hash functions, the rows of `index` for each cohort.

    Returns:
        Shape (M,), of the table's type.

    >>> gather_sums(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 1], [2, 2]], np.uint16), 2).tolist()
    [5.0, 6.0]
    """
    table = np.ascontiguousarray(table)
    sums: Table = np.zeros(index.shape[1], table.dtype)
    loop = _compiled() if index.size >= COMPILE_FROM else None
    (loop or _numpy_loop)(table, index, h, sums)
    return sums


def _numpy_loop(table: Table, index: Positions, h: int, sums: Table) -> None:
    found = np.empty(min(4 * _BLOCK, len(sums)), table.dtype)
    for start in range(0, len(sums), 4 * _BLOCK):
        block = sums[start : start + 4 * _BLOCK]
        here = found[: len(block)]
        for row, positions in enumerate(index[:, start : start + 4 * _BLOCK]):
            # "clip" only because it is the mode that writes to `out` without a copy.
            np.take(table[row // h], positions, out=here, mode="clip")
            block += here


def _plain_loop(table: Table, index: Positions, h: int, sums: Table) -> None:
    """For the compiler only: the loop in the order that the memory likes."""
    rows, size = index.shape
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        for row in range(rows):
            entries = table[row // h]
            positions = index[row]
            for i in range(start, end):
                sums[i] += entries[positions[i]]


@cache
def _compiled() -> Loop | None:
    """The loop compiled by numba; None where it is not installed.

    No fast maths: re-ordered sums would make results depend on the processor.
    """
    try:
        import numba
    except ImportError:
        return None
    try:
        loop = numba.njit(nogil=True, cache=True)(_plain_loop)
    except RuntimeError:  # no directory that it may keep the compiled code in
        loop = numba.njit(nogil=True)(_plain_loop)
    return cast(Loop, loop)
