"""How much one neighbourhood of addresses may send (SECURITY: never written anywhere).

A token bucket for each prefix (/24 of IPv4, /56 of IPv6), found by a keyed hash. The key is drawn
in memory and replaced every ten minutes. Buckets under the old key are looked up until each would
be full again, then dropped with it: nobody gains by a new key, and no address outlives its own.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os

ROTATE_SECONDS = 600.0
MOST_BUCKETS = 100_000
BURST_SECONDS = 10.0  # a bucket holds this many seconds' worth, and at least one report

Bucket = tuple[float, float]  # what is left, and since when


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


class Quota:
    """What a bucket may hold and how fast it fills; reports are taken out of it.

    In any stretch of time, at most rate x time + burst reports are taken, whatever their packing.
    Only a batch that is larger than the burst is taken from a full bucket and leaves it in debt:
    over time the rate still holds.
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second, and bursts of ten seconds' worth."""
        self.rate = rate
        self.burst = max(1.0, rate * BURST_SECONDS)

    @property
    def refill_seconds(self) -> float:
        """Until an empty bucket is full."""
        return self.burst / self.rate

    def take(self, bucket: Bucket | None, cost: int, now: float, paid: int) -> tuple[Bucket, int]:
        """The bucket afterwards, and seconds to wait; 0: the cost was taken out of it.

        `paid` is what the same batch has taken out just before.
        """
        left, since = (self.burst, now) if bucket is None else bucket
        left = min(self.burst, left + max(0.0, now - since) * self.rate)
        missing = min(cost, self.burst - paid) - left
        if missing > 1e-9:  # what rounding leaves is not worth a second of anyone's time
            return (left, now), math.ceil(missing / self.rate)
        return (left - cost, now), 0


class KeyLimit:
    """The one bucket of a key.

    >>> limit = KeyLimit(2.0)
    >>> [limit.wait(cost, now) for cost, now in ((10, 0.0), (11, 0.0), (11, 1.0), (500, 11.0))]
    [0, 1, 0, 0]
    >>> limit.wait(1, 12.0)
    240
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second."""
        self._quota = Quota(rate)
        self._bucket: Bucket | None = None

    def wait(self, cost: int, now: float) -> int:
        """Seconds until so many reports would be taken; 0: they are taken now."""
        self._bucket, seconds = self._quota.take(self._bucket, cost, now, 0)
        return seconds


class RateLimit:
    """Token buckets in memory, by salted prefix.

    >>> limit = RateLimit(0.2)
    >>> [limit.wait("192.0.2.1", now) for now in (0.0, 0.0, 0.0, 5.0)]
    [0, 0, 5, 0]
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second to each prefix, and bursts of ten seconds' worth."""
        self._quota = Quota(rate)
        self._buckets: dict[bytes, Bucket] = {}
        self._salt = os.urandom(16)
        self._rotate_at = -math.inf
        self._old: dict[bytes, Bucket] = {}
        self._old_salt = b""
        self._forget_at = math.inf

    def wait(self, address: str, now: float, cost: int = 1, paid: int = 0) -> int:
        """Seconds until so much from this address would be taken; 0: it is taken now."""
        if now >= self._rotate_at or len(self._buckets) >= MOST_BUCKETS:
            self._rotate(now)
        elif now >= self._forget_at:
            self._forget()
        network = prefix(address) or b"unknown"
        key = _hashed(network, self._salt)
        bucket = self._buckets.get(key)
        if bucket is None and self._old:
            bucket = self._old.pop(_hashed(network, self._old_salt), None)
        self._buckets[key], seconds = self._quota.take(bucket, cost, now, paid)
        return seconds

    def _rotate(self, now: float) -> None:
        self._old, self._old_salt = self._buckets, self._salt
        self._buckets, self._salt = {}, os.urandom(16)
        self._rotate_at = now + ROTATE_SECONDS
        self._forget_at = now + min(self._quota.refill_seconds, ROTATE_SECONDS)

    def _forget(self) -> None:
        self._old, self._old_salt = {}, b""
        self._forget_at = math.inf


def _hashed(network: bytes, salt: bytes) -> bytes:
    return hashlib.blake2b(network, digest_size=8, key=salt).digest()
