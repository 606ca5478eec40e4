"""The paper's search, by name: non-negative LASSO, then least squares on what it keeps (§4).

The penalty is the one that predicts best the bits that were held out. The tests that follow are
those of the package, corrected for all M candidates: what LASSO drops has p = 1. No dense X is
made: LASSO runs on a working set of columns, and all M are checked against it (`Problem.solve`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rappor.decoding.fit import Fit
from rappor.decoding.search import Scores, Search
from rappor.typing import FloatArray

FOLDS = 5
_RATIO = 0.8  # from one penalty to the next
_MAX_PENALTIES = 40  # penalties tried at most: down to 1/6000 of the largest
_PATIENCE = 2  # penalties in a row that predict worse than the best one: the minimum is behind
_AT_ONCE = 500  # columns that join the working set in one round
_SLACK = 1e-3  # relative excess over the penalty that counts as a broken optimality condition
_TOLERANCE = 1e-7  # duality gap, relative to the sum of squares
_SWEEPS = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Candidates whose coefficient may be non-zero, their coefficients, and what they leave.

    Attributes:
        working: column numbers, ascending; every other coefficient is 0.
        share: coefficients, non-negative.
        intercept: the share of a bit that is not theirs.
        pull: the gradient of half the weighted mean square, negated, for all M candidates.
    """

    working: NDArray[np.intp] = field(repr=False)
    share: FloatArray = field(repr=False)
    intercept: float
    pull: FloatArray = field(repr=False)

    @property
    def selected(self) -> NDArray[np.intp]:
        """The columns with a coefficient above 0, ascending."""
        return self.working[self.share > 0]


