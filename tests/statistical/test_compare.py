"""Comparisons of two collections hold what they promise, over many seeds.

Null: both are drawn from one population. 200 seeds x 40 candidates are 8,000 p-values; at level
.001 a Kolmogorov-Smirnov test of that many rejects a distance of .022, which standard errors that
are 5 % off have. (An over-dispersion that cannot be negative makes them about 1 % too large.) A
standard error 20 % too small has the distance .09 and must be rejected.

Power: a shift of 4 standard errors passes a single test at 5 % with probability Φ(4 - 1.96) = .98.
Among 200 candidates it must pass 3.66 standard errors, so 4 give .63 and 5 give .91. With 80 seeds
a bound of .8 is missed with probability 1e-15 at .98, and 5e-4 at .91.
"""

import numpy as np
from scipy import stats

from rappor import Params
from rappor.decoding.compare import compare
from rappor.simulate import simulate

ONE = Params(32, 2, 16, 0.5, 0.25, 0.75)
TWO = Params(32, 2, 16, 0.5, 0.2, 0.8)  # p and q may differ
REPORTS = (40_000, 60_000)
SHARES = 0.6 ** np.arange(20)
POPULATION = {f"v{i:02}": float(share) for i, share in enumerate(SHARES / SHARES.sum())}
SEEDS, ALPHA = 200, 0.001


def drawn(seed, shares_one=POPULATION, shares_two=POPULATION):
    one = simulate(shares_one, ONE, REPORTS[0], seed=[seed, 1]).counts
    two = simulate(shares_two, TWO, REPORTS[1], seed=[seed, 2]).counts
    return one, two


def null():
    """z by candidate, shape (seeds, 40): the 20 of the population, then 20 that nobody holds."""
    names = [*POPULATION, *(f"absent {i}" for i in range(20))]
    found = []
    for seed in range(SEEDS):
        rows = {row.string: row for row in compare(*drawn(seed), names).rows}
        found.append([rows[name].difference / rows[name].std_error for name in names])
    return np.array(found)


def is_uniform(z):
    p_values = 2 * stats.norm.sf(np.abs(z)).ravel()
    return stats.kstest(p_values, "uniform").pvalue > ALPHA


def test_null_p_values_are_uniform_and_errors_a_fifth_too_small_would_be_noticed():
    z = null()
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


def power(errors):
    """How often a shift of so many standard errors is found alone and among 200, and covered."""
    target, names = "v02", [*POPULATION, *(f"absent {i}" for i in range(180))]
    error = compare(*drawn(0), names).row(target).std_error
    shifted = dict(POPULATION)
    shifted[target] += errors * error
    rest = (1 - shifted[target]) / (1 - POPULATION[target])
    shifted = {name: s if name == target else s * rest for name, s in shifted.items()}
    alone = corrected = covered = 0
    for seed in range(1000, 1080):
        row = compare(*drawn(seed, shifted), names).row(target)
        alone += row.p_value <= 0.05
        corrected += row.different
        covered += row.low_95 <= errors * error <= row.high_95
    return alone / 80, corrected / 80, covered / 80


COVERED = 0.95 - 3.3 * (0.95 * 0.05 / 80) ** 0.5  # missed with probability 5e-4


def test_a_shift_of_four_standard_errors_is_found_by_a_single_test():
    alone, corrected, covered = power(4)
    assert alone >= 0.8
    assert 0.45 <= corrected <= 0.8  # .63 ± 3.3 standard errors: what 200 candidates cost
    assert covered >= COVERED


def test_a_shift_of_five_standard_errors_is_found_among_two_hundred_candidates():
    alone, corrected, covered = power(5)
    assert alone >= corrected >= 0.8
    assert covered >= COVERED
