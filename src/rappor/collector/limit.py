"""How fast one neighbourhood of addresses may send (SECURITY: never written anywhere).

A token bucket for each prefix (/24 of IPv4, /56 of IPv6), found by a keyed hash. The key is drawn
in memory and replaced every ten minutes, and all buckets are forgotten with it: no address is kept,
and what is kept tells nothing about an address once its key is gone.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os

ROTATE_SECONDS = 600.0
MOST_BUCKETS = 100_000
BURST_SECONDS = 10.0  # a bucket holds this many seconds' worth


def prefix(address: str) -> bytes | None:
    """The network of an address: its first 24 or 56 bits; None for what is no address.

    >>> prefix("192.0.2.77").hex(), prefix("2001:db8:1:2ff::1").hex()
    ('c00002', '20010db8000102')
    >>> prefix("::ffff:192.0.2.77").hex()
    'c00002'
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return parsed.packed[:7]
        parsed = parsed.ipv4_mapped
    return parsed.packed[:3]


class RateLimit:
    """Token buckets in memory, by salted prefix.

    >>> limit = RateLimit(0.2)
    >>> [limit.wait("192.0.2.1", now) for now in (0.0, 0.0, 0.0, 5.0)]
    [0, 0, 5, 0]
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` requests a second to each prefix, and bursts of ten seconds' worth."""
        self._rate = rate
        self._burst = max(1.0, rate * BURST_SECONDS)
        self._buckets: dict[bytes, tuple[float, float]] = {}
        self._salt = os.urandom(16)
        self._rotate_at = -math.inf

    def wait(self, address: str, now: float) -> int:
        """Seconds until a request from this address would be taken; 0: it is taken now."""
        if now >= self._rotate_at or len(self._buckets) >= MOST_BUCKETS:
            self._rotate(now)
        network = prefix(address) or b"unknown"
        key = hashlib.blake2b(network, digest_size=8, key=self._salt).digest()
        left, since = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            self._buckets[key] = (left, now)
            return math.ceil((1 - left) / self._rate)
        self._buckets[key] = (left - 1, now)
        return 0

    def _rotate(self, now: float) -> None:
        self._salt = os.urandom(16)
        self._buckets.clear()
        self._rotate_at = now + ROTATE_SECONDS
