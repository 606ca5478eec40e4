"""Shrunken estimates of candidates that are not fitted: what each probably holds (empirical Bayes).

Strings too rare to be fitted still lift bits, and to a test of another string that is noise. Their
shares come from a common law, which is estimated from all of them together without assuming a shape
(non-parametric maximum likelihood); the posterior mean of each is taken off the bits before any
other is tested (docs/theory/decoding.md, "Taking the others off").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rappor.decoding.fit import Fit, Others, least_squares, refit
from rappor.decoding.options import Correction
from rappor.decoding.search import ALL_AT_ONCE, MIN_INFORMATION, Scores, Search
from rappor.decoding.significance import adjust, cut_off
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_BIN = 0.05  # standard errors
_STEP = 0.2
_ROUNDS = 200
_LOWEST, _HIGHEST = -8.0, 12.0
_SETTLING = 3  # rounds in which shrunken shares and residuals settle
_MIN_CANDIDATES = 20  # that their common law can be learnt from
_SETTLING_AGAIN = 2  # the same where one candidate was taken out
_BEYOND_DOUBT = 1e-3  # of what Bonferroni asks for: a p-value that no other table would change
_NEAR = 1.5  # a factor on p-values: a table without a candidate moves its own by a fifth at most
_PROMISING = 10.0  # times what one more candidate needs to be fitted: may take a member's place
_NEGLIGIBLE = 0.02  # standard errors of a shrunken share that is left out


def score_without_others(
    search: Search, fit: Fit, scores: Scores, alpha: float
) -> tuple[Fit, Scores]:
    """A plain fit, its candidates tested once more with all others taken off the bits.

    Estimates stay those of the fit; its scale allows for what bits vary beyond noise. Where random
    placement says too little, or among so few or so many candidates that their law cannot be learnt
    or hardly matters, members are tested left out and that is all.
    """
    outside = scores.testable.copy()
    outside[list(fit.active)] = False
    few, many = int(outside.sum()) < _MIN_CANDIDATES, len(search.design) > ALL_AT_ONCE
    if few or many or not search.use_design:
        return fit.widened(), search.leave_one_out(fit, scores)
    error, share = np.sqrt(fit.scale / scores.information), scores.share
    off = np.zeros(len(search.design))
    for step in range(_SETTLING):
        law = learn_shares((share / error)[outside])
        shares = _shrunken_shares(law, share, error, outside)
        off = shares.share if not step else (off + shares.share) / 2  # or they would swing
        others = Others(search.design.scatter(off), shares.freedom)
        again = least_squares(search.seen, fit.columns, fit.active, search.level, others)
        # What the others explain is no longer noise: bits may count for more than in the fit.
        gain = float(again.information.sum() / fit.information.sum())
        information, typical = scores.information * gain, scores.typical * gain
        share = search.gather(again.score) / information + off
        error = np.sqrt(1.0 / information)
    null = search.null(again, again.score)
    sums = (share * information - null.centre) * np.sqrt(typical / information)
    p_design = ndtr(-null.deviates(null.centre + sums))
    for place, column in enumerate(fit.active):
        p_design[column] = ndtr(-search.left_out_plainly(again, place, typical)[1])
    if doubtful := _doubtful(p_design, fit, search.correction, alpha):
        answering = np.union1d(np.flatnonzero(off), fit.active).astype(np.intp)
        columns = search.design.columns(answering, ordered=False)
        alone = _WithoutOne(
            search, fit, scores, again, law, answering, columns, off, information, typical, alpha
        )
        for column in doubtful:
            p_design[column] = alone.p_value(column)
    # Independent shares s lift bits by (h/k) Σ s on average, with the variance (h/k) Σ s².
    fit = fit.widened(added=search.seen.expected * shares.square)
    return fit, replace(scores, p_design=p_design, by_design=True)


def _one_more(candidates: int, fit: Fit, alpha: float) -> float:
    """The p-value at which one more candidate would be fitted (Benjamini-Hochberg)."""
    return alpha * (len(fit.active) + 1) / candidates


def _doubtful(p_value: FloatArray, fit: Fit, correction: Correction, alpha: float) -> list[int]:
    """Candidates whose verdict might depend on how well the others settled without them.

    Those up to about the p-value at which one more would be fitted, and those near the cut-off of
    the correction.
    """
    detected = int((adjust(p_value, correction) <= alpha).sum())
    cut = cut_off(p_value, detected, correction, alpha)
    is_open = p_value < 2 * _one_more(len(p_value), fit, alpha)
    is_open |= (p_value > cut / _NEAR) & (p_value < cut * _NEAR)
    is_open[list(fit.active)] = True
    return np.flatnonzero(is_open & (p_value > _BEYOND_DOUBT * alpha / len(p_value))).tolist()


@dataclass(frozen=True, slots=True, eq=False)
class _WithoutOne:
    """Tests of one candidate by a table that was made without it.

    The theorem asks for a table that is not computed from the candidate. So the search is repeated
    without it among those that look promising, and the others settle again; the weights of bits and
    the law of shares stay, which one candidate hardly moves.
    """

    search: Search
    fit: Fit
    scores: Scores
    settled: Fit
    law: ShareLaw
    answering: NDArray[np.intp]  # candidates with a share that was taken off, and members
    columns: csc_array  # of X, theirs
    off: FloatArray
    information: FloatArray
    typical: float
    alpha: float

    def p_value(self, column: int) -> float:
        """Its p-value by random placement."""
        active = self._active(column)
        bits = self.search.design.columns([column]).toarray()[:, 0]
        outside = ~np.isin(self.answering, [column, *active])
        information = self.information[self.answering]
        off, error = np.where(outside, self.off[self.answering], 0.0), np.sqrt(1.0 / information)
        members = self.search.design.columns(active)
        table = refit(self.search.seen, self.settled, members, active, self.columns @ off)
        for _ in range(_SETTLING_AGAIN):
            share = self.columns.T @ table.score / information + off
            step = (_shrunken_shares(self.law, share, error, outside).share - off) / 2
            off += step
            table = table.without(self.columns @ step)
        shared = table.times(table.information * bits)
        own = float(bits @ table.information)
        left = max(own - float(shared @ table.covariance @ shared), MIN_INFORMATION * own)
        null = self.search.null(table, table.score)
        above = (float(bits @ table.score) - null.centre) * float(np.sqrt(self.typical / left))
        return float(ndtr(-null.deviate(null.centre + above)))

    def _active(self, column: int) -> tuple[int, ...]:
        """What the search finds without a member, starting from the other members."""
        if column not in self.fit.active:
            return self.fit.active
        limit = _PROMISING * _one_more(len(self.search.design), self.fit, self.alpha)
        promising = self.scores.p_value < limit
        promising[list(self.fit.active)] = True
        promising[column] = False
        near = np.flatnonzero(promising)
        if not len(near):
            return ()
        others = [other for other in self.fit.active if other != column]
        part = replace(
            self.search,
            design=self.search.design.subset(near),
            weights=self.fit,
            use_design=False,  # its law takes longer, and only says what is fitted here
            progress=lambda _: None,
        )
        start = tuple(int(place) for place in np.searchsorted(near, others))
        fit, _ = part.grow(start, self.alpha, robustly=False, family=len(self.search.design))
        return tuple(int(near[place]) for place in fit.active)


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
    law: ShareLaw, share: FloatArray, error: FloatArray, outside: NDArray[np.bool_]
) -> ShrunkenShares:
    """Shrink the shares of candidates outside the fit towards what they have in common."""
    posterior = law.shrink((share / error)[outside])
    mean = np.zeros(len(outside))
    mean[outside] = posterior.mean * error[outside]
    square = (posterior.mean**2 + posterior.slope) * error[outside] ** 2
    kept = np.where(mean > _NEGLIGIBLE * error, mean, 0.0)
    return ShrunkenShares(kept, float(posterior.slope.sum()), float(square.sum()))


class Shrunken(NamedTuple):
    """Posterior means in standard errors, and how much each follows its own estimate (0 to 1)."""

    mean: FloatArray
    slope: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ShareLaw:
    """E[μ | z] and its slope, tabulated at some z."""

    at: FloatArray
    mean: FloatArray
    slope: FloatArray

    def shrink(self, z: FloatArray) -> Shrunken:
        """E[μ | z] for every z."""
        return Shrunken(np.interp(z, self.at, self.mean), np.interp(z, self.at, self.slope))


def learn_shares(z: FloatArray) -> ShareLaw:
    """The law of μ >= 0 that z, normal around μ, suggest: with a point at 0, for absent candidates.

    >>> rng = np.random.default_rng(1)
    >>> z = np.concatenate([rng.normal(0, 1, 900), rng.normal(4, 1, 100)])
    >>> learn_shares(z).shrink(np.array([1.0, 4.0])).mean.round(1).tolist()
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
    return ShareLaw(middle, mean, np.clip(square - mean**2, 0.0, 1.0))
