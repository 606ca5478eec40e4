"""Warner's surveys, with which the paper begins, and the averaging attack on them (§1, §1.3)."""

from __future__ import annotations

import math
from fractions import Fraction

from rappor.checks import whole


def two_coin_estimate(yes_share: float) -> float:
    """Share of true "yes" when heads answers truly and tails answers by a second coin: 2(Y - 1/4).

    >>> two_coin_estimate(0.75)
    1.0
    """
    return 2 * (yes_share - 0.25)


def one_coin_estimate(yes_share: float) -> float:
    """Share of true "yes" when heads answers truly and tails answers "yes": 2Y - 1.

    >>> one_coin_estimate(0.75)
    0.5
    """
    return 2 * yes_share - 1


TWO_COIN_EPSILON = math.log(3)  # 75 % against 25 %, for either truth
ONE_COIN_EPSILON = math.inf  # a "no" is always the truth


def averaging_posterior(yes: int, answers: int) -> Fraction:
    """P(truth is "no" | `yes` of `answers` said "yes"), for one person asked many times.

    Without memoization each answer tosses new coins, so the likelihood ratio is
    3^(2 yes - answers), from even prior odds. 75 of 100 leave 3^-50 to "no" (the paper's 1.39e-24).

    >>> f"{float(averaging_posterior(75, 100)):.2e}"
    '1.39e-24'
    """
    whole("yes", yes, 0, whole("answers", answers, 0))
    odds = Fraction(3) ** (2 * yes - answers)
    return 1 / (1 + odds)
