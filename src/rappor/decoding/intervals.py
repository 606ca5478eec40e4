"""Intervals that allow for selection: only strings that passed a test are in the table.

A detected string's z is a normal variable that is known to lie above the threshold c. Its limits
are exact for that truncated law, but for an upper limit below the estimate, which is raised to it:
an interval always holds its estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from rappor.typing import FloatArray

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
Z_95 = float(-ndtri(TAIL))


def truncated_mean(z: FloatArray, threshold: float, tail: float) -> FloatArray:
    """The mean μ for which P(Z >= z | Z >= threshold) = tail; -inf if there is none.

    Far above the threshold it is z plus the normal quantile of `tail`.

    >>> truncated_mean(np.array([5.0, 12.0]), 3.5, 0.025).round(2).tolist()
    [2.16, 10.04]
    """
    z = np.asarray(z, np.float64)
    above = np.minimum(threshold, z)
    low, high = z - 40.0, z + 5.0
    for _ in range(60):
        middle = (low + high) / 2
        too_high = log_ndtr(middle - z) - log_ndtr(middle - above) > np.log(tail)
        high = np.where(too_high, middle, high)
        low = np.where(too_high, low, middle)
    return np.where(low < z - 39.9, -np.inf, low)


def intervals(
    estimate: FloatArray,
    std_error: FloatArray,
    detected: NDArray[np.bool_],
    threshold: float,
    most: float,
) -> tuple[FloatArray, FloatArray]:
    """95 % limits of every estimate, within 0 and `most` (all reports).

    Args:
        estimate: counts.
        std_error: their standard errors.
        detected: which ones passed the test.
        threshold: how many standard errors it took to pass.
        most: no count is above this.
    """
    low = estimate - Z_95 * std_error
    high = estimate + Z_95 * std_error
    chosen = np.flatnonzero(detected & (std_error > 0))
    if len(chosen):
        error = std_error[chosen]
        z = estimate[chosen] / error
        low[chosen] = truncated_mean(z, threshold, TAIL) * error
        high[chosen] = np.maximum(truncated_mean(z, threshold, 1 - TAIL), z) * error
    return np.clip(low, 0.0, most), np.clip(high, 0.0, most)


def without_selection(z: FloatArray, threshold: float) -> FloatArray:
    """The mean μ >= 0 whose truncated law has its mean at z: z less what selection added to it.

    Solves μ + φ(c-μ)/Φ(μ-c) = z, the likelihood equation of a normal variable known to be above c.

    >>> without_selection(np.array([3.6, 5.0, 12.0]), 3.5).round(2).tolist()
    [0.0, 4.81, 12.0]
    """
    low, high = np.full_like(z, -10.0), z.copy()
    for _ in range(60):
        middle = (low + high) / 2
        hazard = np.exp(-0.5 * (threshold - middle) ** 2 - log_ndtr(middle - threshold))
        above = middle + hazard / np.sqrt(2 * np.pi) > z
        high = np.where(above, middle, high)
        low = np.where(above, low, middle)
    return np.maximum(low, 0.0)
