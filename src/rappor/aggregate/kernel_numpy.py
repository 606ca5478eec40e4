"""The counting kernel without a compiler: the same numbers as `kernel_numba`, but slower.

A byte has 256 values, so each byte column becomes a histogram over (cohort, byte), and eight bit
counts are the product of that histogram with the bits of 0 to 255.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rappor.typing import ByteArray, IntArray

AnyInts = NDArray[np.integer]

_AT_ONCE = 2**18  # reports at once: bounds the memory for any number of reports

_BITS_OF_BYTE: IntArray = np.unpackbits(
    np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"
).astype(np.int64)


def count_rows(
    packed: ByteArray, cohorts: AnyInts, only: int, m: int
) -> tuple[IntArray, IntArray, int]:
    """Counts of packed reports.

    Args:
        packed: shape (N, B), bit i in bit i % 8 of byte i // 8.
        cohorts: shape (N,); ignored when `only` is 0 or more.
        only: the cohort of every report, or -1.
        m: cohorts.

    Returns:
        N_j, shape (m,); c_ij, shape (m, at least 8 B); the index of the first report whose cohort
        is not from 0 to m-1 (the counts then mean nothing), or -1.
    """
    row_bytes = packed.shape[1]
    totals = np.zeros(m, np.int64)
    ones = np.zeros((m, 8 * row_bytes), np.int64)
    for start in range(0, len(packed), _AT_ONCE):
        rows = packed[start : start + _AT_ONCE]
        if only >= 0:
            mine = np.full(len(rows), only, np.int64)
        else:
            mine = cohorts[start : start + _AT_ONCE].astype(np.int64)
            wrong = np.flatnonzero((mine < 0) | (mine >= m))
            if len(wrong):
                return totals, ones, start + int(wrong[0])
        totals += np.bincount(mine, minlength=m)
        keys = mine * 256
        for column in range(row_bytes):
            histogram = np.bincount(keys + rows[:, column], minlength=256 * m).reshape(m, 256)
            ones[:, 8 * column : 8 * column + 8] += histogram @ _BITS_OF_BYTE
    return totals, ones, -1
