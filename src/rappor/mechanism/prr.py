"""The permanent randomized response: B -> B', once and for ever for each value (§2, step 2).

B'_i = 1 with probability f/2, 0 with probability f/2, B_i with probability 1-f. Equivalently: bit i
is flipped with probability f/2, whatever it is, which takes one exact coin a bit.
"""

from __future__ import annotations

from fractions import Fraction

from rappor.mechanism.coin import Coins
from rappor.mechanism.entropy import BLOCK_BYTES, KeyedStream
from rappor.params import Params


class PermanentResponse:
    """B' of a value, read from the stream that belongs to that value under one key."""

    __slots__ = ("_flips", "_short", "_stream")

    def __init__(self, params: Params, key: bytes) -> None:
        """Prepare the coins of f/2 and the keyed stream."""
        self._flips = Coins(flip_probability(params), params.k)
        size = self._flips.short_bytes
        self._short = size is not None and size <= BLOCK_BYTES
        self._stream = KeyedStream(key)

    def respond(self, signal: int, memo: bytes) -> int:
        """B' of the filter `signal`, the same at every call with the same memo input.

        Args:
            signal: B, bit i of the integer is bit i of the filter.
            memo: the bytes that stand for the value in the keyed stream (docs/protocol.md).
        """
        if self._short:
            words = int.from_bytes(self._stream.first_block(memo), "little")
            return signal ^ self._flips.flip_short(words)
        return signal ^ self._flips.flip(self._stream.reader(memo))


def flip_probability(params: Params) -> Fraction:
    """f/2, exactly: the chance that the permanent response flips a bit.

    >>> flip_probability(Params.preset("windows"))
    Fraction(1, 4)
    """
    return params.exact.f / 2
