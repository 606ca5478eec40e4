"""Shrunken estimates of candidates: what each probably holds (empirical Bayes).

Strings too rare to be beyond doubt still lift bits, and to a test of another string that is noise.
Their shares come from a common law, which is estimated from all of them together without assuming a
shape (non-parametric maximum likelihood); the posterior mean of each is taken off the bits before
any other is tested (docs/theory/decoding.md, "Taking the others off").
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rappor.decoding.fit import Fit, Others, least_squares, robust
from rappor.decoding.search import ALL_AT_ONCE, BEYOND_DOUBT, MIN_INFORMATION, Scores, Search
from rappor.typing import FloatArray

_BIN = 0.05  # standard errors
_STEP = 0.2
_LOWEST, _HIGHEST = -8.0, 12.0
_FIRST_ROUNDS, _ROUNDS = 200, 40  # of EM, from scratch and from an earlier law
_SETTLING = 8  # rounds in which shrunken shares and residuals settle
_SETTLED = 0.1  # standard errors
_UNSETTLED = 1.0  # standard errors: shares still swing
_PART_WAY = 0.6  # what a round moves shares by, or they would swing
_MIN_CANDIDATES = 20  # that their common law can be learnt from
_MAX_TAKEN = 0.5
_SMALL = 0.1  # of the noise: what others may add to it and mean nothing, as for τ²
_NEGLIGIBLE = 0.02  # standard errors of a shrunken share that is left out
_NEAR = 1.5  # the z from which a p-value matters
_OWN_LAW = 3.0  # the z from which a candidate's own share counts in its null law


def test_without_others(search: Search, fit: Fit, scores: Scores) -> tuple[Fit, Scores]:
    """A fit, its candidates tested once more with all others taken off the bits.

    Estimates stay those of the fit; the scale of a plain one allows for what others probably add to
    the noise of bits. Where random placement says too little, among so few or so many candidates
    that their law cannot be learnt or hardly matters, or where shares do not settle, members are
    tested left out and that is all.
    """
    outside = scores.testable.copy()
    outside[list(fit.active)] = False
    few, many = int(outside.sum()) < _MIN_CANDIDATES, len(search.design) > ALL_AT_ONCE
    rest = None if few or many or not search.use_design else _settle(search, fit, scores)
    if rest is None:
        return fit, search.leave_one_out(fit, scores)
    scores = search.leave_one_out(fit, scores, rest.fit.active)
    p_design = np.where(rest.open, _p_values(search, rest), scores.p_design)
    if fit.law is None:
        # Independent shares s lift bits by (h/k) Σ s on average, with the variance (h/k) Σ s².
        noise = float(fit.variance[fit.information > 0].mean())
        added = search.seen.expected * float(rest.square[outside].sum())
        added = added if added > _SMALL * noise else 0.0
        fit = replace(fit, scale=max(fit.scale, (noise + added) / (noise + fit.extra)))
    return fit, replace(scores, p_design=p_design, by_design=True)


class Rest(NamedTuple):
    """What is left of the bits after candidates in doubt were taken off; arrays of shape (M,).

    Attributes:
        fit: of the members beyond doubt, to what is left.
        open: the candidates in doubt: all others that can be tested.
        share: what was taken off for each.
        square: the expected square of its share.
        z: its estimate with its own share put back, in standard errors.
        back: what its bits get back when it is tested.
        information: on it.
        typical: the information on a candidate with ordinary bits.
    """

    fit: Fit
    open: NDArray[np.bool_]
    share: FloatArray
    square: FloatArray
    z: FloatArray
    back: FloatArray
    information: FloatArray
    typical: float


def _settle(search: Search, fit: Fit, scores: Scores) -> Rest | None:
    """Shrink shares and take them off the bits in turn until both settle; None if they do not.

    A candidate's own estimate is what its bits show after the others were taken off. It was among
    the candidates, so they took less of it than they would have without it: `taken` of its share,
    the degrees of freedom that shrunken shares have of all that bits have (approximate message
    passing calls this the Onsager term).
    """
    seen, design = search.seen, search.design
    active = np.array(fit.active, np.intp)
    beyond = scores.z[active] > BEYOND_DOUBT
    columns, strong = fit.columns[:, beyond], tuple(int(column) for column in active[beyond])
    is_open = scores.testable.copy()
    is_open[list(strong)] = False
    share = np.zeros(len(design))
    share[active[~beyond]] = np.maximum(fit.share[~beyond], 0.0)
    freedom, weight = float((~beyond).sum()), None
    available = seen.rows - int(seen.live.sum())  # a cohort's mean says nothing about any string
    again, ratio, change = replace(fit, share=fit.share[beyond]), np.zeros(0), np.inf
    for step in range(_SETTLING):
        others = Others(design.scatter(share), freedom)
        plain = least_squares(seen, columns, strong, search.level, others)
        if fit.law is None:
            again = plain
        else:
            start = replace(plain, share=again.share)
            again = robust(seen, start, again.law, steps=3, others=others.share)
        pull, own = search.pull_and_information(again)
        if not step:
            left = search.projected(again, pull + share * own, own)
            ratio = np.maximum(left / np.maximum(own, 1e-300), MIN_INFORMATION)
        information = np.maximum(own * ratio, 1e-300)
        typical = float(information[is_open].mean())
        taken = min(freedom / available, _MAX_TAKEN)
        spread = search.null(again, again.score).sd
        if not spread > 0:  # bits that are all alike say nothing
            return None
        error = spread / ((1 - taken) * np.sqrt(information * typical))
        z = (share + pull / (information * (1 - taken))) / error
        shrunken = shrink(z[is_open], weight)
        weight = shrunken.weight
        mean, square = np.zeros(len(design)), np.zeros(len(design))
        mean[is_open] = shrunken.mean * error[is_open]
        square[is_open] = (shrunken.mean**2 + shrunken.slope) * error[is_open] ** 2
        change = float((np.abs(mean - share) / error).max())
        if change < _SETTLED or step == _SETTLING - 1:
            break
        share = share + _PART_WAY * (mean - share)
        share[share < _NEGLIGIBLE * error] = 0.0  # together they lift all bits alike
        freedom += _PART_WAY * (float(shrunken.slope.sum()) - freedom)
    if change > _UNSETTLED:
        return None
    back = share * (1 - taken) * ratio
    return Rest(again, is_open, share, square, z, back, information, typical)


def _p_values(search: Search, rest: Rest) -> FloatArray:
    """By random placement, each candidate's own share put back on its bits."""
    fit = rest.fit
    pull, own = search.pull_and_information(fit)
    sums = (pull if fit.law is None else search.gather(fit.evidence)) + own * rest.back
    if fit.law is not None:  # where evidence is no straight line, and it matters
        near = np.flatnonzero(rest.open & (rest.z > _NEAR))
        columns = search.design.columns(near)
        which = np.repeat(np.arange(len(near)), np.diff(columns.indptr))
        evidence = fit.evidence_if(columns.indices, rest.back[near][which])
        sums[near] = np.bincount(which, evidence, minlength=len(near))
    unit = np.sqrt(rest.typical / rest.information)  # as the spread of a typical candidate
    law = search.null(fit, fit.evidence)
    deviates = law.deviates(law.centre + (sums - law.centre) * unit)
    for column in np.flatnonzero(rest.open & (rest.z > _OWN_LAW)):
        bits = search.design.columns([column]).indices
        table = fit.evidence_with(bits, float(rest.back[column]))
        total = (float(table[bits].sum()) - law.centre) * float(unit[column])
        own_law = search.null(fit, table)
        deviates[column] = own_law.deviate(own_law.centre + total)
    return np.asarray(ndtr(-deviates))


