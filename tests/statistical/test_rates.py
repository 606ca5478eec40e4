"""A3: the coins themselves, over many bits; and rappor-v1's placement.

A rate is refused 4.9 standard errors away, and one that is 8 away is found with probability .999.
For 128 bits that is an error of .008 in 2,000 reports (`make test`), .0025 in 20,000
(`make test-long`), .0004 in 100 million bits (`make soak`).
"""

import hashlib
import os

import numpy as np
import pytest
from scipy import stats

from rappor import Params, bloom_positions
from rappor.mechanism import derive_cohort
from rappor.mechanism.irr import instantaneous_response
from rappor.mechanism.prr import permanent_response
from rappor.testing import SeededEntropy
from support.audit import bits_of

Z = 4.9  # two-sided 1e-6
PARAMS = [
    Params(128, 2, 1, 0.5, 0.5, 0.75),
    Params(1000, 2, 1, 0.1, 0.2239, 0.5307),
    Params(37, 2, 1, 0.2001, 0.03, 0.97),
    Params(64, 2, 1, 0.75, 0.0, 1 / 3),
    Params(64, 2, 1, 0.3, 0.4, 1.0),
]


def check_rates(params: Params, reports: int, entropy, planted: Params | None = None) -> None:
    """Hold coins against `params`; those of `planted`, if given, must be refused."""
    k = params.k
    permanent = permanent_response(planted or params, entropy(64))
    instant = instantaneous_response(planted or params, entropy)
    everything = (1 << k) - 1
    samples = {
        "f/2": (bits_of([permanent(0, b"%d" % i) for i in range(reports)], k), params.f / 2),
        "p": (bits_of([instant(0) for _ in range(reports)], k), params.p),
        "q": (bits_of([instant(everything) for _ in range(reports)], k), params.q),
    }
    for name, (drawn, expected) in samples.items():
        if expected in (0, 1):
            assert (drawn == expected).all(), name
            continue
        spread = (expected * (1 - expected) / drawn.size) ** 0.5
        assert abs(drawn.mean() - expected) <= Z * spread, name
        by_bit = (drawn.mean(axis=0) - expected) ** 2 / (expected * (1 - expected) / reports)
        assert stats.chi2(k).sf(by_bit.sum()) > 1e-6, name
        for apart in (1, 2, k // 2):
            both = (drawn[:, apart:] & drawn[:, :-apart]).mean(axis=1)
            centred = both.mean() - expected**2
            assert abs(centred) <= Z * both.std() / reports**0.5, f"{name}, bits {apart} apart"


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("reports", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_rates_are_exact_and_bits_independent(params, reports):
    check_rates(params, reports, SeededEntropy("rates"))


@pytest.mark.soak
@pytest.mark.parametrize("params", PARAMS)
def test_rates_over_a_hundred_million_bits(params):
    check_rates(params, -(-(10**8) // params.k), os.urandom)


def test_a_coin_that_is_off_by_a_hundredth_is_noticed():
    given, drawn = Params(128, 2, 1, 0.5, 0.5, 0.75), Params(128, 2, 1, 0.5, 0.51, 0.75)
    with pytest.raises(AssertionError, match=r"^p"):
        check_rates(given, 2_000, SeededEntropy("rates"), drawn)


# Placement, computed a second time from docs/protocol.md, for a million values at once.


def words(texts: list[bytes]) -> np.ndarray:
    joined = b"".join(hashlib.blake2s(b"rappor-v1 value\0" + t).digest()[:12] for t in texts)
    return np.frombuffer(joined, ">u4").reshape(-1, 3).astype(np.uint32)


def place(value_words: np.ndarray, cohort: int, k: int, h: int) -> np.ndarray:
    """Positions of all values in one cohort, shape (values, h)."""
    chosen = np.empty((len(value_words), h), np.int64)
    for index in range(h):
        label = b"rappor-v1 hash\0" + cohort.to_bytes(4, "big") + index.to_bytes(4, "big")
        ka, kb, kc = np.frombuffer(hashlib.blake2s(label).digest()[:12], ">u4").astype(np.uint32)
        a, b, c = value_words.T
        mixed = (a ^ ka) * (b ^ kb) + (c ^ kc)
        position = (mixed.astype(np.uint64) * np.uint64(k - index) >> np.uint64(32)).astype(
            np.int64
        )
        for earlier in np.sort(chosen[:, :index], axis=1).T:
            position += position >= earlier
        chosen[:, index] = position
    return chosen


@pytest.mark.parametrize(("k", "h", "m"), [(128, 2, 64), (7, 3, 5), (4096, 16, 1024), (2, 1, 3)])
def test_numpy_places_as_the_client_does(k, h, m):
    texts = [f"value {i}".encode() for i in range(200)]
    params = Params(k, h, m, 0.5, 0.5, 0.75)
    for cohort in {0, 1, m // 2, m - 1}:
        expected = [bloom_positions(text, cohort, params) for text in texts]
        assert place(words(texts), cohort, k, h).tolist() == [list(each) for each in expected]


@pytest.mark.parametrize("k", [128, 100, 32])
@pytest.mark.parametrize("pairs", [30_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_positions_are_uniform_distinct_and_independent_between_cohorts(k, pairs):
    cohorts = 64
    values = words([f"{k}/{i}".encode() for i in range(2 * pairs)])
    shared = np.zeros(pairs, np.int64)
    uniform, joint, before = [], [], None
    for cohort in range(cohorts):
        positions = place(values, cohort, k, 2)
        assert (positions[:, 0] != positions[:, 1]).all()
        for column in positions.T:
            uniform.append(stats.chisquare(np.bincount(column, minlength=k)).pvalue)
        one, other = positions[0::2], positions[1::2]
        shared += (one[:, :, None] == other[:, None, :]).sum(axis=(1, 2))
        if before is not None:
            cells = np.bincount(before * k + positions[:, 0], minlength=k * k)
            joint.append(stats.chisquare(cells).pvalue)
        before = positions[:, 1]
    assert min(uniform) > 1e-6 / len(uniform)
    assert min(joint) > 1e-6 / len(joint)
    # Bits shared in one cohort are hypergeometric; over cohorts, if independent, they convolve.
    law = np.array([1.0])
    for _ in range(cohorts):
        law = np.convolve(law, stats.hypergeom(k, 2, 2).pmf([0, 1, 2]))
    seen, expected = pooled(np.bincount(shared, minlength=len(law)), law * pairs)
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-6


def pooled(
    seen: np.ndarray, expected: np.ndarray, least: float = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring cells joined until each expects at least `least`."""
    edges, total = [0], 0.0
    for cell, value in enumerate(expected):
        total += value
        if total >= 8:
            edges.append(cell + 1)
            total = 0.0
    edges = edges[:-1] if len(edges) > 1 else edges
    return np.add.reduceat(seen, edges), np.add.reduceat(expected, edges)


def test_cohorts_of_two_collections_are_uniform_and_independent():
    m, clients = 16, 20_000
    entropy = SeededEntropy("cohorts")
    secrets = [entropy(32) for _ in range(clients)]
    drawn = [[derive_cohort(s, name, m) for s in secrets] for name in ("one", "two")]
    table = np.bincount(np.array(drawn[0]) * m + np.array(drawn[1]), minlength=m * m)
    assert stats.chisquare(table).pvalue > 1e-6
    odd = [derive_cohort(secret, "one", 1000) for secret in secrets]
    assert stats.chisquare(np.bincount(odd, minlength=1000)).pvalue > 1e-6
