"""Intervals that tell the same story as the verdict: only what passed a test has a lower end.

A detected string's z is a normal variable that is known to lie above the threshold c. Its interval
inverts the shortest acceptance regions of that truncated law, so that it covers 95 % of the time
among detected strings and leaves 0 as early as that allows. What was not detected has an upper
limit only. docs/theory/decoding.md says what was chosen and why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from rappor.typing import FloatArray

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
Z_95 = float(-ndtri(TAIL))
_FAR = 8.0  # standard errors above the threshold from which selection does not show
_NODES = 400
_BANDWIDTH = 0.8  # standard errors around the threshold in which `selection_excess` counts


class Limits(NamedTuple):
    """Estimates that allow for selection, with 95 % limits around them."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def limits(
    raw: FloatArray,
    std_error: FloatArray,
    detected: NDArray[np.bool_],
    threshold: FloatArray | float,
    most: float,
) -> Limits:
    """Estimates and limits for a table, within 0 and `most` (all reports).

    A detected row has the estimate and interval of a variable that had to pass the threshold; its
    lower limit is 0 where only its presence is known. Any other has the lower limit 0, an upper
    limit of 97.5 %, and its raw estimate moved between them.

    Args:
        raw: unbiased estimates, such as those of least squares.
        std_error: their standard errors.
        detected: which ones passed the test.
        threshold: how many standard errors it took to pass, for all rows or for each.
        most: no count is above this.

    >>> found = limits(np.array([3.6, 5.0, 3.0, -1.0]), np.ones(4), np.arange(4) < 2, 3.5, 100.0)
    >>> [column.round(2).tolist() for column in found]
    [[1.74, 4.53, 3.0, 0.0], [0.0, 2.69, 0.0, 0.0], [5.35, 6.96, 4.96, 1.65]]
    """
    has_noise = std_error > 0
    z = np.divide(raw, std_error, out=np.zeros_like(raw), where=has_noise)
    margin = margins(z, detected, threshold)
    estimate = np.where(detected, margin.estimate * std_error, np.maximum(raw, 0.0))
    low = np.where(detected, (z - margin.low) * std_error, 0.0)  # exactly 0 where only presence is
    high = raw + margin.high * std_error
    # Near all reports the lower limit is what the upper limit of the others leaves.
    z_others = np.divide(most - raw, std_error, out=np.full_like(raw, np.inf), where=has_noise)
    near = has_noise & (z_others < _FAR)
    others = (z_others[near] + above_undetected(z_others[near])) * std_error[near]
    low[near] = np.minimum(low[near], most - others)
    for column in (low, high, estimate):
        column[~has_noise] = raw[~has_noise]
        np.clip(column, 0.0, most, out=column)
    return Limits(np.clip(estimate, low, high), low, high)


class Margins(NamedTuple):
    """How many standard errors an interval reaches below and above z, and the adjusted z."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def margins(z: FloatArray, detected: NDArray[np.bool_], threshold: FloatArray | float) -> Margins:
    """The intervals of `limits` in standard errors; `low` is meaningful for detected rows only."""
    estimate, low, high = z.copy(), np.full_like(z, Z_95), np.full_like(z, Z_95)
    cut = np.minimum(threshold, z)  # a test that is not z itself may pass what lies below
    chosen = np.flatnonzero(detected & (z - cut < _FAR))
    if len(chosen):
        here, above = z[chosen], cut[chosen]
        estimate[chosen] = selected_mean(here, above)
        low[chosen] = here - selected_lower(here, above)
        high[chosen] = selected_upper(here, above) - here
    high[~detected] = above_undetected(z[~detected])
    return Margins(estimate, low, high)


def above_undetected(z: FloatArray) -> FloatArray:
    """How far above z a 97.5 % upper limit lies, for a mean that cannot be below 0.

    The limit μ solves Φ(z-μ) = .025 Φ(z). Where z is positive that is nearly z + 1.96; it never
    falls to 0, however far below 0 the noise has carried z.

    >>> above_undetected(np.array([3.0, 0.0, -4.0])).round(3).tolist()
    [1.961, 2.241, 4.8]
    """
    z = np.asarray(z, np.float64)
    reach: FloatArray = -ndtri_exp(log_ndtr(z) + np.log(TAIL))
    return reach


def _half_width(mean: FloatArray, threshold: FloatArray) -> FloatArray:
    """D with P(|Z - μ| < d) = .95 P(Z > c): half the shortest region, if it lies above c."""
    half: FloatArray = ndtri((1 + LEVEL * ndtr(mean - threshold)) / 2)
    return half


def selected_lower(z: FloatArray, threshold: FloatArray) -> FloatArray:
    """The smallest mean μ >= 0 whose shortest 95 % region above the threshold holds z."""

    def is_above(mean: FloatArray) -> NDArray[np.bool_]:
        """Whether the upper end of the region of this mean is at least z."""
        half = _half_width(mean, threshold)
        whole = mean - half >= threshold
        tail = log_ndtr(mean - z) - log_ndtr(mean - threshold)
        found: NDArray[np.bool_] = np.where(whole, mean + half >= z, tail >= np.log(1 - LEVEL))
        return found

    low, high = np.zeros_like(z), z.copy()
    for _ in range(60):
        middle = (low + high) / 2
        reached = is_above(middle)
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle)
    return np.where(is_above(np.zeros_like(z)), 0.0, high)


def selected_upper(z: FloatArray, threshold: FloatArray) -> FloatArray:
    """The largest mean μ whose shortest 95 % region above the threshold holds z."""
    low, high = z.copy(), z + 4.0
    for _ in range(60):
        middle = (low + high) / 2
        lowest = np.maximum(middle - _half_width(middle, threshold), threshold)
        high = np.where(lowest > z, middle, high)
        low = np.where(lowest > z, low, middle)
    return low


def selected_mean(z: FloatArray, threshold: FloatArray) -> FloatArray:
    """The mean of the likelihood of μ >= 0, given z and that it had to be above the threshold.

    Far above the threshold it is z; at the threshold it is a good third of it.
    """
    share = (np.arange(_NODES) + 0.5) / _NODES
    mean = share * (z + _FAR)[:, None]
    log_weight = -0.5 * (z[:, None] - mean) ** 2 - log_ndtr(mean - threshold[:, None])
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    found: FloatArray = (weight * mean).sum(axis=1) / weight.sum(axis=1)
    return found


def selection_excess(z: FloatArray, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What selection adds to Σ z over those above the threshold c, and its variance, for each z.

    E[(Z - μ) 1(Z > c)] = φ(c - μ), which is the density of Z at c: so all z near c, on either
    side, say together how much the sum is too large, and nothing has to be known of any μ. The
    density is estimated by Epanechnikov's kernel. The number of z near c varies by itself, and c
    with it: one more variance for each of them.

    Returns:
        Each z's part of the estimate, and of the estimate's variance; both are 0 away from c.
    """
    kernel = np.maximum(1.0 - ((z - threshold) / _BANDWIDTH) ** 2, 0.0) * (0.75 / _BANDWIDTH)
    return kernel, kernel**2 + kernel
