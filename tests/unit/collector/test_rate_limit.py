"""The rate limit: by neighbourhood, forgotten with its salt, bounded."""

import pytest

from rappor.collector.quota import MAX_BUCKETS, ROTATE_SECONDS, RateLimit


def test_a_prefix_may_send_its_rate_and_a_burst() -> None:
    limit = RateLimit(2.0)
    assert [limit.charge("192.0.2.1", 0.0) for _ in range(20)] == [0] * 20
    assert limit.charge("192.0.2.200", 0.0) == 1  # the same /24
    assert limit.charge("192.0.3.1", 0.0) == 0  # another one
    taken = sum(limit.charge("192.0.2.1", second / 4) == 0 for second in range(4, 404))
    assert taken == pytest.approx(200, abs=3)  # two a second for a hundred seconds


def test_a_slash_56_is_one_neighbourhood() -> None:
    limit = RateLimit(0.1)
    assert limit.charge("2001:db8:0:100::1", 0.0) == 0
    assert limit.charge("2001:db8:0:1ff::9", 0.0) == 10
    assert limit.charge("2001:db8:0:200::1", 0.0) == 0


def test_no_address_is_kept_and_the_salt_is_replaced() -> None:
    limit = RateLimit(1.0)
    limit.charge("192.0.2.1", 0.0)
    (before,) = limit._buckets
    assert b"\xc0\x00\x02" not in before
    salt = limit._salt
    limit.charge("192.0.2.1", ROTATE_SECONDS + 1)
    (after,) = limit._buckets
    assert limit._salt != salt
    assert after != before


def test_memory_is_bounded_whoever_comes() -> None:
    limit = RateLimit(1.0)
    limit._buckets = dict.fromkeys((i.to_bytes(8, "big") for i in range(MAX_BUCKETS)), (0.0, 0.0))
    limit.charge("192.0.2.1", 0.0)
    assert len(limit._buckets) == 1


def test_a_new_salt_gives_nobody_another_burst() -> None:
    limit = RateLimit(2.0)
    assert limit.charge("192.0.2.1", 0.0, 1) == 0
    assert limit.charge("192.0.2.1", ROTATE_SECONDS - 0.5, 20) == 0
    taken = [limit.charge("192.0.2.1", ROTATE_SECONDS + second, 20) for second in (0, 1, 5)]
    assert taken == [10, 9, 5]
    assert limit.charge("192.0.2.1", ROTATE_SECONDS + 10, 20) == 0


def test_old_buckets_are_gone_when_they_would_be_full_again() -> None:
    limit = RateLimit(2.0)
    for host in range(50):
        limit.charge(f"192.0.{host}.1", ROTATE_SECONDS - 1)
    assert limit.charge("192.0.2.1", 2 * ROTATE_SECONDS) == 0
    assert len(limit._old) == 49
    limit.charge("192.0.2.1", 2 * ROTATE_SECONDS + 10)
    assert (limit._old, limit._old_salt) == ({}, b"")
