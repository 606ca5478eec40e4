"""Simulated reports have the law of encoded ones, and both modes of simulation have the same law.

Against the client: 2 × 8,000 clients really encode a value twice each. Means: χ² over 32 bits;
pairs of bits, within a report and between the two: the largest |z| of 1,056, α = 1e-4 for each
statistic. Mode against mode: given the truth, which a seed fixes for both, the difference of two
counts has mean 0 and a known variance; χ² over all bits of all cohorts, for 20 seeds.
"""

import time
from functools import cache

import numpy as np
import pytest
from scipy import stats

from rappor import Encoder, Params
from rappor.simulate import counts, reports, run, simulate, uniform, zipf
from rappor.simulate.crowd import gather
from rappor.simulate.draw import _groups
from rappor.simulate.memos import respond
from rappor.testing import SeededEntropy

PARAMS = Params(16, 2, 2, 0.5, 0.25, 0.75)
CLIENTS = 8_000  # in each of two cohorts
ALPHA = 1e-4
PAIRS = PARAMS.m * (2 * PARAMS.k) * (2 * PARAMS.k + 1) // 2
LARGEST = stats.norm.isf(ALPHA / 2 / PAIRS)


@cache
def encoded(f=PARAMS.f, seed=1):
    """Two reports of each client side by side, shape (m, clients, 2k)."""
    params = Params(PARAMS.k, PARAMS.h, PARAMS.m, f, PARAMS.p, PARAMS.q)
    secrets, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    found = np.zeros((params.m, CLIENTS, 2 * params.k), np.int64)
    for cohort in range(params.m):
        for client in range(CLIENTS):
            encoder = Encoder(
                params, secret=secrets.bytes(32), collection="c", cohort=cohort, entropy=entropy
            )
            both = encoder.encode("a").bits | encoder.encode("a").bits << params.k
            found[cohort, client] = [both >> bit & 1 for bit in range(2 * params.k)]
    return found


def simulated(seed, shared=True):
    """The same from the simulator; not shared: as if each report had a client of its own."""
    made = reports(
        ["a"],
        PARAMS,
        2 * PARAMS.m * CLIENTS,
        seed=seed,
        reports_per_client=2 if shared else 1,
    )
    bits = np.unpackbits(made.packed, axis=1, bitorder="little").astype(np.int64)
    return bits.reshape(PARAMS.m, CLIENTS, 2 * PARAMS.k)


def same_means(one, other):
    """The p-value of equal means of the bits of first reports, which are independent."""
    n, k = CLIENTS, PARAMS.k
    a, b = (each[:, :, :k].mean(axis=1) for each in (one, other))
    pooled = (a + b) / 2
    z = (a - b) / np.sqrt(2 * pooled * (1 - pooled) / n)
    return stats.chi2.sf((z**2).sum(), z.size)


def largest_pair(one, other):
    """The largest |z| between shares of clients that have both of two bits set."""
    found = 0.0
    upper = np.triu_indices(2 * PARAMS.k)
    for mine, theirs in zip(one, other, strict=True):
        a, b = ((each.T @ each)[upper] / CLIENTS for each in (mine, theirs))
        pooled = (a + b) / 2
        z = (a - b) / np.sqrt(2 * pooled * (1 - pooled) / CLIENTS)
        found = max(found, float(np.abs(z).max()))
    return found


def test_simulated_reports_cannot_be_told_from_encoded_ones():
    real, made = encoded(), simulated(11)
    assert same_means(real, made) > ALPHA
    assert largest_pair(real, made) < LARGEST


def test_a_permanent_response_that_is_not_shared_shows_in_pairs():
    """Two reports of a bit are both 1 with t q² + (1-t) p², not r²: .047 apart, 8 errors."""
    made = simulated(11, shared=False)
    assert same_means(encoded(), made) > ALPHA  # no mean moves
    assert largest_pair(encoded(), made) > LARGEST


def test_an_f_that_is_off_shows_in_the_means():
    """f = .55 for .5 moves every bit by .0125: 2.2 errors each on 32 bits."""
    assert same_means(encoded(0.55, 2), simulated(11)) < ALPHA


# Mode against mode.

