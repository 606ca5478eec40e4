"""Intervals that tell the same story as the verdict: only what passed a test has a lower end.

A detected string's z is a normal variable that is known to lie above the threshold c. Its interval
inverts acceptance regions of that truncated law, so that it covers 95 % of the time among detected
strings and leaves 0 as early as that allows. What was not detected has an upper
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
_ORDINARY = _FAR + 4.0  # from which intervals are z ± 1.96: those of means beyond `_FAR`
_NODES = 400
_NEWTON = 4  # steps, which leave less than 1e-9
_SMALLEST = 3.0  # mean, in standard errors, up to which regions are moved by 1/μ
_BANDWIDTH = 0.8  # standard errors around the threshold in which `selection_excess` counts
_MIN_FOR_SLOPE = 20  # rows from which their covariance with their tests can be told
_KERNEL_NODES = 8  # of the integral over it, which leave less than 1e-9


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
    [[1.74, 4.53, 3.0, 0.0], [0.0, 2.69, 0.0, 0.0], [5.1, 6.88, 4.96, 1.65]]
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
    chosen = np.flatnonzero(detected & (z - cut < _ORDINARY))
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


class _Region(NamedTuple):
    """Where z lies with 95 % chance, given that it is above the threshold."""

    low: FloatArray
    high: FloatArray


def _region(mean: FloatArray, threshold: FloatArray) -> _Region:
    """The acceptance region of each mean μ, with 95 % of the law of Z > c, exactly.

    Symmetric around μ + s, where s falls from 1/μ at the threshold to 0 at `_FAR` above it; or from
    the threshold up, if the symmetric one would begin below.
    """
    near = np.clip(1.0 - (mean - threshold) / _FAR, 0.0, 1.0)
    shift = near / np.maximum(mean, _SMALLEST)
    chance = LEVEL * ndtr(mean - threshold)
    half = ndtri((1 + chance) / 2)
    for _ in range(_NEWTON):  # P(|Z - μ - s| < d) = .95 P(Z > c)
        missing = chance - ndtr(shift + half) + ndtr(shift - half)
        density = np.exp(-0.5 * (half + shift) ** 2) + np.exp(-0.5 * (half - shift) ** 2)
        half = half + missing * np.sqrt(2 * np.pi) / density
    low, high = mean + shift - half, mean + shift + half
    one_sided = mean - ndtri_exp(np.log(1 - LEVEL) + log_ndtr(mean - threshold))
    is_whole = low >= threshold
    return _Region(np.where(is_whole, low, threshold), np.where(is_whole, high, one_sided))


def selected_lower(z: FloatArray, threshold: FloatArray) -> FloatArray:
    """The smallest mean μ >= 0 whose region above the threshold holds z."""
    low, high = np.zeros_like(z), z.copy()
    for _ in range(60):
        middle = (low + high) / 2
        reached = _region(middle, threshold).high >= z
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle)
    return np.where(_region(np.zeros_like(z), threshold).high >= z, 0.0, high)


def selected_upper(z: FloatArray, threshold: FloatArray) -> FloatArray:
    """The largest mean μ whose region above the threshold holds z."""
    low, high = z.copy(), z + 4.0
    for _ in range(60):
        middle = (low + high) / 2
        beyond = _region(middle, threshold).low > z
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, middle)
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


def selection_excess(
    z: FloatArray, deviate: FloatArray, threshold: float, absent: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """What selection adds to Σ z over those that passed a test, and its variance, for each z.

    A string passes if its deviate D is above the threshold c. Then E[(Z - μ) 1(D > c)] is the
    density of D at c, times the covariance of Z and D, which is 1 where the test is z itself: so
    all deviates near c, on either side, say together how much the sum is too large, and nothing
    has to be known of any μ. The density is estimated by Epanechnikov's kernel. A kernel smears,
    and the density of absent strings falls so steeply that it doubles their part (c = 3.9); but
    theirs is known, φ, and what the kernel adds to it is taken off. The number of deviates near c
    varies by itself, and c with it: one more variance for each of them.

    Args:
        z: estimates in standard errors.
        deviate: those of the tests, standard normal where nobody holds the string.
        threshold: c, what a deviate has to pass.
        absent: the chance of each that nobody holds it, such as the share of those.

    Returns:
        Each z's part of the estimate, and of the estimate's variance. Only sums mean something.
    """
    kernel = _kernel(deviate - threshold)
    place, weight = np.polynomial.legendre.leggauss(_KERNEL_NODES)
    step = _BANDWIDTH * place
    smeared = _BANDWIDTH * float((weight * _kernel(step)) @ _density(threshold + step))
    added = kernel - absent * (smeared - float(_density(np.float64(threshold))))
    together = _slope(z, deviate, threshold)
    return together * added, together**2 * kernel**2 + together * kernel


def _slope(z: FloatArray, deviate: FloatArray, threshold: float) -> float:
    """The covariance of z and the deviate of its test, from all that are not far above c.

    Where the variance of z is 1, that is the slope of the deviate on z.
    """
    usual = (np.abs(deviate) < threshold + _BANDWIDTH) & np.isfinite(z)
    square = float((z[usual] ** 2).sum())
    if int(usual.sum()) < _MIN_FOR_SLOPE or square == 0:
        return 1.0
    return max(float(z[usual] @ deviate[usual]) / square, 0.0)


def _kernel(distance: FloatArray | np.float64) -> FloatArray:
    return np.asarray(np.maximum(1.0 - (distance / _BANDWIDTH) ** 2, 0.0) * (0.75 / _BANDWIDTH))


def _density(z: FloatArray | np.float64) -> FloatArray:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
