"""The evidence in a bit's count of ones, and the law of its sum (docs/theory/epsilon-n.md).

In n reports of one value, c ones of a bit have the probability M1(c) if B' has the bit and M0(c) if
not, both binomial. With a = f/2, the odds of the true bit change by

    L(c) = [(1-a) M1(c) + a M0(c)] / [a M1(c) + (1-a) M0(c)].

Attackers add ln L(c) over bits, as whole numbers: scores are rounded to a fine grid, so that the
law of a sum is an exact convolution, and ties in the formula are ties in a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.signal import fftconvolve
from scipy.stats import binom

from rappor.mechanism.prr import flip_probability
from rappor.params import Params
from rappor.typing import FloatArray, IntArray

GRID = 2**18  # points of the law of a sum: rounding costs far less than a simulation's error
MAX_REPORTS = 10**6  # a bit's table has one entry for each count
_CERTAIN = 50.0  # evidence that would be infinite counts as e^50
_WIDTH = 12.0  # standard deviations on either side; beyond lies less than 1e-30


class Counted(NamedTuple):
    """ln P(c ones in n reports), shape (n+1,): given B' has the bit, and given it has not."""

    if_set: FloatArray
    if_clear: FloatArray


def counted(params: Params, reports: int) -> Counted:
    """Logarithms of M1(c) and M0(c) for c = 0..n."""
    every = np.arange(reports + 1)
    return Counted(
        np.asarray(binom.logpmf(every, reports, params.q), np.float64),
        np.asarray(binom.logpmf(every, reports, params.p), np.float64),
    )


def mixed(first: FloatArray, second: FloatArray, weight: float) -> FloatArray:
    """Logarithm of w e^first + (1-w) e^second, also if one of them is impossible."""
    with np.errstate(divide="ignore"):
        weighed = np.logaddexp(np.log(weight) + first, np.log1p(-weight) + second)
    return np.asarray(weighed, np.float64)


def count_laws(params: Params, reports: int) -> tuple[FloatArray, FloatArray]:
    """P(c ones) for a true bit that is 1, and for one that is 0; each adds up to 1.

    >>> one, zero = count_laws(Params.preset("windows"), 1)
    >>> one.round(4).tolist(), zero.round(4).tolist()
    ([0.3125, 0.6875], [0.4375, 0.5625])
    """
    law = counted(params, reports)
    flip = float(flip_probability(params))
    return normalised(mixed(*law, 1 - flip)), normalised(mixed(*law, flip))


def normalised(logs: FloatArray) -> FloatArray:
    """Probabilities from their logarithms; scaled, because those of large n are rounded."""
    chances = np.exp(logs)
    return np.asarray(chances / chances.sum(), np.float64)


def evidence(params: Params, reports: int) -> FloatArray:
    """What c ones in n reports say for a true 1 against a true 0: ln L(c), c = 0..n.

    >>> evidence(Params.preset("windows"), 1).round(4).tolist()
    [-0.3365, 0.2007]
    """
    law = counted(params, reports)
    flip = float(flip_probability(params))
    return difference(mixed(*law, 1 - flip), mixed(*law, flip))


def difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """First - second of two log probabilities: 0 if both are impossible, at most 50."""
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(first) & np.isneginf(second), 0.0, first - second)
    return np.clip(gap, -_CERTAIN, _CERTAIN)


def whole_scores(
    scores: FloatArray, bits: int, grid: int = GRID, least: int = 1
) -> tuple[IntArray, float]:
    """Scores as whole numbers, and the unit; a sum over `bits` bits spans at most the grid.

    The largest score has at least `least` units, because an attacker loses small scores that are
    rounded to 0. The unit divides the largest score, so that opposite scores stay opposite.
    """
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(scores.shape, np.int64), 1.0
    steps = max(least, (grid // 2 - 1) // bits)
    return np.rint(scores / largest * steps).astype(np.int64), largest / steps


class ScorePart(NamedTuple):
    """Independent bits that follow one law: a whole-number score and its probability, each."""

    scores: IntArray
    chances: FloatArray
    bits: int


class SumLaw(NamedTuple):
    """The law of a whole-number sum: P(sum = low + i) = chances[i]."""

    low: int
    chances: FloatArray

    def above(self, threshold: float = 0.0) -> float:
        """P(sum > threshold) + P(sum = threshold)/2: a coin decides a tie."""
        values = self.low + np.arange(len(self.chances))
        found = self.chances[values > threshold].sum() + self.chances[values == threshold].sum() / 2
        return min(max(float(found), 0.0), 1.0)

    def upto(self, most: int) -> float:
        """P(sum <= most)."""
        return min(1.0, float(self.chances[: max(0, most - self.low + 1)].sum()))


def sum_law(parts: Sequence[ScorePart]) -> SumLaw:
    """The law of the sum of all bits' scores, by Fourier transform: exact up to float rounding."""
    used = [part for part in parts if part.bits]
    low = sum(int(part.scores.min()) * part.bits for part in used)
    high = sum(int(part.scores.max()) * part.bits for part in used)
    size = fft.next_fast_len(high - low + 1, real=True)
    product = np.ones(size // 2 + 1, np.complex128)
    for part in used:
        places = (part.scores - part.scores.min()).ravel()
        law = np.bincount(places, part.chances.ravel(), minlength=size)
        product *= fft.rfft(law) ** part.bits
    chances = fft.irfft(product, size)[: high - low + 1]
    return SumLaw(low, chances)


def binomial_sum(parts: Iterable[tuple[int, float]], fixed: int = 0) -> SumLaw:
    """The law of `fixed` plus a sum of binomials (n, p).

    Args:
        parts: number of trials and chance of each binomial.
        fixed: what is added to every sum.

    >>> binomial_sum([(1, 0.5), (1, 0.5)]).chances.round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    low, chances = fixed, np.ones(1)
    for trials, chance in parts:
        middle = trials * chance
        reach = _WIDTH * math.sqrt(middle * (1 - chance)) + _WIDTH**2
        first, last = max(0, math.floor(middle - reach)), min(trials, math.ceil(middle + reach))
        law = binom.pmf(np.arange(first, last + 1), trials, chance)
        low += first
        chances = np.maximum(fftconvolve(chances, law), 0.0)
    return SumLaw(low, chances / chances.sum())
