"""CityHash64WithSeed 1.0.3 against independent packages and Chromium's own published tests."""

import json
from pathlib import Path

import pytest

from rappor.mechanism.cityhash import city_hash_64_with_seed

_PATH = Path(__file__).parents[2] / "vectors" / "cityhash.json"
_VECTORS = [
    (bytes.fromhex(vector["data_hex"]), vector["seed"], int(vector["hash_hex"], 16))
    for vector in json.loads(_PATH.read_text(encoding="utf-8"))["vectors"]
]
# The lengths that share one formula in CityHash 1.0.3.
_BRANCHES = [(0, 0), (1, 3), (4, 8), (9, 16), (17, 32), (33, 64), (65, 10**9)]


@pytest.mark.parametrize(("data", "seed", "expected"), _VECTORS)
def test_hash_equals_the_independent_packages(data: bytes, seed: int, expected: int) -> None:
    assert city_hash_64_with_seed(data, seed) == expected


@pytest.mark.parametrize(("shortest", "longest"), _BRANCHES)
def test_vectors_reach_every_length_branch_under_several_seeds(shortest: int, longest: int) -> None:
    seeds = {seed for data, seed, _ in _VECTORS if shortest <= len(data) <= longest}
    assert seeds == {0, 1, 63, 2**32 - 1}


def test_vectors_touch_both_ends_of_every_branch() -> None:
    lengths = {len(data) for data, _, _ in _VECTORS}
    ends = {end for branch in _BRANCHES for end in branch if end < 10**9}
    assert ends <= lengths


def test_vectors_have_one_and_several_64_byte_blocks() -> None:
    blocks = {(len(data) - 1) // 64 for data, _, _ in _VECTORS if len(data) > 64}
    assert blocks == {1, 2, 3}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 14404538258149959151),
        (b"0123456789", 12757304017804637665),
        (b"hello world", 4144044770257928618),
    ],
)
def test_hash_equals_the_legacy_hash_test_of_chromium(data: bytes, expected: int) -> None:
    assert city_hash_64_with_seed(data, 112358) == expected


@pytest.mark.parametrize(("value", "expected"), [(b"Test", 0x2A), (b"Bar", 0xA8)])
def test_tiny_bloom_filter_equals_the_one_in_chromium(value: bytes, expected: int) -> None:
    assert _bloom(value, k=8, h=4) == expected


def test_many_hashes_fill_a_64_bit_bloom_filter_as_in_chromium() -> None:
    assert _bloom(b"Bar", k=64, h=1024) == 2**64 - 1


def test_seed_is_taken_modulo_2_to_the_64() -> None:
    expected = city_hash_64_with_seed(b"value", 2**64 - 1)
    assert city_hash_64_with_seed(b"value", -1) == expected
    assert city_hash_64_with_seed(b"value", 2**65 - 1) == expected


def _bloom(value: bytes, *, k: int, h: int) -> int:
    """Return Chromium's Bloom filter: bit = low 32 bits of the hash mod k, seeds 0 to h - 1."""
    bits = 0
    for seed in range(h):
        bits |= 1 << ((city_hash_64_with_seed(value, seed) & 0xFFFFFFFF) % k)
    return bits
