"""Fit the strings that are there: shares, their covariance and a score for each bit (§4).

Weighted least squares with an intercept for unlisted mass that is spread evenly; and, if heavy
strings are missing from the list, the same with each bit's unlisted mass taken out first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from rappor.decoding.observe import Observed
from rappor.decoding.unlisted import UnlistedLaw, learn
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array


# Standard errors of the share that evidence in the robust path is best for: about where a string is
# detected, whatever the correction.
_TESTED_AT = 4.0
_STEPS = 30  # of reweighting, at most
_SETTLED = 1e-3  # the relative change of weights at which it ends
_AT_ONCE = 1 << 22  # numbers that are in memory at once to compute the leverage
_SMALL_EXCESS = 0.1  # of the variance: what χ² may exceed its expectation by and mean nothing
# Standard errors grow by this over the cube of the number of cohorts: in a few of them the bits
# of strings meet too often for their errors to be normal. Measured with two to four cohorts.
_FEW_COHORTS = 1.6


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """One fit of some candidates, all arrays over bits flat with m * k entries.

    Attributes:
        active: column numbers of the fitted candidates, ascending.
        share: their shares of reports.
        intercept: the share of a bit that is not theirs.
        covariance: of intercept and shares, intercept first.
        columns: their columns of X.
        level: the column of the intercept.
        residual: observed minus fitted shares; in the robust path before unlisted mass is taken.
        variance: the noise of each bit.
        information: the weight of each bit.
        score: each bit's pull on the share of a string that sets it.
        evidence: each bit's evidence for a string that sets it; sums of it are tested. The score,
            but in the robust path.
        chi2: Σ residual²/variance, under the noise of the mechanism alone.
        freedom: degrees of freedom.
        extra: τ², the variance between bits beyond the noise.
        scale: a factor on variances, 1 unless scores vary more than their information says.
        settled: whether weights and estimate agree with each other, or rounds ran out before.
        law: the law of unlisted mass in the robust path.
    """

    active: tuple[int, ...]
    share: FloatArray
    intercept: float
    covariance: FloatArray = field(repr=False)
    columns: csc_array = field(repr=False)
    level: FloatArray = field(repr=False)
    residual: FloatArray = field(repr=False)
    variance: FloatArray = field(repr=False)
    information: FloatArray = field(repr=False)
    score: FloatArray = field(repr=False)
    evidence: FloatArray = field(repr=False)
    chi2: float
    freedom: int
    extra: float
    scale: float = 1.0
    settled: bool = True
    law: UnlistedLaw | None = field(default=None, repr=False)

    @property
    def chi2_dof(self) -> float:
        """Near 1 if noise explains all that the fit leaves."""
        return self.chi2 / max(self.freedom, 1)

    def times(self, weight: FloatArray) -> FloatArray:
        """Z^T weight: for intercept and active candidates."""
        return np.concatenate([[self.level @ weight], self.columns.T @ weight])

    def without(self, others: FloatArray) -> Fit:
        """The same with something more taken off the bits, and the weights as they are."""
        left = np.where(self.information > 0, self.residual - others, 0.0)
        moved = self.covariance @ self.times(self.information * left)
        residual = left - moved[0] * self.level - self.columns @ moved[1:]
        residual = np.where(self.information > 0, residual, 0.0)
        score = self.information * residual
        return replace(
            self,
            share=self.share + moved[1:],
            intercept=self.intercept + float(moved[0]),
            residual=residual,
            score=score,
            evidence=score,
            chi2=float((residual**2 / self.variance).sum()),
        )

    @property
    def leverage(self) -> FloatArray:
        """How much of each bit's noise the fit takes up, from 0 to 1."""
        taken = self.level * (self.covariance[0, 0] * self.level)
        taken = taken + 2 * self.level * (self.columns @ self.covariance[1:, 0])
        some = max(1, _AT_ONCE // len(self.level))
        for start in range(0, len(self.active), some):
            part = self.columns[:, start : start + some]
            moved = self.columns @ self.covariance[1:, start + 1 : start + some + 1]
            taken = taken + np.asarray(part.multiply(moved).sum(axis=1)).ravel()
        return np.asarray(self.information * taken)

    def widened(self, added: float = 0.0) -> Fit:
        """The same fit, its scale the variance of residuals over what noise would leave.

        Bits count as they count in an estimate. Weights leave a small excess out; standard errors
        take in what residuals show, however little, or what is probably `added` to the variance of
        bits, where that is more.
        """
        information = float(self.information.sum())
        left = information - float(self.information @ self.leverage)
        shown = float((self.score**2).sum()) / left if left > 0 else 1.0
        probable = 1.0 + (added - self.extra) * float((self.information**2).sum()) / information
        return replace(self, scale=max(self.scale, shown, probable))

    def allowing_for_few_cohorts(self, cohorts: int) -> Fit:
        """The same fit, its standard errors those that hold with so many cohorts."""
        return replace(self, scale=self.scale * few_cohorts_factor(cohorts) ** 2)

    def alone(self, place: int) -> tuple[float, FloatArray]:
        """The variance of a member's share, and what the other members leave of its column."""
        own = max(float(self.covariance[place + 1, place + 1]), 1e-300)
        direction = self.covariance[:, place + 1] / own
        return own, direction[0] * self.level + self.columns @ direction[1:]


def few_cohorts_factor(cohorts: int) -> float:
    """The factor 1 + 1.6/m³ by which standard errors grow with m cohorts.

    >>> few_cohorts_factor(2)
    1.2
    """
    return 1 + _FEW_COHORTS / cohorts**3


class Others(NamedTuple):
    """What candidates that are not fitted probably put on the bits.

    Attributes:
        share: of each bit, flat.
        freedom: the degrees of freedom that this takes from the residuals.
    """

    share: FloatArray
    freedom: float


def least_squares(
    seen: Observed,
    columns: csc_array,
    active: tuple[int, ...],
    level: FloatArray,
    others: Others | None = None,
) -> Fit:
    """Fit candidates by weighted least squares, weights 1/(v + τ²), τ² from the residual χ²."""
    others = others or Others(np.zeros(seen.shares.size), 0.0)
    y = seen.shares.ravel() - others.share
    shape = seen.shares.shape
    fitted = np.full(len(y), seen.expected)
    live = np.repeat(seen.live, shape[1])
    freedom = max(seen.rows - len(active) - 1, 1)
    left = max(freedom - round(others.freedom), 1)
    extra, settled = 0.0, False
    variance = seen.variance(fitted.reshape(shape)).ravel()
    for _ in range(_STEPS):
        weight = 1.0 / (variance + extra)
        covariance = inverse_information(columns, level, weight)
        estimate = _estimate(columns, level, covariance, weight * y)
        fitted = estimate[0] * level + columns @ estimate[1:]
        residual = np.where(live, y - fitted, 0.0)
        variance = seen.variance((fitted + others.share).reshape(shape)).ravel()
        extra = between_bits(residual, variance, left, certain=seen.repeated)
        # Where noise is low, a bit's variance depends on its share most of all.
        settled = float(np.abs(weight[live] * (variance[live] + extra) - 1.0).max()) <= _SETTLED
        if settled:
            break
    weight = 1.0 / (variance + extra)
    covariance = inverse_information(columns, level, weight)
    if not settled:  # the estimate of these weights, whose covariance it is
        estimate = _estimate(columns, level, covariance, weight * y)
        residual = np.where(live, y - estimate[0] * level - columns @ estimate[1:], 0.0)
    return Fit(
        active=active,
        share=estimate[1:],
        intercept=float(estimate[0]),
        covariance=covariance,
        columns=columns,
        level=level,
        residual=residual,
        variance=variance,
        information=weight,
        score=weight * residual,
        evidence=weight * residual,
        chi2=float((residual**2 / variance).sum()),
        freedom=freedom,
        extra=extra,
        settled=settled,
    )


def _estimate(
    columns: csc_array, level: FloatArray, covariance: FloatArray, pull: FloatArray
) -> FloatArray:
    """The intercept and the shares of least squares, from the weighted shares of bits."""
    found: FloatArray = covariance @ np.concatenate([[level @ pull], columns.T @ pull])
    return found


def refit(
    seen: Observed, fit: Fit, columns: csc_array, active: tuple[int, ...], others: FloatArray
) -> Fit:
    """Fit other candidates with the weights of a fit, once what `others` put on bits is off."""
    y = np.where(np.repeat(seen.live, seen.shares.shape[1]), seen.shares.ravel(), 0.0)
    start = replace(
        fit,
        active=active,
        share=np.zeros(len(active)),
        intercept=0.0,
        covariance=inverse_information(columns, fit.level, fit.information),
        columns=columns,
        residual=y,
        freedom=max(seen.rows - len(active) - 1, 1),
    )
    return start.without(others)


def inverse_information(columns: csc_array, level: FloatArray, weight: FloatArray) -> FloatArray:
    """(Z^T W Z)^-1 for the intercept and some columns."""
    weighted = columns.multiply(weight[:, None]).tocsc()
    size = columns.shape[1] + 1
    matrix = np.empty((size, size))
    matrix[0, 0] = level @ (weight * level)
    matrix[0, 1:] = matrix[1:, 0] = weighted.T @ level
    matrix[1:, 1:] = (columns.T @ weighted).toarray()
    return _inverse(matrix)


def _inverse(matrix: FloatArray) -> FloatArray:
    """The inverse; columns that depend on each other share their mass evenly."""
    unit = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    try:
        root = np.linalg.cholesky(matrix * np.outer(unit, unit))
    except np.linalg.LinAlgError:
        root = np.zeros((1, 1))
    if np.diag(root).min() < 1e-5:
        return np.asarray(np.linalg.pinv(matrix, rcond=1e-10, hermitian=True))
    half = solve_triangular(root, np.diag(unit), lower=True)
    return np.asarray(half.T @ half)


def between_bits(
    residual: FloatArray, variance: FloatArray, freedom: int, *, certain: bool = False
) -> float:
    """τ² >= 0 with Σ residual²/(variance + τ²) = freedom: what noise does not explain.

    0 if noise alone might leave as much: an excess that three standard deviations of χ² cover
    and that is below a tenth, or weights would follow chance, and tests with them. Standard errors
    take it in later (`Fit.widened`). Where there must be more than the noise of single
    reports (`certain`), every excess counts.
    """
    square = residual**2
    chance = 0.0 if certain else min(_SMALL_EXCESS, 3.0 * math.sqrt(2.0 / freedom))
    if float((square / variance).sum()) <= freedom * (1.0 + chance):
        return 0.0
    low, high = 0.0, float(square.sum()) / freedom
    for _ in range(50):
        middle = (low + high) / 2
        if float((square / (variance + middle)).sum()) > freedom:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def robust(seen: Observed, start: Fit, before: UnlistedLaw | None = None, steps: int = 8) -> Fit:
    """Fit the same candidates with each bit's unlisted mass estimated and taken out.

    Newton steps on Σ x ψ = 0, while the law of unlisted mass is learnt from the residuals.
    """
    shape = seen.shares.shape
    live = np.repeat(seen.live, shape[1])
    y = seen.shares.ravel()
    uneven = start.intercept * (start.level - 1.0)  # hashes that favour some bits
    share = start.share.copy()
    unlisted = np.full(len(y), start.intercept)
    spread = min(start.extra, 0.5 * float(start.variance[live].min()))
    for step in range(steps):
        fitted = start.columns @ share
        residual = np.where(live, y - fitted - uneven, 0.0)
        variance = seen.variance((fitted + unlisted).reshape(shape)).ravel()
        law = learn(
            residual[live], variance[live], start.intercept, spread, before, 20 if before else 60
        )
        before = law
        unlisted = np.zeros(len(y))
        unlisted[live] = law.posterior_mean(residual[live], variance[live])
        score = np.where(live, (residual - unlisted) / variance, 0.0)
        information = _information(law, variance.reshape(shape), seen.live)
        covariance = inverse_information(start.columns, start.level, information)
        move = covariance @ np.concatenate([[start.level @ score], start.columns.T @ score])
        sizes = np.abs(move[1:]) / np.sqrt(np.diag(covariance)[1:])
        if step == steps - 1 or not len(share) or sizes.max() < 0.02:
            break
        share = share + move[1:]
    score = np.where(live, score - start.level * move[0] * information, 0.0)
    lift = _TESTED_AT / np.sqrt(seen.live.sum() * seen.bits * float(information[live].mean()))
    evidence = np.zeros(len(y))
    evidence[live] = law.evidence(residual[live], variance[live], lift) / lift
    excess = float((score**2).sum() / information.sum()) * seen.rows / start.freedom
    return Fit(
        active=start.active,
        share=share,
        intercept=start.intercept,
        covariance=covariance,
        columns=start.columns,
        level=start.level,
        residual=residual,
        variance=variance,
        information=information,
        score=score,
        evidence=evidence,
        chi2=start.chi2,
        freedom=start.freedom,
        extra=start.extra,
        scale=max(1.0, excess),
        law=law,
    )


def _information(law: UnlistedLaw, variance: FloatArray, live: NDArray[np.bool_]) -> FloatArray:
    """The information of each bit, computed once for cohorts of about the same noise."""
    means = np.where(live, np.where(live[:, None], variance, 0.0).mean(axis=1), np.inf)
    lowest = means[live].min()
    by_noise: dict[float, float] = {}
    information = np.zeros(variance.shape)
    for cohort in np.flatnonzero(live):
        about = round(float(np.log(means[cohort] / lowest)), 2)
        if about not in by_noise:
            by_noise[about] = law.information(float(lowest * np.exp(about)))
        information[cohort] = by_noise[about]
    return information.ravel()
