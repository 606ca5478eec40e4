"""The instantaneous randomized response: B' -> S, fresh for every report (§2, step 3).

P(S_i = 1) = q if B'_i = 1, else p: each bit has one uniform number U_i, compared with p and with q.
Both comparisons are made for every bit, so that neither the randomness used nor the number of steps
depends on the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import zip_longest

from rappor.mechanism.coin import (
    SHORT,
    Pairs,
    binary_digits,
    flip,
    flip_two,
    word_bytes,
)
from rappor.mechanism.entropy import Entropy
from rappor.params import Params

InstantaneousResponse = Callable[[int], int]  # B' -> S


def instantaneous_response(params: Params, entropy: Entropy) -> InstantaneousResponse:
    """S as a function of B', with new randomness in every call."""
    lanes = params.k
    everything = (1 << lanes) - 1
    pairs = _threshold_digits(params)
    if params.q == 1:
        low = tuple(in_p for in_p, _ in pairs)
        return lambda permanent: flip(low, lanes, entropy) | permanent

    def respond(permanent: int) -> int:
        below_p, below_q = flip_two(pairs, lanes, entropy)
        return below_p | permanent & below_q  # p < q: a number below p is below q too

    if len(pairs) > SHORT:
        return respond

    # Fast path for the usual case, p and q with few binary digits: the same S from the same words.
    # With its counterpart in prr.py it makes reports 1.6 times as fast. All words are read at once,
    # and each bit is compared with its threshold from the last digit (coin.last_digit_first).
    size = len(pairs) * word_bytes(lanes)
    shift = word_bytes(lanes) * 8
    plan = [(place * shift, *digits) for place, digits in enumerate(pairs)][::-1]
    from_bytes = int.from_bytes

    def respond_short(permanent: int) -> int:
        words = from_bytes(entropy(size), "little")
        bits = 0
        for place, in_p, in_q in plan:
            word = words >> place
            if in_p is in_q:
                bits = word | bits if in_p else word & bits
            else:  # p and q differ: a 1 in q applies where B' is 1, a 1 in p where B' is 0
                bits = word & bits | (permanent if in_q else ~permanent) & (word | bits)
        return bits & everything

    return respond_short


@lru_cache(maxsize=64)
def _threshold_digits(params: Params) -> Pairs:
    """The binary digits of p and of q, place by place; q = 1 has none."""
    _, p, q = params.exact
    low = binary_digits(p)
    high = () if q == 1 else binary_digits(q)
    return tuple(zip_longest(low, high, fillvalue=False))
