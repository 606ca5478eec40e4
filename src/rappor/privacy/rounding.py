"""ε as people read it: three decimals, rounded up, never down. The only place that rounds it.

Commands, pages, charts and documents show ε through `up`. JSON keeps every digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal

PLACES = 3
_DIGITS = Context(prec=400)  # a float has up to 309 digits before the point


def up(epsilon: float) -> str:
    """ε as text, rounded up to three decimals; ∞ as "∞".

    A float stands for the decimal that it prints as: a limit set to 4.4 is shown as 4.400, though
    the nearest float is a little above it.

    >>> up(4.394449154672439), up(1.0743), up(4.4), up(math.inf)
    ('4.395', '1.075', '4.400', '∞')
    """
    if epsilon == math.inf:
        return "∞"
    exact = Decimal(repr(float(epsilon)))
    return str(exact.quantize(Decimal(1).scaleb(-PLACES), ROUND_CEILING, _DIGITS))


def up_sum(epsilons: Iterable[float]) -> str:
    """The sum of ε as they are shown, each rounded up: no less than the sum, and it adds up.

    >>> up_sum([4.3944, 2.1972, 2.1972]), up_sum([1.0, math.inf]), up_sum([])
    ('8.791', '∞', '0.000')
    """
    shown = list(epsilons)
    if math.inf in shown:
        return up(math.inf)
    return str(sum((Decimal(up(epsilon)) for epsilon in shown), Decimal("0.000")))


def as_set(epsilon: float) -> str:
    """A limit that somebody set, in their digits: it is repeated to them, not computed.

    >>> as_set(1.0743), as_set(4.0), as_set(0.0001), as_set(math.inf)
    ('1.0743', '4', '0.0001', '∞')
    """
    if epsilon == math.inf:
        return "∞"
    return f"{Decimal(repr(float(epsilon))).normalize():f}"
