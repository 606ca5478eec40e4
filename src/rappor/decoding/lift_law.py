"""How far unlisted values lift bits: the law of lifts, and what a bit says in spite of them.

A bit is off the fit by noise, which is normal and known, and by the lift of unlisted values that
share it: nothing for most bits, a lot where a frequent value falls. Lifts are taken to follow one
law: a point at 0 and a row of normal pieces from half a standard error to the whole share, learnt
from the bits themselves without assuming a shape. Under it every bit has a likelihood of its
residual, whose derivative, the score, takes the place of residual over variance, and whose Fisher
information takes the place of 1 over variance. Nothing is cut off: a cut where lifts and noise
overlap would keep or drop a bit by where the fit happens to lie, and errors would come out too
small (`docs/associate.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rappor.typing import FloatArray

_FINEST = 0.5  # standard errors: the smallest lift apart from 0
_STEP = 0.2  # between neighbouring pieces, in the logarithm of the lift
_START = 0.9  # weight of the point at 0 that learning starts from
_PRIOR = 1.0  # bits that this start counts for
_TINY = 1e-300
_MAX_BITS = 8_192  # that a law is learnt from
_NODES = 12  # of the rule that integrates over a piece
_LEVELS = 3  # of noise at which information is computed; between them it is interpolated


@dataclass(frozen=True, slots=True, eq=False)
class LiftLaw:
    """Pieces of the law of lifts: their middles, standard deviations and weights."""

    middle: FloatArray = field(repr=False)
    width: FloatArray = field(repr=False)
    weight: FloatArray

    @classmethod
    def start(cls, noise: FloatArray) -> LiftLaw:
        """Hardly any lifts, of all sizes alike, for bits with these variances of noise."""
        finest = _FINEST * float(np.sqrt(np.median(noise)))
        steps = max(int(np.log(1.0 / finest) / _STEP), 0) + 1
        middle = np.append(0.0, finest * np.exp(_STEP * np.arange(steps)))
        return cls(middle, _STEP * middle, _even(steps + 1))

    def learnt(self, residual: FloatArray, noise: FloatArray, rounds: int) -> LiftLaw:
        """The law after some rounds of expectation and maximisation on these residuals."""
        if len(residual) > _MAX_BITS:
            some = np.linspace(0, len(residual) - 1, _MAX_BITS).astype(np.intp)
            residual, noise = residual[some], noise[some]
        log = self._log_likelihood(residual, noise)
        fit = np.exp(log - log.max(axis=1, keepdims=True))
        weight, bits = self.weight, len(fit)
        first = _even(len(weight))
        for _ in range(rounds):
            weight = weight * ((1.0 / (fit @ weight)) @ fit)
            weight = (weight + _PRIOR * first) / (bits + _PRIOR)
        return replace(self, weight=weight)

    def score(self, residual: FloatArray, noise: FloatArray) -> FloatArray:
        """Minus the derivative of the log-likelihood of each residual.

        Residual over variance if no bit is lifted:

        >>> law = LiftLaw(np.array([0.0, 1.0]), np.array([0.0, 0.2]), np.array([1.0, 0.0]))
        >>> law.score(np.array([0.3]), np.array([0.1])).round(6).tolist()
        [3.0]
        """
        log = self._log_likelihood(residual, noise) + np.log(np.maximum(self.weight, _TINY))
        chance = np.exp(log - log.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        pull = (residual[:, None] - self.middle) / (noise[:, None] + self.width**2)
        found: FloatArray = (chance * pull).sum(axis=1)
        return found

    def information(self, noise: FloatArray) -> FloatArray:
        """E[score²] of a bit with this noise: at most 1 over its variance.

        >>> law = LiftLaw(np.array([0.0, 1.0]), np.array([0.0, 0.2]), np.array([0.5, 0.5]))
        >>> (law.information(np.array([0.001, 0.1])) * [0.001, 0.1]).round(2).tolist()
        [0.51, 0.47]
        """
        root = np.sqrt(noise)
        at = np.linspace(float(root.min()), float(root.max()), _LEVELS) ** 2
        part = [self._information(level) * level for level in at.tolist()]
        return np.asarray(np.interp(root, np.sqrt(at), part) / noise)

    def variance(self) -> float:
        """The variance of a bit's lift."""
        mean = float(self.weight @ self.middle)
        return float(self.weight @ (self.middle**2 + self.width**2)) - mean**2

    def _information(self, noise: float) -> float:
        nodes, chances = np.polynomial.hermite_e.hermegauss(_NODES)
        spread = np.sqrt(noise + self.width**2)
        residual = (self.middle[:, None] + spread[:, None] * nodes).ravel()
        score = self.score(residual, np.full(len(residual), noise)).reshape(-1, _NODES)
        return float(self.weight @ (score**2 @ (chances / chances.sum())))

    def _log_likelihood(self, residual: FloatArray, noise: FloatArray) -> FloatArray:
        """Of each residual under each piece, up to a constant."""
        total = noise[:, None] + self.width**2
        found: FloatArray = -0.5 * ((residual[:, None] - self.middle) ** 2 / total + np.log(total))
        return found


def _even(pieces: int) -> FloatArray:
    """Weights with which learning starts."""
    weight: FloatArray = np.full(pieces, (1.0 - _START) / max(pieces - 1, 1))
    weight[0] = _START
    return np.asarray(weight / weight.sum())
