"""Rate limits: a token bucket for each address prefix (/24 of IPv4, /56 of IPv6) and for each key.

Addresses are never written anywhere. A bucket is found by a keyed hash of its prefix. The hash key
exists in memory only and is replaced every ten minutes. Buckets of the old key are used until each
of them would be full again, then they and the key are deleted. So a new key gives nobody a new
quota, and no trace of an address stays.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os

ROTATE_SECONDS = 600.0
MAX_BUCKETS = 100_000
BURST_SECONDS = 10.0  # a bucket holds the reports of this time, and at least one

Bucket = tuple[float, float]  # reports left, and when that was computed


def prefix(address: str) -> bytes | None:
    """The network of an address: its first 24 or 56 bits. None if it is not an address.

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
    """The size of a bucket and how fast it fills. Each accepted report is taken out of it.

    In any time t at most rate x t + burst reports are accepted, in batches of any size. A batch
    that is larger than the burst is accepted when the bucket is full, and leaves it in debt. In the
    long run the rate still holds.
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second, and bursts of ten times as many."""
        self.rate = rate
        self.burst = max(1.0, rate * BURST_SECONDS)

    @property
    def refill_seconds(self) -> float:
        """Seconds until an empty bucket is full."""
        return self.burst / self.rate

    def take(self, bucket: Bucket | None, cost: int, now: float, paid: int) -> tuple[Bucket, int]:
        """Take some reports out of a bucket.

        Args:
            bucket: the bucket; None for a full one.
            cost: the number of reports.
            now: the time in seconds.
            paid: what the same batch has taken out already.

        Returns:
            The bucket afterwards, and the seconds to wait; 0 if the reports were taken.
        """
        left, since = (self.burst, now) if bucket is None else bucket
        left = min(self.burst, left + max(0.0, now - since) * self.rate)
        missing = min(cost, self.burst - paid) - left
        if missing > 1e-9:  # more than rounding errors
            return (left, now), math.ceil(missing / self.rate)
        return (left - cost, now), 0


class KeyRateLimit:
    """The rate limit of a key.

    >>> limit = KeyRateLimit(2.0)
    >>> [limit.charge(cost, now) for cost, now in ((10, 0.0), (11, 0.0), (11, 1.0), (500, 11.0))]
    [0, 1, 0, 0]
    >>> limit.charge(1, 12.0)
    240
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second."""
        self._quota = Quota(rate)
        self._bucket: Bucket | None = None

    def charge(self, cost: int, now: float) -> int:
        """Charge this many reports; the seconds to wait if there are too many, else 0."""
        self._bucket, seconds = self._quota.take(self._bucket, cost, now, 0)
        return seconds


class RateLimit:
    """The rate limits of address prefixes, in memory.

    >>> limit = RateLimit(0.2)
    >>> [limit.charge("192.0.2.1", now) for now in (0.0, 0.0, 0.0, 5.0)]
    [0, 0, 5, 0]
    """

    def __init__(self, rate: float) -> None:
        """Allow `rate` reports a second to each prefix, and bursts of ten times as many."""
        self._quota = Quota(rate)
        self._buckets: dict[bytes, Bucket] = {}
        self._salt = os.urandom(16)
        self._rotate_at = -math.inf
        self._old: dict[bytes, Bucket] = {}
        self._old_salt = b""
        self._forget_at = math.inf

    def charge(self, address: str, now: float, cost: int = 1, paid: int = 0) -> int:
        """Charge an address; the seconds to wait if it sent too much, else 0."""
        if now >= self._rotate_at or len(self._buckets) >= MAX_BUCKETS:
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
