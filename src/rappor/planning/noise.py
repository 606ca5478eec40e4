"""From a privacy goal to f, p and q: the least noise that keeps it (§3, §4.1).

f follows from ε∞ alone, because decoding sees only p* and q*. One number is left to choose, the
middle c of p* and q*: the signal w = q*-p* is the widest that ε1 allows. A change of a string or
category sets h bits and clears h, so ε1 bounds an odds ratio O = e^(ε1/h):

    (c + w/2)(1 - c + w/2) = O (c - w/2)(1 - c - w/2),   w = R - √(R² - 4c(1-c)),  R = (O+1)/(O-1).

A boolean changes one bit one way, which bounds q*/p* and (1-p*)/(1-q*) by e^ε1 instead. Results are
rounded to few decimals, towards more privacy, and checked against the exact ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rappor.mechanism.kinds import extreme_changes
from rappor.params import Params
from rappor.privacy import epsilon_infinity, epsilon_one
from rappor.typing import Kind

Score = Callable[[float, float], float]  # p*, q* -> the number to minimise

_MIDDLES = 60  # of a search by golden section
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Goal:
    """The largest ε of one report, and of all reports on one value (∞: reported once)."""

    epsilon_one: float
    epsilon_infinity: float


def min_noise(goal: Goal, shape: Params, kind: Kind, score: Score) -> Params:
    """The parameters of this k, h and m whose p* and q* score least, with ε never above the goal.

    >>> def spread(p_star, q_star):
    ...     return p_star * (1 - p_star) / (q_star - p_star) ** 2
    >>> shape = Params(128, 1, 16, 0.5, 0.5, 0.75)
    >>> min_noise(Goal(1.0743, 4.3944), shape, "string", spread)
    Params(k=128, h=1, m=16, f=0.2001, p=0.2239, q=0.5307)
    """
    f = min_f(goal.epsilon_infinity, shape, kind)

    def at(middle: float) -> float:
        half = widest(goal.epsilon_one, middle, f, shape, kind) / 2
        return score(middle - half, middle + half)

    middle = _least(at, 0.001, 0.999)
    width = widest(goal.epsilon_one, middle, f, shape, kind) / (1 - f)
    return _rounded(goal, shape, kind, f, middle, width)


def min_f(epsilon: float, shape: Params, kind: Kind) -> float:
    """The smallest f that keeps ε∞: ε = (u+d) ln((1-f/2)/(f/2)), rounded up to four digits."""
    if epsilon == math.inf:
        return 0.0
    bits = max(change.up + change.down for change in extreme_changes(kind, shape))
    exact = 2 / (1 + math.exp(min(epsilon / bits, 700.0)))
    digits = _digits(min(exact, 1 - exact))
    return math.ceil(exact * 10.0**digits) / 10.0**digits


def widest(epsilon: float, middle: float, f: float, shape: Params, kind: Kind) -> float:
    """The largest q*-p* around a middle that ε1 allows and some 0 <= p < q <= 1 gives."""
    room = (1 - f) * 2 * min(middle, 1 - middle)
    (first, *rest) = extreme_changes(kind, shape)
    if rest:  # one bit, one way
        ratio = math.tanh(epsilon / 2)
        return min(room, 2 * min(middle, 1 - middle) * ratio)
    per_bit = epsilon / first.up
    r = 1 / math.tanh(per_bit / 2)
    product = 4 * middle * (1 - middle)
    # R - √(R² - x) without the cancellation that a small ε would bring
    return min(room, product / (r + math.sqrt(r * r - product)))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_MIDDLES):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2


def _digits(number: float) -> int:
    """Decimals that keep four significant digits of a number below 1."""
    return 4 + max(0, -math.floor(math.log10(number)) - 1) if number > 0 else 4


def _rounded(
    goal: Goal, shape: Params, kind: Kind, f: float, middle: float, width: float
) -> Params:
    """Few decimals, q moved towards p until the exact ε is within the goal."""
    low = max(0.0, middle - width / 2)
    digits = min(max(_digits(width), _digits(low)), 15)
    unit = 10.0**-digits
    p = round(low, digits)
    if f == 0:
        p = max(p, unit)  # p = 0 without a permanent step is no privacy
    most = 1.0 if f > 0 else 1 - unit

    def at(units: int) -> Params:
        return Params(shape.k, shape.h, shape.m, f, p, round(units * unit, digits))

    def fits(units: int) -> bool:
        return epsilon_one(at(units), kind) <= goal.epsilon_one

    while not fits(round(p / unit) + 1):  # a p that was rounded to nearly 0 tells too much
        p = round(2 * p + unit, digits)
    top = math.floor(min(most, p + width + unit) / unit + 0.5)
    made = at(_largest(fits, round(p / unit) + 1, max(top, round(p / unit) + 1)))
    while epsilon_infinity(made, kind) > goal.epsilon_infinity:
        f = f * (1 + 1e-4) if f < 0.5 else f + (1 - f) * 1e-4
        made = at(round(made.q / unit))
    return made


def _largest(fits: Callable[[int], bool], low: int, top: int) -> int:
    """The largest whole number up to `top` that fits; `low` does, and so do all up to the answer.

    >>> _largest(lambda number: number <= 37, 1, 1000)
    37
    """
    beyond, step = top + 1, 1
    while top > low and not fits(top):
        beyond, top, step = top, max(low, top - step), 2 * step
    while beyond - top > 1:
        middle = (top + beyond) // 2
        if fits(middle):
            top = middle
        else:
            beyond = middle
    return top
