"""Comparisons of two collections hold what they promise, over many seeds.

Null: both are drawn from one population. 100 seeds x 40 candidates are 4,000 p-values; at level
.001 a Kolmogorov-Smirnov test of that many rejects a distance of .031, which standard errors that
are 7 % off have. (An over-dispersion that cannot be negative makes them about 1 % too large.) A
standard error 20 % too small has the distance .11 and must be rejected. `make test` has 25 seeds:
1,000 p-values reject a distance of .062, and a standard error 30 % too small has .17.

Power: a shift of 4 standard errors passes a single test at 5 % with probability Φ(4 - 1.96) = .98.
Among 200 candidates it must pass 3.66 standard errors, so 4 give .63 and 5 give .91. With 80 seeds
a bound of .8 is missed with probability 1e-15 at .98, and 5e-4 at .91. `make test` has 12 seeds of
5 standard errors: 7 or more are found among 200 candidates with probability 1 - 3e-4, and where
standard errors are twice as large as they should be (a power of .12) with 2e-4.
"""

import numpy as np
import pytest
from scipy import stats

from rappor import Params
from rappor.decoding.compare import compare
from rappor.simulate import simulate

ONE = Params(32, 2, 16, 0.5, 0.25, 0.75)
TWO = Params(32, 2, 16, 0.5, 0.2, 0.8)  # p and q may differ
REPORTS = (40_000, 60_000)
SHARES = 0.6 ** np.arange(20)
POPULATION = {f"v{i:02}": float(share) for i, share in enumerate(SHARES / SHARES.sum())}
ALPHA = 0.001


def drawn(seed, shares_one=POPULATION, shares_two=POPULATION):
    one = simulate(shares_one, ONE, REPORTS[0], seed=[seed, 1]).counts
    two = simulate(shares_two, TWO, REPORTS[1], seed=[seed, 2]).counts
    return one, two


def null(seeds):
    """z by candidate, shape (seeds, 40): the 20 of the population, then 20 that nobody holds."""
    names = [*POPULATION, *(f"absent {i}" for i in range(20))]
    found = []
    for seed in range(seeds):
        rows = {row.string: row for row in compare(*drawn(seed), names).rows}
        found.append([rows[name].difference / rows[name].std_error for name in names])
    return np.array(found)


def is_uniform(z):
    p_values = 2 * stats.norm.sf(np.abs(z)).ravel()
    return stats.kstest(p_values, "uniform").pvalue > ALPHA


@pytest.mark.long
def test_null_p_values_are_uniform_and_errors_a_third_too_small_would_be_noticed():
    z = null(25)
    assert is_uniform(z)
    assert not is_uniform(z / 0.7)
    assert stats.kstest(z.ravel(), "norm").pvalue > ALPHA  # no side is favoured


@pytest.mark.long
def test_null_p_values_are_uniform_and_errors_a_fifth_too_small_would_be_noticed():
    z = null(100)
    sets = {
        "all": z,
        "always found: in the fit of both": z[:, :6],
        "found in some seeds, in one or in both": z[:, 6:20],
        "held by nobody": z[:, 20:],
    }
    for name, these in sets.items():
        assert is_uniform(these), name
        assert not is_uniform(these / 0.8), name
    assert stats.kstest(z.ravel(), "norm").pvalue > ALPHA  # no side is favoured


def power(errors, seeds):
    """How often a shift of so many standard errors is found alone and among 200, and covered."""
    target, names = "v02", [*POPULATION, *(f"absent {i}" for i in range(180))]
    error = compare(*drawn(0), names).row(target).std_error
    shifted = dict(POPULATION)
    shifted[target] += errors * error
    rest = (1 - shifted[target]) / (1 - POPULATION[target])
    shifted = {name: s if name == target else s * rest for name, s in shifted.items()}
    alone = corrected = covered = 0
    for seed in range(1000, 1000 + seeds):
        row = compare(*drawn(seed, shifted), names).row(target)
        alone += row.p_value <= 0.05
        corrected += row.different
        covered += row.low_95 <= errors * error <= row.high_95
    return alone / seeds, corrected / seeds, covered / seeds


COVERED = 0.95 - 3.3 * (0.95 * 0.05 / 80) ** 0.5  # missed with probability 5e-4


@pytest.mark.long
def test_a_shift_of_four_standard_errors_is_found_by_a_single_test():
    alone, corrected, covered = power(4, 80)
    assert alone >= 0.8
    assert 0.45 <= corrected <= 0.8  # .63 ± 3.3 standard errors: what 200 candidates cost
    assert covered >= COVERED


@pytest.mark.parametrize(
    ("seeds", "found", "cover"),
    [(12, 7 / 12, 8 / 12), pytest.param(80, 0.8, COVERED, marks=pytest.mark.long)],
)
def test_a_shift_of_five_standard_errors_is_found_among_two_hundred_candidates(seeds, found, cover):
    """Fewer than 8 of 12 intervals cover with probability 2e-4."""
    alone, corrected, covered = power(5, seeds)
    assert alone >= corrected >= found
    assert covered >= cover
