"""The instantaneous randomized response: B' -> S, fresh for every report (§2, step 3).

P(S_i = 1) = q if B'_i = 1, else p. Both coins of every bit are tossed, whatever B' is, so neither
the randomness used nor the time taken depends on the value.
"""

from __future__ import annotations

from rappor.mechanism.coin import Coins
from rappor.mechanism.entropy import Entropy
from rappor.params import Params


class InstantaneousResponse:
    """Draws S from B' with fresh entropy."""

    __slots__ = ("_p", "_p_bits", "_q", "_short")

    def __init__(self, params: Params) -> None:
        """Prepare the coins of p and of q."""
        _, p, q = params.exact
        self._p = Coins(p, params.k)
        self._q = Coins(q, params.k)
        self._short: int | None = None
        self._p_bits = 0
        if self._p.short_bytes is not None and self._q.short_bytes is not None:
            self._short = self._p.short_bytes + self._q.short_bytes
            self._p_bits = self._p.short_bytes * 8

    def respond(self, permanent: int, entropy: Entropy) -> int:
        """S for one report of the memoized filter `permanent`."""
        if self._short is None:
            zeros, ones = self._p.flip(entropy), self._q.flip(entropy)
        else:
            words = int.from_bytes(entropy(self._short), "little")
            zeros, ones = self._p.flip_short(words), self._q.flip_short(words >> self._p_bits)
        return zeros ^ (permanent & (zeros ^ ones))