class LassoProblem:
    """min Σ w (y - b0 level - X b)² / (2 Σ w) + penalty Σ b over b >= 0, b0 free."""

    def __init__(self, search: Search, use: NDArray[np.bool_] | None = None) -> None:
        """Take the observations; `use` says which bits count, all by default."""
        seen = search.seen
        self._search = search
        self.y = seen.shares.ravel()
        even = np.full(seen.shares.shape, seen.expected)
        self.weight = 1.0 / seen.variance(even).ravel()  # 0 in cohorts without reports
        if use is not None:
            self.weight = np.where(use, self.weight, 0.0)
        self._rows = np.flatnonzero(self.weight)
        self._level = search.level[self._rows]

    def empty(self) -> Solution:
        """The solution at a penalty too high for any candidate."""
        none: NDArray[np.intp] = np.empty(0, np.intp)
        weight = self.weight * self._search.level
        intercept = float(weight @ self.y / (weight @ self._search.level))
        residual = self.y - intercept * self._search.level
        return Solution(none, np.empty(0), intercept, self._pull(residual))

    def solve(self, penalty: float, start: Solution) -> Solution:
        """The solution at a penalty, from that at a larger one.

        Candidates outside the working set stay at 0 as long as their pull is at most the penalty
        (the conditions of Karush, Kuhn and Tucker). Those that break this join, until none does.
        """
        solution = self._join(start, penalty)
        while True:
            solution = self._fit(penalty, solution)
            before = len(solution.working)
            solution = self._join(solution, penalty * (1 + _SLACK))
            if len(solution.working) == before:
                return solution

    def predict(self, found: Solution) -> FloatArray:
        """The share of every bit."""
        columns = self._search.design.columns(found.working)
        fitted: FloatArray = found.intercept * self._search.level + columns @ found.share
        return fitted

    def _join(self, found: Solution, limit: float) -> Solution:
        """Add the candidates that pull hardest, if above the limit."""
        over = found.pull > limit
        over[found.working] = False
        new = np.flatnonzero(over)
        if len(new) > _AT_ONCE:
            new = new[np.argsort(-found.pull[new], kind="stable")[:_AT_ONCE]]
        working = np.concatenate([found.working, new])
        share = np.concatenate([found.share, np.zeros(len(new))])
        order = np.argsort(working)
        return replace(found, working=working[order], share=share[order])

    def _fit(self, penalty: float, start: Solution) -> Solution:
        """Coordinate descent on the working set."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso

        if not len(start.working):
            return start
        # Rows over their level: then the intercept is one number, which needs no column.
        columns = self._search.design.columns(start.working).tocsr()[self._rows]
        scaled = columns.multiply(1.0 / self._level[:, None]).tocsc()
        model: Any = Lasso(
            alpha=penalty, positive=True, warm_start=True, tol=_TOLERANCE, max_iter=_SWEEPS
        )
        model.coef_ = start.share.copy()
        with warnings.catch_warnings():
            # Columns that nearly repeat each other share their mass slowly; which ones are kept is
            # settled long before how much each has.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(
                scaled,
                self.y[self._rows] / self._level,
                sample_weight=self.weight[self._rows] * self._level**2,
            )
        found = replace(
            start, share=np.asarray(model.coef_, np.float64), intercept=float(model.intercept_)
        )
        return replace(found, pull=self._pull(self.y - self.predict(found)))

    def _pull(self, residual: FloatArray) -> FloatArray:
        whole = float(self.weight @ self._search.level**2)
        return self._search.gather(self.weight * residual) / whole


def lasso_search(search: Search) -> tuple[Fit, Scores]:
    """Select by LASSO, fit the selection by least squares, and test it."""
    problem = LassoProblem(search)
    penalty = choose_penalty(search, problem)
    found = problem.empty()
    if penalty is not None:
        highest = float(found.pull.max())
        steps = max(2, round(np.log(highest / penalty) / np.log(3)))
        for step in np.geomspace(highest, penalty, steps + 1)[1:]:
            found = problem.solve(float(step), found)
    chosen, most = found.selected, max(search.seen.rows // 3, 1)
    if len(chosen) > most:
        best = np.argsort(-found.share[found.share > 0], kind="stable")[:most]
        chosen = np.sort(chosen[best])
    active = tuple(int(column) for column in chosen)
    search.progress(f"LASSO keeps {len(active)} strings")
    fit = search.least_squares(active)
    scores = search.score(fit)
    dropped = np.ones(len(search.design), bool)
    dropped[list(active)] = False
    scores = replace(
        scores,
        p_model=np.where(dropped, 1.0, scores.p_model),
        p_design=np.where(dropped, 1.0, scores.p_design),
    )
    return fit.widened(), search.leave_one_out(fit, scores)


def choose_penalty(search: Search, problem: LassoProblem) -> float | None:
    """The penalty at which bits that were held out are predicted best; None to select nothing."""
    highest = float(problem.empty().pull.max(initial=0.0))
    if not highest > 0:
        return None
    fold = folds(len(problem.y))
    parts = [LassoProblem(search, fold != number) for number in range(FOLDS)]
    found = [part.empty() for part in parts]
    best, best_penalty, worse = np.inf, None, 0
    for number in range(_MAX_PENALTIES):
        penalty = highest * _RATIO**number
        error = 0.0
        for place, part in enumerate(parts):
            found[place] = part.solve(penalty, found[place])
            missed = (problem.y - part.predict(found[place]))[fold == place]
            error += float(problem.weight[fold == place] @ missed**2)
        search.progress(f"LASSO penalty {number + 1}: {len(found[0].selected)} strings")
        if error < best:
            best, best_penalty, worse = error, penalty, 0
        else:
            worse += 1
        if worse == _PATIENCE or len(found[0].selected) > search.seen.rows // 3:
            break
    return best_penalty


def folds(rows: int) -> NDArray[np.intp]:
    """The fold of every bit: all of about the same size, mixed, and the same each time."""
    mixed = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found = np.empty(rows, np.intp)
    found[np.argsort(mixed, kind="stable")] = np.arange(rows) % FOLDS
    return found
