"""Solve for one of ε, N and frequency from the other two (§4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rappor.planning.expected_detections import ExpectedCrowd
from rappor.planning.layouts import rank_layouts
from rappor.planning.noise import Goal
from rappor.planning.request import MAX_EPSILON, MAX_REPORTS, MIN_EPSILON, RATIO, PlanRequest
from rappor.privacy import MIN_COHORT

_HALVINGS = 60
_CLOSE = 1e-4  # relative


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """The best layouts for a request, as a function of the number that it leaves open."""

    request: PlanRequest
    crowd: ExpectedCrowd

    def rarest(self, goal: Goal, reports: float) -> float:
        """The smallest frequency that the best layout detects; above 1 if it detects nothing."""
        return rank_layouts(self.request, self.crowd, goal, reports, quick=True)[0].frequency

    def min_reports(self, goal: Goal, frequency: float) -> int | None:
        """The smallest number of reports that detects a frequency; None if no number does."""

        def enough(reports: float) -> bool:
            return self.rarest(goal, reports) <= frequency

        low, high = float(MIN_COHORT * self.request.cells), float(MAX_REPORTS)
        if enough(low):
            return math.ceil(low)
        return math.ceil(_between(enough, low, high)) if enough(high) else None

    def min_epsilon(self, reports: float, frequency: float, ever: float | None) -> Goal | None:
        """The smallest ε1 that detects a frequency, with this ε∞ or 4 ε1; None if none does."""

        def enough(once: float) -> bool:
            return self.rarest(_goal(once, ever), reports) <= frequency

        most = MAX_EPSILON / RATIO if ever is None else min(ever, MAX_EPSILON)
        if not enough(most):
            return None
        once = _between(enough, min(100 * MIN_EPSILON, most), most)
        digits = 3 - math.floor(math.log10(once))  # four significant ones, rounded up
        return _goal(min(math.ceil(once * 10**digits) / 10**digits, most), ever)


def _goal(once: float, ever: float | None) -> Goal:
    return Goal(once, RATIO * once if ever is None else ever)


def _between(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number that is enough, by halving on a logarithmic scale."""
    for _ in range(_HALVINGS):
        if high <= low * (1 + _CLOSE):
            break
        middle = math.sqrt(low * high)
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
