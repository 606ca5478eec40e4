"""The best possible test on the counts: a z-test that knows the share of every other string.

Its statistic is the estimate over the standard error of Tables 1 and 2, √(p*(1-p*) N/h)/(q*-p*)
(`rappor.privacy.limits.standard_error`); collisions, unknown other strings and an estimated scale
can only cost power. So its expected detections bound what a decoder, ours or another, can promise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from rappor.typing import FloatArray

_HALVINGS = 40


def power(counts: ArrayLike, error: float, level: float) -> FloatArray:
    """Chance that a count is found at a one-sided level: Φ(T/sd - z), z = Φ⁻¹(1 - level).

    Args:
        counts: true counts T, shape (n,).
        error: the standard error of a count, in reports.
        level: of one test, above 0 and below 1.

    >>> power([0.0, 10_000.0], 2806.24, 0.05 / 200).round(4).tolist()
    [0.0003, 0.533]
    """
    found: FloatArray = ndtr(np.asarray(counts, np.float64) / error + ndtri(level))
    return found


def count_for(chance: float, error: float, level: float) -> float:
    """The count that is found with a given chance: the inverse of `power`.

    >>> round(count_for(0.533, 2806.24, 0.05 / 200))
    10000
    """
    return float(error * (ndtri(chance) - ndtri(level)))


def number_found(chances: ArrayLike) -> FloatArray:
    """Distribution of how many of independent events happen (Poisson-binomial), shape (n + 1,).

    Exact: the product of the polynomials 1 - c + c x.

    >>> number_found([0.5, 0.5, 1.0]).tolist()
    [0.0, 0.25, 0.5, 0.25]
    """
    law = np.array([1.0])
    for chance in np.asarray(chances, np.float64):
        law = np.convolve(law, [1 - chance, chance])
    return law


def sd_found(chances: ArrayLike) -> float:
    """Standard deviation of how many of independent events happen, √(Σ c(1-c)).

    >>> sd_found([0.5, 0.5, 0.5, 0.5, 1.0])
    1.0
    """
    each = np.asarray(chances, np.float64)
    return float(np.sqrt((each * (1 - each)).sum()))


def discovery_level(counts: ArrayLike, error: float, candidates: int, alpha: float) -> float:
    """The level of one test that Benjamini-Hochberg settles at on average, nulls known.

    The largest t <= α with t M π0 <= α R(t), where R(t) are the detections expected at level t and
    M π0 the absent ones among M candidates. At least α/M, at which one detection passes.

    Args:
        counts: true counts of the strings that are there, shape (n,).
        error: the standard error of a count.
        candidates: M.
        alpha: the false discovery rate asked for.

    >>> counts = 1e6 * 0.0495 * 0.9505 ** np.arange(100)
    >>> round(discovery_level(counts, 2806.24, 200, 0.05), 3)
    0.025
    """
    present = np.asarray(counts, np.float64)
    absent = max(candidates - len(present), 0)

    def passes(level: float) -> bool:
        found = float(power(present, error, level).sum()) + level * absent
        return level * absent <= alpha * found

    low, high = alpha / candidates, alpha
    if passes(high) or not passes(low):
        return high if passes(high) else low
    # Power is concave in the level, so levels up to one pass and none above it does.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
