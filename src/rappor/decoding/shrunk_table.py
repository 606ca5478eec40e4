"""A joint table moved towards what all its cells have in common (empirical Bayes).

Each cell is taken to be its share under independence times a ratio, and the ratios of all cells are
taken to follow one law: a point at 0 (pairs that nobody holds), a point at 1 (pairs as frequent as
under independence) and a dense row of normal pieces from 1/20 to the largest ratio seen, at least
1000. The law is estimated from
the cells themselves, without assuming a shape; each cell becomes its posterior mean. A table of
independent fields moves to independence, one with a few strong pairs keeps them and loses the noise
of the others, and cells that are far above noise stay where they are. The sums over rows and over
columns are shrunk in the same way towards even shares first.
"""

from __future__ import annotations

import numpy as np

from rappor.typing import FloatArray

_STEP = 0.2  # between neighbouring pieces of the law, in the logarithm of the ratio
_LOWEST, _HIGHEST = 0.05, 1000.0
_ROUNDS = 100  # of expectation and maximisation; more would only sharpen the law's pieces
_TINY = 1e-12


def shrunk_table(
    share: FloatArray,
    error: FloatArray,
    expected: FloatArray,
    margin_errors: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Shares that are nowhere negative, and nearer to the truth as a whole; nan where unknown.

    Args:
        share: the estimates, shape (R, C); nan where nothing tells a cell.
        error: their standard errors.
        expected: the table with independent fields that fits best; nan where it is not known.
        margin_errors: standard errors of the shares of both fields; nan where they are not known.
    """
    known = np.isfinite(share)
    if not known.any():
        return np.full_like(share, np.nan)
    cell = np.where(known, share, 0.0)
    spread = np.where(known, error, 0.0)
    even = np.where(np.isfinite(expected), expected, cell)
    margins = []
    for axis, given in enumerate(margin_errors):
        # The sums of both tables: the one is unbiased, the other less noisy.
        total = (cell.sum(axis=1 - axis) + np.where(known, even, 0.0).sum(axis=1 - axis)) / 2
        alone = np.sqrt((spread**2).sum(axis=1 - axis))
        margins.append(_margin(total, np.where(np.isfinite(given), given, alone)))
    centre = np.outer(*margins)
    made = np.full_like(share, np.nan)
    made[known] = _posterior_mean(share[known], error[known], centre[known])
    return made


def _margin(total: FloatArray, error: FloatArray) -> FloatArray:
    """The shares of one field, shrunk towards even ones; 0 for a value without known cells."""
    known = error > 0
    made = np.zeros_like(total)
    if known.any():
        even = np.full(int(known.sum()), 1.0 / known.sum())
        made[known] = _posterior_mean(total[known], error[known], even)
    sum_of_all = float(made.sum())
    return made / sum_of_all if sum_of_all > 0 else made


def _posterior_mean(seen: FloatArray, error: FloatArray, centre: FloatArray) -> FloatArray:
    """The posterior mean of each share, at least 0: seen = centre × ratio + noise, shape (n,)."""
    base = np.maximum(centre, _TINY)
    highest = max(_HIGHEST, float((seen / base).max()))
    ratio = np.exp(np.arange(np.log(_LOWEST), np.log(highest) + _STEP, _STEP))
    ratios = np.concatenate([[0.0, 1.0], ratio])
    widths = np.concatenate([[0.0, 0.0], _STEP * ratio])
    noise = (np.maximum(error, _TINY) ** 2)[:, None]
    mean, variance = np.outer(base, ratios), np.outer(base, widths) ** 2
    away, total = seen[:, None] - mean, variance + noise
    fit = -0.5 * (away**2 / total + np.log(total))
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    law = np.full(len(ratios), 1.0 / len(ratios))
    for _ in range(_ROUNDS):
        law = law * ((1.0 / (fit @ law)) @ fit) / len(fit)
    chance = fit * law
    chance /= chance.sum(axis=1, keepdims=True)
    posterior = (chance * (mean + variance / total * away)).sum(axis=1)
    return np.asarray(np.maximum(posterior, 0.0))
