"""Which candidates can be there: score all, keep what stands out, fit it, until nothing changes.

Forward and backward at once: after each fit the active set becomes the Benjamini-Hochberg
rejections among all M candidates, each tested for what the others leave unexplained. This search
replaces the LASSO of §4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rappor.decoding.design import Design, gather_sums
from rappor.decoding.fit import Fit, least_squares, refit, robust
from rappor.decoding.observe import Observed
from rappor.decoding.options import Correction
from rappor.decoding.randomization import NullScore, Placement
from rappor.decoding.significance import benjamini_hochberg
from rappor.typing import FloatArray

# A candidate whose information the fitted ones take up to this share cannot be tested.
MIN_INFORMATION = 0.05
_ROUNDS = 30
_EXACT_UP_TO = 1 << 22  # index entries up to which every candidate's projection is computed
_LOOK_CLOSER = 2.0  # beyond that: those with a rough z of at least this
ALL_AT_ONCE = 1 << 17  # candidates up to which every round tests all
_PROMISING = 0.05  # beyond that: the p-value of those that rounds go on with
_BORDERLINE = 7.0  # robust path: members with a z above this are tested in two ways


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Every candidate against one fit, arrays of shape (M,).

    Attributes:
        share: the candidate's share if it were fitted too.
        information: one over the variance of that share, before the fit's scale.
        z: share over its standard error.
        p_model: one-sided p-value under normal noise.
        p_design: one-sided p-value under random placement.
        testable: whether the fitted candidates leave something of it.
        typical: the information on a candidate with ordinary bits.
        by_design: whether p-values are those by design alone.
    """

    share: FloatArray = field(repr=False)
    information: FloatArray = field(repr=False)
    z: FloatArray = field(repr=False)
    p_model: FloatArray = field(repr=False)
    p_design: FloatArray = field(repr=False)
    testable: NDArray[np.bool_] = field(repr=False)
    typical: float
    by_design: bool

    @property
    def p_value(self) -> FloatArray:
        """The larger of the two p-values, or the one by design; 1 for what cannot be tested."""
        found = self.p_design if self.by_design else np.maximum(self.p_model, self.p_design)
        return np.where(self.testable, found, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What a search works on.

    Attributes:
        seen: the observations.
        design: the candidates.
        place: how hashes place strings.
        level: what evenly spread strings put on each bit, relative to its mean; flat.
        use_design: whether there are bits enough for the law of random placement.
        correction: how p-values will be corrected: verdicts depend on those near its cut-off.
        weights: a fit whose weights of bits are kept; by default each fit finds its own.
        progress: told in a line what has been done.
    """

    seen: Observed
    design: Design
    place: Placement
    level: FloatArray = field(repr=False)
    use_design: bool
    correction: Correction = "fdr"
    weights: Fit | None = field(default=None, repr=False)
    progress: Callable[[str], None] = field(default=lambda _: None, repr=False)

    def least_squares(self, active: tuple[int, ...]) -> Fit:
        """Fit by least squares."""
        if self.weights is not None:
            none = np.zeros(self.seen.shares.size)
            return refit(self.seen, self.weights, self.design.columns(active), active, none)
        return least_squares(self.seen, self.design.columns(active), active, self.level)

    def robust(self, active: tuple[int, ...], before: Fit | None = None) -> Fit:
        """Fit with unlisted mass taken out bit by bit, starting at an earlier fit if given."""
        start = self.least_squares(active)
        return robust(self.seen, start, before.law if before else None)

    def gather(self, flat: FloatArray) -> FloatArray:
        """Sum an array over bits at every candidate's bits."""
        return self.design.gather(self._table(flat))

    def _table(self, flat: NDArray[Any]) -> NDArray[Any]:
        """An array over bits with a column for no bit, as `gather_sums` wants it."""
        shape = self.seen.shares.shape
        table = np.zeros((shape[0], shape[1] + 1), flat.dtype)
        table[:, :-1] = flat.reshape(shape)
        return table

    def null(self, fit: Fit, flat: FloatArray) -> NullScore:
        """The law of an absent candidate's sum, widened by what the fit took from residuals."""
        table = flat.reshape(self.seen.shares.shape)[self.seen.live]
        return NullScore(table, self.place, np.sqrt(self.seen.rows / fit.freedom))

    def score(self, fit: Fit) -> Scores:
        """Test every candidate against a fit."""
        # Two sums in one pass, as the two parts of complex numbers.
        both = gather_sums(
            self._table(fit.score + 1j * fit.information), self.design.index, self.place.h
        )
        pull, own = np.ascontiguousarray(both.real), np.ascontiguousarray(both.imag)
        left = self._projected(fit, pull, own)
        members = np.array(fit.active, np.intp)
        testable = left > MIN_INFORMATION * own
        left = np.where(testable, left, np.maximum(own, 1e-300))
        share = pull / left
        outside = testable.copy()
        outside[members] = False
        typical = float(left[outside].mean()) if outside.any() else float(own.mean())
        if len(members):
            share[members] = fit.share
            left[members] = 1.0 / np.maximum(np.diag(fit.covariance)[1:], 1e-300)
            testable[members] = True
        z = share * np.sqrt(left / fit.scale)
        p_model = ndtr(-z)
        p_design = p_model
        if self.use_design:
            # Sums with the spread of a typical candidate: one law serves all.
            law = self.null(fit, fit.evidence)
            sums = pull if fit.law is None else self.gather(fit.evidence)
            sums = law.centre + (sums - law.centre) * np.sqrt(typical / left)
            fitted = z[members] * np.sqrt(typical * fit.scale)
            if fit.law is None:
                sums[members] = fitted
            p_design = ndtr(-law.deviates(sums))
            if fit.law is not None and len(members):
                p_design[members] = ndtr(-self.null(fit, fit.score).deviates(fitted))
        by_design = self.use_design and fit.law is not None
        return Scores(share, left, z, p_model, p_design, testable, typical, by_design)

    def _projected(self, fit: Fit, pull: FloatArray, own: FloatArray) -> FloatArray:
        """Each candidate's information once the fitted ones have taken their part."""
        even = bool((fit.level == 1.0).all())
        on_level = own if even else self.gather(fit.information * fit.level)
        left: FloatArray = own - on_level**2 * float(fit.covariance[0, 0])
        if not fit.active:
            return left
        if self.design.index.size <= _EXACT_UP_TO:
            which = np.arange(len(self.design))
        else:
            which = np.flatnonzero(pull >= _LOOK_CLOSER * np.sqrt(own * fit.scale))
        if not len(which):
            return left
        weighted = fit.columns.multiply(fit.information[:, None]).tocsc()
        level = fit.information * fit.level
        taken: FloatArray = np.empty(len(which))
        for start in range(0, len(which), 1 << 16):
            here = which[start : start + (1 << 16)]
            columns = self.design.columns(here, ordered=False)
            shared = np.empty((len(here), len(fit.active) + 1))
            shared[:, 0] = columns.T @ level
            shared[:, 1:] = (columns.T @ weighted).toarray()
            taken[start : start + len(here)] = ((shared @ fit.covariance) * shared).sum(axis=1)
        if len(which) < len(left):  # the others: as the ones looked at, on average
            left = own * (1.0 - float((taken / own[which]).mean()))
        left[which] = own[which] - taken
        return left

    def grow(
        self,
        active: tuple[int, ...],
        alpha: float,
        robustly: bool,
        before: Scores | None = None,
        family: int | None = None,
    ) -> tuple[Fit, Scores]:
        """Fit and test in turn until the active set stands.

        Among very many candidates the search goes on among those that look promising (in earlier
        scores where there are some), and all are tested again when it has ended; a newcomer among
        the others starts it again.
        """
        if len(self.design) <= ALL_AT_ONCE:
            return self._grow(active, alpha, robustly, family or len(self.design))
        scores = before or self.score(self.least_squares(active))
        for _ in range(_ROUNDS):
            promising = scores.p_value < _PROMISING
            promising[list(active)] = True
            near = np.flatnonzero(promising)
            part = replace(self, design=self.design.subset(near))
            inside = tuple(int(place) for place in np.searchsorted(near, active))
            fit, _ = part._grow(inside, alpha, robustly, len(self.design))
            active = tuple(int(near[place]) for place in fit.active)
            fit = replace(fit, active=active)
            scores = self.score(fit)
            if promising[benjamini_hochberg(scores.p_value, alpha)].all():
                break
        return fit, scores

    def _grow(
        self, active: tuple[int, ...], alpha: float, robustly: bool, family: int
    ) -> tuple[Fit, Scores]:
        """The same among the candidates at hand, which are all that matter of `family`."""
        known: set[tuple[int, ...]] = set()
        limit = max(self.seen.rows // 3, 1)
        fit: Fit | None = None
        number = 0
        while True:
            number += 1
            fit = self.robust(active, fit) if robustly else self.least_squares(active)
            scores = self.score(fit)
            p_value = scores.p_value
            chosen = benjamini_hochberg(p_value, alpha, family)
            most = min(2 * len(active) + 5, limit)  # grow by steps: the first fits know little
            if len(chosen) > most:
                best = np.argsort(p_value[chosen], kind="stable")[:most]
                chosen = np.sort(chosen[best])
            after = tuple(int(column) for column in chosen)
            path = "robust fit" if robustly else "fit"
            self.progress(f"{path} {number}: {len(active)} strings, then {len(after)}")
            if after == active or after in known or number == _ROUNDS:
                return fit, scores
            known.add(after)
            active = after

    def leave_one_out(self, fit: Fit, scores: Scores) -> Scores:
        """Test members of the fit as if they had not been fitted.

        A member has had its share of the residuals; against those, it would look too good, and a
        large one would lie beyond the end of the law. In the robust path a large one is tested in
        two ways, because left out it looks like unlisted mass itself.
        """
        p_model, p_design = scores.p_model.copy(), scores.p_design.copy()
        robustly = fit.law is not None
        plain = self.least_squares(fit.active) if robustly else fit
        ratio = float(plain.information.sum() / fit.information.sum())
        for place, column in enumerate(fit.active):
            is_large = robustly and scores.z[column] > _BORDERLINE
            other = -np.inf
            if is_large:
                z, other = self.left_out_plainly(plain, place, scores.typical * ratio)
            if other < _BORDERLINE:
                z, tail = self._left_out(fit, place, scores.typical)
            else:  # beyond doubt already
                tail = other
            p_model[column] = ndtr(-z)
            if not self.use_design:
                p_design[column] = p_model[column]
            elif is_large:
                p_design[column] = min(1.0, 2 * ndtr(-max(tail, other)))
            else:
                p_design[column] = ndtr(-tail)
        return replace(scores, p_model=p_model, p_design=p_design)

    def _left_out(self, fit: Fit, place: int, typical: float) -> tuple[float, float]:
        """Two deviates of a member against the fit of the others: by model and by design."""
        if fit.law is None:
            return self.left_out_plainly(fit, place, typical)
        column = fit.columns[:, [place]]
        others = fit.active[:place] + fit.active[place + 1 :]
        start = replace(self.least_squares(others), share=np.delete(fit.share, place))
        left_out = robust(self.seen, start, fit.law, steps=3)
        shared = left_out.times(left_out.information * column.toarray()[:, 0])
        own = float((column.T @ left_out.information)[0])
        information = max(own - float(shared @ left_out.covariance @ shared), 1e-12 * own, 1e-300)
        pull = float((column.T @ left_out.score)[0])
        z = pull / np.sqrt(information * left_out.scale)
        if not self.use_design:
            return float(z), 0.0
        ratio = float(left_out.information.sum() / fit.information.sum())
        law = self.null(left_out, left_out.evidence)
        sums = float((column.T @ left_out.evidence)[0])
        above = (sums - law.centre) * np.sqrt(typical * ratio / information)
        return float(z), law.deviate(law.centre + above)

    def left_out_plainly(self, fit: Fit, place: int, typical: float) -> tuple[float, float]:
        """The same for least squares, where leaving a column out has a closed form."""
        own, alone = fit.alone(place)
        residual = np.where(fit.information > 0, fit.residual + fit.share[place] * alone, 0.0)
        score = fit.information * residual
        z = float(alone @ score) * float(np.sqrt(own))
        if not self.use_design:
            return z, 0.0
        return z, self.null(fit, score).deviate(z * float(np.sqrt(typical)))


@dataclass(frozen=True, slots=True, eq=False)
class Detail:
    """The working behind a table, for diagnoses and comparisons; arrays in candidate order."""

    search: Search = field(repr=False)
    fit: Fit = field(repr=False)
    scores: Scores = field(repr=False)
