"""Shrunken estimates of candidates that are not fitted: what each probably holds (empirical Bayes).

Strings too rare to be fitted still lift bits, and to a test of another string that is noise. Their
shares come from a common law, which is estimated from all of them together without assuming a shape
(non-parametric maximum likelihood); the posterior mean of each is taken off the bits before any
other is tested (docs/theory/decoding.md, "Taking the others off").
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rappor.decoding.fit import Fit, Others, least_squares
from rappor.decoding.search import ALL_AT_ONCE, Scores, Search
from rappor.typing import FloatArray

_BIN = 0.05  # standard errors
_STEP = 0.2
_ROUNDS = 200
_LOWEST, _HIGHEST = -8.0, 12.0
_SETTLING = 3  # rounds in which shrunken shares and residuals settle
_MIN_CANDIDATES = 20  # that their common law can be learnt from
_SMALL = 0.1  # of the noise: what others may add to it and mean nothing, as for τ²
_TAKEN = 1.5  # what others really take of a candidate's noise, relative to their degrees of freedom
_NEGLIGIBLE = 0.02  # standard errors of a shrunken share that is left out


def test_without_others(search: Search, fit: Fit, scores: Scores) -> tuple[Fit, Scores]:
    """A plain fit, its candidates tested once more with all others taken off the bits.

    Estimates stay those of the fit; its scale allows for what the others probably add to the noise
    of bits. Where random placement says too little, or among so few or so many candidates that
    their law cannot be learnt or hardly matters, members are tested left out and that is all.
    """
    outside = scores.testable.copy()
    outside[list(fit.active)] = False
    few, many = int(outside.sum()) < _MIN_CANDIDATES, len(search.design) > ALL_AT_ONCE
    if few or many or not search.use_design:
        return fit, search.leave_one_out(fit, scores)
    error, share = np.sqrt(fit.scale / scores.information), scores.share
    off = np.zeros(len(search.design))
    for step in range(_SETTLING):
        shares = _shrunken_shares(share, error, outside)
        off = shares.share if not step else (off + shares.share) / 2  # or they would swing
        shares = shares._replace(share=off)
        others = Others(search.design.scatter(shares.share), shares.freedom)
        again = least_squares(search.seen, fit.columns, fit.active, search.level, others)
        # What the others explain is no longer noise: bits may count for more than in the fit.
        gain = float(again.information.sum() / fit.information.sum())
        information, typical = scores.information * gain, scores.typical * gain
        share = search.gather(again.score) / information + shares.share
        error = np.sqrt(1.0 / information)
    # What was taken off for a candidate itself was put back, but for what the others would have
    # taken of it if it had not been among them.
    taken = min(_TAKEN * shares.freedom / search.seen.rows, 0.5)
    itself = np.divide(shares.share, share, out=np.zeros_like(share), where=share > 0)
    kept = 1.0 - taken * np.clip(itself, 0.0, 1.0)
    law = search.null(again, again.score)
    sums = (share * information - law.centre) * np.sqrt(typical / information) * kept
    p_design = ndtr(-law.deviates(law.centre + sums))
    for place, column in enumerate(fit.active):
        _, tail = search.left_out_plainly(again, place, typical, taken)
        p_design[column] = ndtr(-tail)
    # Independent shares s lift bits by (h/k) Σ s on average, with the variance (h/k) Σ s².
    noise = float(fit.variance[fit.information > 0].mean())
    added = search.seen.expected * shares.square
    added = added if added > _SMALL * noise else 0.0
    scale = max(fit.scale, (noise + added) / (noise + fit.extra))
    return replace(fit, scale=scale), replace(scores, p_design=p_design, by_design=True)


class ShrunkenShares(NamedTuple):
    """What candidates outside the fit probably hold.

    Attributes:
        share: of each candidate; 0 far below its standard error: together they lift all bits alike.
        freedom: the degrees of freedom that they take.
        square: the expected sum of their squares.
    """

    share: FloatArray
    freedom: float
    square: float


def _shrunken_shares(
    share: FloatArray, error: FloatArray, outside: NDArray[np.bool_]
) -> ShrunkenShares:
    """Shrink the shares of candidates outside the fit towards what they have in common."""
    posterior = shrink((share / error)[outside])
    mean = np.zeros(len(outside))
    mean[outside] = posterior.mean * error[outside]
    square = (posterior.mean**2 + posterior.slope) * error[outside] ** 2
    kept = np.where(mean > _NEGLIGIBLE * error, mean, 0.0)
    return ShrunkenShares(kept, float(posterior.slope.sum()), float(square.sum()))


class Shrunken(NamedTuple):
    """Posterior means in standard errors, and how much each follows its own estimate (0 to 1)."""

    mean: FloatArray
    slope: FloatArray


def shrink(z: FloatArray) -> Shrunken:
    """E[μ | z] for every z, where z is normal around μ >= 0 and the law of the μ is unknown.

    The law has a point at 0, for candidates that nobody holds.

    >>> rng = np.random.default_rng(1)
    >>> z = np.concatenate([rng.normal(0, 1, 900), rng.normal(4, 1, 100)])
    >>> shrink(np.append(z, [1.0, 4.0])).mean[-2:].round(1).tolist()
    [0.0, 3.9]
    """
    grid = np.arange(0.0, _HIGHEST + _STEP, _STEP)
    edges = np.arange(_LOWEST, _HIGHEST + _BIN, _BIN)
    middle = (edges[1:] + edges[:-1]) / 2
    counts = np.histogram(np.clip(z, _LOWEST, _HIGHEST - _BIN / 2), edges)[0].astype(np.float64)
    likelihood = np.exp(-0.5 * (middle[:, None] - grid) ** 2)
    used = counts > 0
    weight = np.full(len(grid), 0.5 / (len(grid) - 1))
    weight[0] = 0.5
    rows, share = likelihood[used], counts[used] / counts.sum()
    for _ in range(_ROUNDS):
        weight = weight * ((share / (rows @ weight)) @ rows)
    weight = weight / weight.sum()
    density = likelihood @ weight
    mean = (likelihood @ (weight * grid)) / density
    square = (likelihood @ (weight * grid**2)) / density
    return Shrunken(
        np.interp(z, middle, mean), np.clip(np.interp(z, middle, square - mean**2), 0.0, 1.0)
    )
