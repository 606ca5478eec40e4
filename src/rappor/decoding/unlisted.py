"""The law of unlisted mass on a bit: strings that no candidate explains (robust path).

Residual = B + noise, where B >= 0 is what unlisted strings put on a bit and the noise is normal
with known variance. The law of B is estimated without assuming a shape (the non-parametric maximum
likelihood of Kiefer and Wolfowitz, by EM on a grid). The best score of a bit is then
ψ = (residual - E[B | residual]) / variance: a bit that a heavy missing string has lifted keeps its
noise and loses its lift.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rappor.typing import FloatArray

_AT_ONCE = 1 << 14  # residuals worked on at a time
_MIN_WEIGHT = 1e-12
_FAR_POINTS = 500
_LEARN_FROM = 1 << 15  # residuals that the law is learnt from


@dataclass(frozen=True, slots=True, eq=False)
class UnlistedLaw:
    """Probabilities on a grid of shares."""

    grid: FloatArray = field(repr=False)
    weight: FloatArray = field(repr=False)

    def posterior_mean(self, residual: FloatArray, variance: FloatArray) -> FloatArray:
        """E[B | residual] for each residual; all arrays are flat."""
        mean = np.empty_like(residual)
        for start in range(0, len(residual), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            chance = _likelihood(residual[part], variance[part], self.grid) * self.weight
            mean[part] = (chance @ self.grid) / chance.sum(axis=1)
        return mean

    def evidence(self, residual: FloatArray, variance: FloatArray, lift: float) -> FloatArray:
        """Log f(residual - lift) - log f(residual): how much better a lifted bit explains it.

        The best test for a string that lifts its bits by `lift`, unlike the score, which is best
        for the smallest lifts only and takes a larger one for unlisted mass.
        """
        return self._log_density(residual - lift, variance) - self._log_density(residual, variance)

    def _log_density(self, residual: FloatArray, variance: FloatArray) -> FloatArray:
        found = np.empty_like(residual)
        for start in range(0, len(residual), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            exponent = (residual[part, None] - self.grid) ** 2
            exponent *= (-0.5 / variance[part])[:, None]
            highest = exponent.max(axis=1)
            found[part] = np.log(np.exp(exponent - highest[:, None]) @ self.weight) + highest
        return found

    def information(self, variance: float) -> float:
        """Fisher information on a shift of a residual with this noise: E[ψ²]."""
        nodes, shares = np.polynomial.hermite_e.hermegauss(21)  # of the noise around each mass
        points = (self.grid[:, None] + np.sqrt(variance) * nodes).ravel()
        mean = self.posterior_mean(points, np.full(len(points), variance))
        square = ((points - mean) ** 2 / variance**2).reshape(len(self.grid), -1)
        return float(self.weight @ square @ shares / shares.sum())


def learn(
    residual: FloatArray,
    variance: FloatArray,
    centre: float,
    spread: float,
    before: UnlistedLaw | None = None,
    rounds: int = 60,
) -> UnlistedLaw:
    """The law of B from residuals, starting at a normal one or at an earlier estimate.

    Args:
        residual: shares that candidates leave unexplained, flat.
        variance: their noise.
        centre: where to start.
        spread: the variance to start with.
        before: an earlier estimate, used where its grid still fits.
        rounds: EM steps.
    """
    if len(residual) > _LEARN_FROM:
        every = -(-len(residual) // _LEARN_FROM)
        residual, variance = residual[::every], variance[::every]
    sd = float(np.sqrt(variance.min()))
    if before is not None and before.grid[-1] >= float(residual.max()) - 3 * sd:
        grid, weight = before.grid, before.weight
    else:
        grid = _grid(residual, sd)
        weight = np.exp(-0.5 * (grid - centre) ** 2 / max(spread, (0.3 * sd) ** 2))
        # A little everywhere: EM cannot raise what starts at nothing.
        weight = 0.98 * weight / max(weight.sum(), 1e-300) + 0.02 / len(grid)
    likelihood = _likelihood(residual, variance, grid)
    for _ in range(rounds):
        total = likelihood @ weight
        weight = weight * ((1.0 / total) @ likelihood) / len(residual)
        weight = np.maximum(weight, _MIN_WEIGHT)  # no residual may become impossible
    return UnlistedLaw(grid, weight / weight.sum())


def _grid(residual: FloatArray, sd: float) -> FloatArray:
    """From 0 on in steps below the noise; further out where there are residuals."""
    highest = max(float(residual.max()), sd)
    near = np.arange(0.0, min(highest, 8 * sd) + sd / 2, sd / 2.5)
    far = np.unique(residual[residual > near[-1]])
    if len(far) > _FAR_POINTS:
        far = np.quantile(far, np.linspace(0.0, 1.0, _FAR_POINTS))
    grid, last = list(near), float(near[-1])
    for point in far:
        if point >= last + sd / 2.5:
            last = float(point)
            grid.append(last)
    return np.array(grid)


def _likelihood(residual: FloatArray, variance: FloatArray, grid: FloatArray) -> FloatArray:
    exponent = (residual[:, None] - grid) ** 2
    exponent *= (-0.5 / variance)[:, None]
    exponent -= exponent.max(axis=1, keepdims=True)
    result: FloatArray = np.exp(exponent, out=exponent)
    return result
