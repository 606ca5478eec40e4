"""Simulated counts have the law of counted reports.

By formula: 4,000 draws of 32 bits (1,000 in `make test`). By two-sample test: 150 collections of
200 clients that really encode their values three times each, beside 1,500 simulated ones (30 and
300 in `make test`); the same test must reject counts that are simulated as if each report had a
client of its own.
"""

import numpy as np
import pytest
from scipy import stats

from rappor import Encoder, Params
from rappor.decoding.repeats import design_effect
from rappor.mechanism import bloom_positions
from rappor.simulate import counts
from rappor.testing import SeededEntropy

PARAMS = Params(16, 2, 2, 0.5, 0.25, 0.75)
POPULATION = {"a": 0.6, "b": 0.3, "c": 0.1}
BITS = PARAMS.m * PARAMS.k


def true_share():
    """The share of clients that have a bit set, shape (m, k)."""
    share = np.zeros((PARAMS.m, PARAMS.k))
    for value, weight in POPULATION.items():
        for cohort in range(PARAMS.m):
            share[cohort, list(set(bloom_positions(value, cohort, PARAMS)))] += weight
    return share


def drawn(times, reports, repeats, first=0):
    return np.array(
        [
            counts(POPULATION, PARAMS, reports, seed=[repeats, n], reports_per_client=repeats).ones
            for n in range(first, first + times)
        ]
    )


@pytest.mark.parametrize("repeats", [1, 5])
@pytest.mark.parametrize("n", [1_000, pytest.param(4_000, marks=pytest.mark.long)])
def test_mean_and_variance_of_every_bit_follow_the_formula(repeats, n):
    """A client's R reports given B' are binomial, and B' is 1 with probability t.

    Each bit's mean within 5 standard errors, its variance within 5 √(2/n) of itself; with R = 5 the
    variance of independent reports is far outside.
    """
    clients = 200  # in each of two cohorts
    found = drawn(n, 2 * clients * repeats, repeats)
    share = true_share()
    t = share * (1 - PARAMS.f / 2) + (1 - share) * PARAMS.f / 2
    p, q = PARAMS.p, PARAMS.q
    r = p + (q - p) * t
    mean = clients * repeats * r
    within = t * q * (1 - q) + (1 - t) * p * (1 - p)
    variance = clients * (repeats * within + (repeats * (q - p)) ** 2 * t * (1 - t))
    assert (np.abs(found.mean(axis=0) - mean) < 5 * np.sqrt(variance / n)).all()
    ratio = found.var(axis=0, ddof=1) / variance
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 / n)).all()
    # A bit that nobody has: the design effect of section H.
    absent = share == 0
    independent = clients * repeats * r * (1 - r)
    effect = design_effect(PARAMS, reports_per_client=repeats)
    assert variance[absent] == pytest.approx(independent[absent] * effect)
    if repeats > 1:
        seen = (found.var(axis=0, ddof=1) / independent)[absent].mean()
        assert seen > 1 + 0.9 * (effect - 1)


def encoded(seed, clients=200, repeats=3):
    """Ones in the reports of clients that really encode, shape (m, k)."""
    rng = np.random.default_rng(seed)
    entropy = SeededEntropy(seed)
    values = rng.choice(list(POPULATION), clients, p=list(POPULATION.values()))
    ones = np.zeros((PARAMS.m, PARAMS.k), int)
    for number, value in enumerate(values.tolist()):
        cohort = number % PARAMS.m
        encoder = Encoder(
            PARAMS, secret=rng.bytes(32), collection="c", cohort=cohort, entropy=entropy
        )
        for _ in range(repeats):
            bits = encoder.encode(value).bits
            ones[cohort] += [bits >> bit & 1 for bit in range(PARAMS.k)]
    return ones


def differences(one, other):
    """Two-sample statistics: p-value of equal means (all bits), z of equal variances (pooled)."""
    apart = one.mean(axis=0) - other.mean(axis=0)
    error = one.var(axis=0, ddof=1) / len(one) + other.var(axis=0, ddof=1) / len(other)
    means = stats.chi2.sf((apart**2 / error).sum(), BITS)
    ratio = np.log(one.var(axis=0, ddof=1) / other.var(axis=0, ddof=1)).mean()
    return means, ratio / np.sqrt((2 / len(one) + 2 / len(other)) / BITS)


@pytest.mark.parametrize("collections", [30, pytest.param(150, marks=pytest.mark.long)])
def test_simulated_counts_cannot_be_told_from_encoded_ones(collections):
    """α = 1e-4 for each of three statistics; the bug's variance is 30 % or more too small.

    That is 7.4 standard errors of its logarithm with 30 collections, 16 with 150.
    """
    real = np.array([encoded(seed) for seed in range(collections)])
    simulated = drawn(10 * collections, 600, 3)
    means, spread = differences(real, simulated)
    assert means > 1e-4
    assert abs(spread) < 3.9
    both = stats.ks_2samp(real.sum(axis=(1, 2)), simulated.sum(axis=(1, 2)))
    assert both.pvalue > 1e-4
    as_if_alone = drawn(10 * collections, 600, 1)
    means, spread = differences(real, as_if_alone)
    assert means > 1e-4  # repetition does not move a mean
    assert abs(spread) > 3.9