class Shrunken(NamedTuple):
    """Posterior means in standard errors.

    Attributes:
        mean: E[μ | z].
        slope: how much each follows its own estimate, 0 to 1; also its variance.
        weight: the law of the μ, on a grid.
    """

    mean: FloatArray
    slope: FloatArray
    weight: FloatArray


def shrink(z: FloatArray, before: FloatArray | None = None) -> Shrunken:
    """E[μ | z] for every z, where z is normal around μ >= 0 and the law of the μ is unknown.

    The law has a point at 0, for candidates that nobody holds. What lies beyond its grid is not
    shrunken. `before` is an earlier law to start at.

    >>> rng = np.random.default_rng(1)
    >>> z = np.concatenate([rng.normal(0, 1, 900), rng.normal(4, 1, 100)])
    >>> shrink(np.append(z, [1.0, 4.0, 20.0])).mean[-3:].round(1).tolist()
    [0.0, 3.9, 20.0]
    """
    grid = np.arange(0.0, _HIGHEST + _STEP, _STEP)
    edges = np.arange(_LOWEST, _HIGHEST + _BIN, _BIN)
    middle = (edges[1:] + edges[:-1]) / 2
    counts = np.histogram(np.clip(z, _LOWEST, _HIGHEST - _BIN / 2), edges)[0].astype(np.float64)
    likelihood = np.exp(-0.5 * (middle[:, None] - grid) ** 2)
    used = counts > 0
    if before is None:
        weight = np.full(len(grid), 0.5 / (len(grid) - 1))
        weight[0] = 0.5
    else:
        weight = before
    rows, share = likelihood[used], counts[used] / counts.sum()
    for _ in range(_FIRST_ROUNDS if before is None else _ROUNDS):
        weight = weight * ((share / (rows @ weight)) @ rows)
    weight = weight / weight.sum()
    density = likelihood @ weight
    mean = (likelihood @ (weight * grid)) / density
    square = (likelihood @ (weight * grid**2)) / density
    far = z > _HIGHEST - 3.0
    slope = np.clip(np.interp(z, middle, square - mean**2), 0.0, 1.0)
    return Shrunken(np.where(far, z, np.interp(z, middle, mean)), np.where(far, 1.0, slope), weight)
