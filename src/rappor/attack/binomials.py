"""The law of a sum of independent binomials with different probabilities, for large numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from rappor.attack.scores import SumLaw

_WIDTH = 12.0  # standard deviations on either side; beyond lies less than 1e-30


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
