"""How many strings of a population are detected (§4.2): power summed over its shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from rappor.decoding.significance import NULLS_ABOVE
from rappor.planning.power import Detector
from rappor.simulate.populations import Population
from rappor.typing import FloatArray

_ROUNDS = 200
_HIGHEST_LEVEL = 0.5  # of p-values that may be detected


class ExpectedDetections(NamedTuple):
    """How many strings of the population to expect, at each kind of error rate."""

    family_wise: float
    fdr: float
    present: int


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedCrowd:
    """The shares of a population that are on the candidate list, largest first.

    Attributes:
        listed: shares of the candidates that clients hold.
        unlisted_squares: Σ s² over unlisted strings.
    """

    listed: FloatArray = field(repr=False)
    unlisted_squares: float
    _squares_below: FloatArray = field(repr=False)

    @classmethod
    def of(cls, population: Population) -> ExpectedCrowd:
        """The crowd of a population."""
        on_list = set(population.candidates)
        pairs = list(zip(population.strings, population.shares, strict=True))
        shares = np.sort([share for name, share in pairs if name in on_list and share > 0])[::-1]
        squares = math.fsum(share * share for name, share in pairs if name not in on_list)
        below = np.append(np.cumsum(shares[::-1] ** 2)[::-1], 0.0)
        return cls(shares.astype(np.float64), squares, below)

    def around(self, detector: Detector) -> Detector:
        """The detector amid this population: detected strings are fitted, others add unrest."""
        for _ in range(3):
            limit = detector.threshold() * detector.absent()
            fitted = int(np.searchsorted(-self.listed, -limit, side="right"))
            unrest = self.unlisted_squares + float(self._squares_below[fitted])
            if (fitted, unrest) == (detector.fitted, detector.unrest):
                break
            detector = replace(detector, fitted=float(fitted), unrest=unrest)
        return detector


def expected(
    detector: Detector, crowd: ExpectedCrowd, candidates: int, alpha: float
) -> ExpectedDetections:
    """The number of detections to expect, at family-wise error and false discovery rate α.

    The Benjamini-Hochberg level t solves t = α R(t) / (π0 M), R(t) the expected rejections at t and
    π0 M the candidates that look absent (Storey).
    """
    shares = crowd.listed
    absent = detector.absent()
    present = np.array([detector.present(float(share)) for share in shares])
    widened = detector.threshold() / detector.critical

    def power(deviate: float) -> FloatArray:
        if detector.is_binomial:
            ones = detector.needed_ones(deviate)
            return np.array([detector.binomial_power(float(share), ones) for share in shares])
        found: FloatArray = ndtr((shares - deviate * widened * absent) / present)
        return found

    nobody = max(candidates - len(shares), 0)
    above = 1.0 - NULLS_ABOVE
    missed = float((1.0 - power(float(-ndtri(NULLS_ABOVE)))).sum())
    null = (nobody * above + missed) / above
    level = alpha
    for _ in range(_ROUNDS):
        rejected = float(power(float(-ndtri(level))).sum()) + nobody * level
        before, level = level, min(alpha * rejected / max(null, 1.0), _HIGHEST_LEVEL)
        if not abs(level - before) > 1e-9 * before or level == 0:
            break
    family_wise = float(power(detector.critical).sum())
    fdr = float(power(float(-ndtri(level))).sum()) if level > 0 else 0.0
    return ExpectedDetections(family_wise, max(fdr, family_wise), len(shares))
