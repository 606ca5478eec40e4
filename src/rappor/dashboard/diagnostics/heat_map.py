"""The cells of the heat map: all of them, or means of blocks if there are too many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.typing import FloatArray

MAX_CELLS = 16_384
EXTREME = 40  # cells in the table below the heat map


class Block(NamedTuple):
    """Cohorts and bits that one square of the heat map stands for."""

    cohorts: int
    bits: int


def block_of(cohorts: int, bits: int) -> Block:
    """The smallest blocks, halving the longer side first, that make at most 16,384 cells.

    >>> block_of(128, 128), block_of(1024, 256), block_of(1024, 4096)
    (Block(cohorts=1, bits=1), Block(cohorts=8, bits=2), Block(cohorts=8, bits=32))
    """
    high = wide = 1
    while -(-cohorts // high) * -(-bits // wide) > MAX_CELLS:
        if -(-bits // wide) >= -(-cohorts // high):
            wide *= 2
        else:
            high *= 2
    return Block(high, wide)


def block_means(table: FloatArray, block: Block) -> FloatArray:
    """The mean of each block, without nan; a block of nan is nan.

    >>> block_means(np.array([[1.0, 3.0, 5.0]]), Block(1, 2)).tolist()
    [[2.0, 5.0]]
    """
    rows, columns = table.shape
    high, wide = -(-rows // block.cohorts), -(-columns // block.bits)
    padded = np.full((high * block.cohorts, wide * block.bits), np.nan)
    padded[:rows, :columns] = table
    parts = padded.reshape(high, block.cohorts, wide, block.bits)
    known = ~np.isnan(parts)
    sums = np.where(known, parts, 0.0).sum(axis=(1, 3))
    numbers = known.sum(axis=(1, 3))
    found: FloatArray = np.full(sums.shape, np.nan)
    np.divide(sums, numbers, out=found, where=numbers > 0)
    return found


def cells_document(tables: dict[str, FloatArray | None]) -> dict[str, Any]:
    """The tables for the script that draws them: rounded, flat, row by row, nan as null.

    Args:
        tables: shape (m, k) each, by name; None if there is none.
    """
    cohorts, bits = next(table.shape for table in tables.values() if table is not None)
    block = block_of(cohorts, bits)
    document: dict[str, Any] = {
        "cohorts": cohorts,
        "bits": bits,
        "block": list(block),
        "rows": -(-cohorts // block.cohorts),
        "columns": -(-bits // block.bits),
    }
    for name, table in tables.items():
        if table is None:
            document[name] = None
            continue
        means = table if block == Block(1, 1) else block_means(table, block)
        digits = 2 if name == "residuals" else 0 if block == Block(1, 1) else 1
        numbers = np.round(means, digits).ravel().tolist()
        document[name] = [None if number != number else number for number in numbers]
    return document


class Extreme(NamedTuple):
    """A cell that stands out."""

    cohort: int
    bit: int
    reports: int
    fitted: float | None
    residual: float | None


def extreme_cells(
    counts: NDArray[np.int64], fitted: FloatArray | None, residuals: FloatArray | None
) -> list[Extreme]:
    """The cells furthest from the fit, either side; without a fit, those with most reports."""
    size = counts.astype(np.float64) if residuals is None else np.abs(np.nan_to_num(residuals))
    order = np.argsort(-size.ravel(), kind="stable")[:EXTREME]
    found = []
    for place in order.tolist():
        cohort, bit = divmod(place, counts.shape[1])
        left = None if residuals is None else float(residuals[cohort, bit])
        if left is not None and left != left:
            continue
        expected = None if fitted is None else float(fitted[cohort, bit])
        found.append(Extreme(cohort, bit, int(counts[cohort, bit]), expected, left))
    return found
