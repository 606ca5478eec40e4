"""Budgets over time: p and q that change by calendar period (§6.1; docs/theory/schedules.md).

Three settings, each with its own guarantee:
a. one unchanged value, one memo: `epsilon_history` of its steps, at most ε∞ for any schedule;
b. values that change at known times: the sum of (a) over the values;
c. budget mode, a new B' in each period: the sum of ε1 over the periods, for all pairs of
   sequences of values.
The index is the calendar period, never a client's own count, which would reveal something itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rappor.checks import between_0_and_1, exact, positive, whole
from rappor.errors import ParamsError
from rappor.mechanism.channel import channel
from rappor.params import Params, check_params
from rappor.privacy.loss import Step, add_up, epsilon_history, epsilon_one
from rappor.typing import Kind


def epsilon_changing(
    params: Params, histories: Iterable[Iterable[Step]], kind: Kind = "string"
) -> float:
    """(b): ε of a client whose value changed, one memo for each value: the sum over its values.

    It protects which values they were. It does not protect that and when they changed.

    Args:
        params: gives f, k and h.
        histories: for each distinct value, the steps at which it was reported.
        kind: the kind of collection.
    """
    return add_up((epsilon_history(params, steps, kind), 1) for steps in histories)


def epsilon_budget(params: Params, steps: Iterable[Step], kind: Kind = "string") -> float:
    """(c): ε in budget mode, where each report has its own B': the sum of ε1.

    Every report counts as one period. Two reports in one period would share B' only if their values
    are equal, and ε does not cover that pattern.
    """
    return add_up(
        (epsilon_history(params, [Step(step.p, step.q)], kind), whole("reports", step.reports, 0))
        for step in steps
    )


@dataclass(frozen=True, slots=True)
class Schedule:
    """Parameters for each period of a budget.

    Attributes:
        periods: the parameters of period 0, 1, ...; only q differs.
        epsilon: the cost of all periods together in budget mode, rounded up.
        price: for each period, the standard error relative to that at the highest q.
    """

    periods: tuple[Params, ...]
    epsilon: float
    price: tuple[float, ...]


def spend(
    epsilon: float,
    periods: int,
    params: Params,
    kind: Kind = "string",
    ratio: float | None = None,
) -> Schedule:
    """Spread ε over periods by lowering q towards p; the sum never exceeds ε.

    Args:
        epsilon: the budget for all periods.
        periods: how many periods to plan.
        params: f, p and the highest q.
        kind: the kind of collection.
        ratio: None gives equal shares; r in (0, 1) gives period t the share (1-r) r^t, so that a
            plan of any length stays within the budget.

    >>> plan = spend(4.3944, 10, Params.preset("windows"))
    >>> plan.epsilon <= 4.3944, round(plan.price[0], 1)
    (True, 2.3)
    """
    check_params(params)
    budget = exact(positive("epsilon", epsilon))
    shares = _shares(budget, whole("periods", periods, 1), ratio)
    solved: dict[Fraction, Params] = {}
    for share in shares:
        if share not in solved:
            solved[share] = replace(params, q=solve_q(share, params, kind))
    planned = tuple(solved[share] for share in shares)
    total = epsilon_budget(params, (Step(period.p, period.q) for period in planned), kind)
    return Schedule(planned, total, tuple(relative_error(period, params) for period in planned))


def _shares(epsilon: Fraction, periods: int, ratio: float | None) -> Sequence[Fraction]:
    # Slightly below the exact share, so that sums of rounded-up ε stay within the budget.
    epsilon -= epsilon / 2**40
    if ratio is None:
        return [epsilon / periods] * periods
    factor = Fraction(between_0_and_1("ratio", ratio))
    return [epsilon * (1 - factor) * factor**period for period in range(periods)]


def solve_q(epsilon: Fraction | float, params: Params, kind: Kind = "string") -> float:
    """The largest q up to params.q whose single report costs at most ε; rounds towards p."""
    check_params(params)
    positive("epsilon", epsilon)

    def fits(q: float) -> bool:
        return q == params.p or epsilon_one(replace(params, q=q), kind) <= epsilon

    if fits(params.q):
        return params.q
    low = high = _near(epsilon, params, kind)
    step = math.ulp(low)
    while not fits(low):  # widen downwards to a q that fits ...
        low, high, step = max(params.p, low - step), low, 2 * step
    while low == high or fits(high):  # ... and upwards to one that does not, at the latest params.q
        low, high, step = high, min(params.q, high + step), 2 * step
    while (middle := low + (high - low) / 2) not in (low, high):
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low == params.p:
        share = float(epsilon)  # often far below the three decimals of an ε that is shown
        raise ParamsError(
            f"no q above p = {params.p!r} costs one report as little as ε = {share:.3g}: "
            "give more ε, fewer periods or another p"
        )
    return low


def _near(epsilon: Fraction | float, params: Params, kind: Kind) -> float:
    """A q close to the solution: ε is nearly proportional to q - p, so a few steps get there."""
    q = params.q
    for _ in range(6):
        loss = epsilon_one(replace(params, q=q), kind)
        nearer = params.p + (q - params.p) * float(epsilon / Fraction(loss))
        if not params.p < nearer < params.q:
            return q
        q = nearer
    return q


def relative_error(params: Params, reference: Params) -> float:
    """How many times wider an estimate's standard error is than under `reference`."""
    return _noise(params) / _noise(reference)


def _noise(params: Params) -> float:
    return math.sqrt(channel(params).noise[0])
