"""Clients that never report a value twice: the paper's Windows machines (§5.3, R53).

Systematic sampling with probability proportional to share: the shares of all values are laid end to
end on a line as long as a client has reports, and a comb with one tooth a unit is dropped on it. No
value is longer than a unit, so none is hit twice, and each is hit with probability share × reports.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int32]

UNIT = 1 << 40  # the line is measured in whole numbers, so that no rounding hits a value twice
TOGETHER = 8  # clients that share an order of the values; each has its own comb
MOST_EACH = 1 << 22  # so that the line's length fits 64 bits


def distinct_values(
    shares: NDArray[np.float64], clients: int, each: int, generator: np.random.Generator
) -> Values:
    """Different values for each client, shape (clients, each), by their places in `shares`.

    Args:
        shares: adding up to 1, none above 1 / each.
        clients: how many.
        each: values of each client, at most 2^22.
        generator: where orders and combs come from.

    >>> import numpy as np
    >>> distinct_values(np.full(3, 1 / 3), 1, 3, np.random.default_rng(1)).sum()
    np.int64(3)
    """
    lengths = unit_lengths(shares, each)
    teeth = np.arange(each, dtype=np.int64) * UNIT
    values = np.empty((clients, each), np.int32)
    for start in range(0, clients, TOGETHER):
        combs = generator.integers(0, UNIT, min(TOGETHER, clients - start))
        order = generator.permutation(len(lengths))
        ends = np.cumsum(lengths[order])
        hit = np.searchsorted(ends, combs[:, None] + teeth, side="right")
        values[start : start + TOGETHER] = order[hit]
    return values


def unit_lengths(shares: NDArray[np.float64], each: int) -> NDArray[np.int64]:
    """Share × reports of each value in whole numbers, none above UNIT, adding up to each × UNIT."""
    exact = np.minimum(shares * each, 1.0) * UNIT
    lengths: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = each * UNIT - int(lengths.sum())
    while missing > 0:  # less than one unit for each value, but for the rounding of the shares
        room = np.flatnonzero((lengths < UNIT) & (shares > 0))
        if len(room) == 0:
            raise ValueError("shares do not add up to 1")
        nearest = room[np.argsort(lengths[room] - exact[room], kind="stable")][:missing]
        lengths[nearest] += 1
        missing -= len(nearest)
    if missing < 0:
        lengths[int(lengths.argmax())] += missing
    return lengths
