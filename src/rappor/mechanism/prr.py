"""The permanent randomized response: B -> B', drawn once for each value (§2, step 2).

B'_i = 1 with probability f/2, 0 with probability f/2, B_i with probability 1-f. Equivalently, every
bit is flipped with probability f/2, which takes one exact coin for each bit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from rappor.mechanism.coin import SHORT, Digits, binary_digits, flip, last_digit_first, word_bytes
from rappor.mechanism.entropy import BLOCK_BYTES, KeyedStream
from rappor.params import Params, check_params

# (B, memo input) -> B'; the memo input is the bytes that stand for the value (docs/protocol.md).
PermanentResponse = Callable[[int, bytes], int]


def flip_probability(params: Params) -> Fraction:
    """f/2, exactly: the chance that the permanent response flips a bit.

    >>> flip_probability(Params.preset("windows"))
    Fraction(1, 4)
    """
    check_params(params)
    return params.exact.f / 2


@lru_cache(maxsize=64)
def _flip_digits(params: Params) -> Digits:
    return binary_digits(flip_probability(params))


def permanent_response(params: Params, key: bytes) -> PermanentResponse:
    """B' as a function of the filter and the memo input; one key always gives the same B'."""
    lanes = params.k
    digits = _flip_digits(params)
    stream = KeyedStream(key)
    if not digits:
        return lambda signal, _memo: signal  # f = 0: no permanent step

    def respond(signal: int, memo: bytes) -> int:
        return signal ^ flip(digits, lanes, stream.reader(memo))

    if len(digits) > SHORT or len(digits) * word_bytes(lanes) > BLOCK_BYTES:
        return respond

    # The same B' from the same stream, for f/2 of few binary digits: all words lie in the first
    # block of the stream. With its counterpart in irr.py it makes reports 1.6 times as fast.
    (last, _), *plan = last_digit_first(digits, lanes)
    everything = (1 << lanes) - 1
    start = stream.start
    from_bytes = int.from_bytes

    def respond_short(signal: int, memo: bytes) -> int:
        state = start.copy()
        state.update(memo)
        words = from_bytes(state.digest(), "little")
        flips = words >> last  # the last digit of a reduced fraction is 1
        for place, digit in plan:
            flips = words >> place | flips if digit else words >> place & flips
        return signal ^ flips & everything

    return respond_short
