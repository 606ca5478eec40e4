"""Simulated reports have the law of encoded ones, and both modes of simulation have the same law.

Against the client: 2 × 8,000 clients really encode a value twice each (2 × 3,000 in `make test`).
Means: χ² over 32 bits; pairs of bits, within a report and between the two: the largest |z| of
1,056, α = 1e-4 for each statistic. Mode against mode: given the truth, which a seed fixes for both,
the difference of two counts has mean 0 and a known variance; χ² over all bits of all cohorts, for
20 seeds (5 in `make test`).
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from rappor import Encoder, Params
from rappor.simulate import counts, full_reports, reports, simulate, uniform, zipf
from rappor.simulate.crowd import draw_crowd
from rappor.simulate.drawn_counts import _groups
from rappor.simulate.memos import respond
from rappor.simulate.scenario import Scenario
from rappor.testing import SeededEntropy

PARAMS = Params(16, 2, 2, 0.5, 0.25, 0.75)
CLIENTS = [3_000, pytest.param(8_000, marks=pytest.mark.long)]  # in each of two cohorts
ALPHA = 1e-4
PAIRS = PARAMS.m * (2 * PARAMS.k) * (2 * PARAMS.k + 1) // 2
LARGEST = stats.norm.isf(ALPHA / 2 / PAIRS)


@cache
def encoded(clients, f=PARAMS.f, seed=1):
    """Two reports of each client side by side, shape (m, clients, 2k)."""
    params = Params(PARAMS.k, PARAMS.h, PARAMS.m, f, PARAMS.p, PARAMS.q)
    secrets, entropy = np.random.default_rng(seed), SeededEntropy(seed)
    found = np.zeros((params.m, clients, 2 * params.k), np.int64)
    for cohort in range(params.m):
        for client in range(clients):
            encoder = Encoder(
                params, secret=secrets.bytes(32), collection="c", cohort=cohort, entropy=entropy
            )
            both = encoder.encode("a").bits | encoder.encode("a").bits << params.k
            found[cohort, client] = [both >> bit & 1 for bit in range(2 * params.k)]
    return found


def simulated(seed, clients, shared=True):
    """The same from the simulator; not shared: as if each report had a client of its own."""
    made = reports(
        ["a"],
        PARAMS,
        2 * PARAMS.m * clients,
        seed=seed,
        reports_per_client=2 if shared else 1,
    )
    bits = np.unpackbits(made.packed, axis=1, bitorder="little").astype(np.int64)
    return bits.reshape(PARAMS.m, clients, 2 * PARAMS.k)


def same_means(one, other):
    """The p-value of equal means of the bits of first reports, which are independent."""
    n, k = one.shape[1], PARAMS.k
    a, b = (each[:, :, :k].mean(axis=1) for each in (one, other))
    pooled = (a + b) / 2
    z = (a - b) / np.sqrt(2 * pooled * (1 - pooled) / n)
    return stats.chi2.sf((z**2).sum(), z.size)


def largest_pair(one, other):
    """The largest |z| between shares of clients that have both of two bits set."""
    found = 0.0
    upper = np.triu_indices(2 * PARAMS.k)
    clients = one.shape[1]
    for mine, theirs in zip(one, other, strict=True):
        a, b = ((each.T @ each)[upper] / clients for each in (mine, theirs))
        pooled = (a + b) / 2
        z = (a - b) / np.sqrt(2 * pooled * (1 - pooled) / clients)
        found = max(found, float(np.abs(z).max()))
    return found


@pytest.mark.parametrize("clients", CLIENTS)
def test_simulated_reports_cannot_be_told_from_encoded_ones(clients):
    real, made = encoded(clients), simulated(11, clients)
    assert same_means(real, made) > ALPHA
    assert largest_pair(real, made) < LARGEST


@pytest.mark.parametrize("clients", CLIENTS)
def test_a_permanent_response_that_is_not_shared_shows_in_pairs(clients):
    """Two reports of a bit are both 1 with t q² + (1-t) p², not r²: .047 apart.

    With 8,000 clients these are 8 errors; with 3,000 they are 4.9 on 32 bits, of which the largest
    is above 5.3 (LARGEST) with probability 1 - 2e-6.
    """
    made = simulated(11, clients, shared=False)
    assert same_means(encoded(clients), made) > ALPHA  # no mean moves
    assert largest_pair(encoded(clients), made) > LARGEST


@pytest.mark.parametrize(
    ("clients", "f"), [(3_000, 0.6), pytest.param(8_000, 0.55, marks=pytest.mark.long)]
)
def test_an_f_that_is_off_shows_in_the_means(clients, f):
    """f = .55 for .5 moves every bit by .0125: 2.2 errors each on 32 bits with 8,000 clients.

    f = .6 moves it by .025: 1.9 errors each with 3,000, found with probability .999.
    """
    assert same_means(encoded(clients, f, 2), simulated(11, clients)) < ALPHA


# Mode against mode.

SMALL = Params(16, 2, 4, 0.5, 0.25, 0.75)
ODD = Params(13, 2, 3, 0.3, 0.1234567, 0.7654321)
CROWDS = {
    "one report": {},
    "five of the same": {"reports_per_client": 5},
    "changing": {"reports_per_client": 6, "values": "changing", "change": 0.4},
    "distinct": {"reports_per_client": 4, "values": "distinct"},
}
SEEDS = [5, pytest.param(20, marks=pytest.mark.long)]
REPORTS = 12_000
POPULATION = uniform(6, absent=1)


def variance(params, how, seed):
    """Of each count given who holds what, shape (m, k).

    A memo with n reports adds n (t q(1-q) + (1-t) p(1-p)) + n² (q-p)² (f/2)(1-f/2), t the chance
    that its bit of B' is 1.
    """
    f, p, q = params.f, params.p, params.q
    total = np.zeros((params.m, params.k))
    for times, group in _groups(
        draw_crowd(Scenario(POPULATION, params, REPORTS, seed=seed, **how))
    ):
        absent = group.holders[:, None] - group.truly
        for number, t in ((group.truly, 1 - f / 2), (absent, f / 2)):
            within = t * q * (1 - q) + (1 - t) * p * (1 - p)
            total += number * (times * within + (times * (q - p)) ** 2 * f / 2 * (1 - f / 2))
    return total


def disagreement(full, drawn, spread):
    """χ² of two counts of the same clients."""
    return (((full.ones - drawn.ones) ** 2) / (2 * spread)).sum()


def agreement(params, how, seeds, other_params=None):
    """p-values of each seed and of all together, both ways: too far apart, and too close."""
    found = []
    for seed in range(seeds):
        full = reports(POPULATION, params, REPORTS, seed=seed, **how).count()
        drawn = counts(POPULATION, other_params or params, REPORTS, seed=seed, **how)
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
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_two_modes_agree_over_many_seeds(crowd, params, seeds):
    each, together = agreement(params, CROWDS[crowd], seeds)
    assert each.min() > 0.001
    assert together > 0.001


def test_an_f_that_is_off_in_one_mode_is_seen():
    """f = .55 for .5 moves a count of 3,000 by up to 37, 1.4 standard errors, in every seed."""
    off = Params(16, 2, 4, 0.55, 0.25, 0.75)
    each, together = agreement(SMALL, {}, 20, other_params=off)
    assert each.min() < 0.001
    assert together < 1e-12


def test_a_permanent_response_that_is_not_shared_in_one_mode_is_seen(monkeypatch):
    """The variance of one mode is 1/1.8 of what it should be: the pooled χ² is .78 of its mean,
    5 standard deviations too small.
    """

    def forgetful(bloom, memo, params, read, *, keep=False):
        return respond(bloom if memo is None else bloom[memo], None, params, read, keep=keep)

    monkeypatch.setattr(full_reports, "respond", forgetful)
    _, together = agreement(SMALL, CROWDS["five of the same"], 20)
    assert together < 0.001  # what the true mechanism stays above


@pytest.mark.long
def test_the_two_modes_agree_on_fourteen_million_reports():
    """The size of the paper's Chrome data; `make bench` has the seconds that it takes."""
    population, params = zipf(4_000, power=1.4, absent=4_616), Params.preset("chrome")
    made = reports(population, params, 14_000_000, seed=1)
    drawn = simulate(population, params, 14_000_000, seed=1)
    assert made.truth == drawn.truth
    spread = 14_000_000 / 32 * 0.25 * 0.94  # p*(1-p*) = .2393, q*(1-q*) = .2256
    chi2 = ((made.count().ones - drawn.counts.ones) ** 2 / (2 * spread)).sum()
    assert 0.9 < chi2 / (32 * 128) < 1.1