SMALL = Params(16, 2, 4, 0.5, 0.25, 0.75)
ODD = Params(13, 2, 3, 0.3, 0.1234567, 0.7654321)
CROWDS = {
    "one report": {},
    "five of the same": {"reports_per_client": 5},
    "changing": {"reports_per_client": 6, "values": "changing", "change": 0.4},
    "distinct": {"reports_per_client": 4, "values": "distinct"},
}
SEEDS = range(20)
REPORTS = 12_000
POPULATION = uniform(6, absent=1)


def variance(params, how, seed):
    """Of each count given who holds what, shape (m, k).

    A memo with n reports adds n (t q(1-q) + (1-t) p(1-p)) + n² (q-p)² (f/2)(1-f/2), t the chance
    that its bit of B' is 1.
    """
    f, p, q = params.f, params.p, params.q
    total = np.zeros((params.m, params.k))
    for times, group in _groups(gather(POPULATION, params, REPORTS, seed=seed, **how)):
        absent = group.holders[:, None] - group.truly
        for number, t in ((group.truly, 1 - f / 2), (absent, f / 2)):
            within = t * q * (1 - q) + (1 - t) * p * (1 - p)
            total += number * (times * within + (times * (q - p)) ** 2 * f / 2 * (1 - f / 2))
    return total


def disagreement(full, drawn, spread):
    """χ² of two counts of the same clients."""
    return (((full.ones - drawn.ones) ** 2) / (2 * spread)).sum()


def agreement(params, how, other_params=None, other_how=None):
    """p-values of each seed and of all together, both ways: too far apart, and too close."""
    found = []
    for seed in SEEDS:
        full = reports(POPULATION, params, REPORTS, seed=seed, **how).count()
        drawn = counts(POPULATION, other_params or params, REPORTS, seed=seed, **(other_how or how))
        found.append(disagreement(full, drawn, variance(params, how, seed)))
    bits = params.m * params.k
    each = stats.chi2.sf(found, bits)
    both = (
        stats.chi2.sf(sum(found), bits * len(found)),
        stats.chi2.cdf(sum(found), bits * len(found)),
    )
    return each, min(both)


@pytest.mark.parametrize("params", [SMALL, ODD], ids=["dyadic", "any float"])
@pytest.mark.parametrize("crowd", CROWDS)
def test_the_two_modes_agree_over_20_seeds(crowd, params):
    each, together = agreement(params, CROWDS[crowd])
    assert each.min() > 0.001
    assert together > 0.001


def test_an_f_that_is_off_in_one_mode_is_seen():
    """f = .55 for .5 moves a count of 3,000 by up to 37, 1.4 standard errors, in every seed."""
    off = Params(16, 2, 4, 0.55, 0.25, 0.75)
    each, together = agreement(SMALL, {}, other_params=off)
    assert each.min() < 0.001
    assert together < 1e-12


def test_a_permanent_response_that_is_not_shared_in_one_mode_is_seen(monkeypatch):
    """The variance of one mode is 1/1.8 of what it should be: the pooled χ² is .78 of its mean,
    5 standard deviations too small.
    """

    def forgetful(bloom, memo, params, read, *, keep=False):
        return respond(bloom if memo is None else bloom[memo], None, params, read, keep=keep)

    monkeypatch.setattr(run, "respond", forgetful)
    _, together = agreement(SMALL, CROWDS["five of the same"])
    assert together < 0.001  # what the true mechanism stays above


def test_fourteen_million_reports_take_seconds():
    """The paper's Chrome data, k = 128, m = 32: full reports within 30 s, counts within 2 s."""
    population, params = zipf(4_000, power=1.4, absent=4_616), Params.preset("chrome")
    reports(population, params, 1_000, seed=1).count()  # what is compiled, is compiled
    start = time.perf_counter()
    made = reports(population, params, 14_000_000, seed=1)
    full_seconds = time.perf_counter() - start
    found = made.count()
    start = time.perf_counter()
    drawn = simulate(population, params, 14_000_000, seed=1)
    seconds = time.perf_counter() - start
    assert full_seconds < 30
    assert seconds < 2
    assert made.truth == drawn.truth
    spread = 14_000_000 / 32 * 0.25 * 0.94  # p*(1-p*) = .2393, q*(1-q*) = .2256
    chi2 = ((found.ones - drawn.counts.ones) ** 2 / (2 * spread)).sum()
    assert 0.9 < chi2 / (32 * 128) < 1.1
