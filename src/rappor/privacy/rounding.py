"""ε as people read it: rounded up, never down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

_DIGITS = Context(prec=400)  # a float has up to 309 digits before the point


def up(epsilon: float, places: int = 4) -> str:
    """ε as text with a number of decimals, rounded up; ∞ as "∞".

    >>> up(4.394449154672439), up(1.0743, 3), up(math.inf)
    ('4.3945', '1.075', '∞')
    """
    if epsilon == math.inf:
        return "∞"
    return str(Decimal(epsilon).quantize(Decimal(1).scaleb(-places), ROUND_CEILING, _DIGITS))
