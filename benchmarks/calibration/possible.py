"""How much of what the oracle detects can any decoder detect that has to estimate the others?

    PYTHONPATH=benchmarks python -m calibration.possible

The oracle knows the share of every other string. A decoder knows at best the *law* of shares: how
many strings are how frequent, but not which. The best estimate from that leaves an error in every
other string, which is noise to the test of a string. In the limit of large designs it makes the
variance of every test larger by a factor T, the fixed point of state evolution (Bayati and
Montanari 2011, "The dynamics of message passing on dense graphs"; Guo and Verdu 2005):

    T = V / J(V),    V = 1 + Σ_c mmse(μ_c; T) / n,

μ_c the share of candidate c in standard errors of the oracle, mmse the error of the posterior mean
seen through normal noise of variance T, n = m k the number of bits. J is the part of the
information on a bit that is left where unlisted strings lift bits and only the law of their lifts
is known; it is 1 where all strings are listed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from calibration.measure import ALPHA, CORRECTIONS
from calibration.scenarios import SCENARIOS, Scenario
from rappor import privacy
from rappor.decoding.significance import adjust

KNOWN = ("S1", "S2", "S3", "S4", "S4b", "S6b", "S6d", "S6e", "S8")  # cohorts of one size
DRAWS = 400
_STEP = 0.1  # of z, in standard errors
_FINE = 0.02  # of a bit's residual
_BEYOND = 8.0  # standard errors beyond which nothing is
_MAX_ROUNDS = 100
_SETTLED = 1e-5


class Possible(NamedTuple):
    """Mean true positives by correction, "family" and "fdr"."""

    factor: float  # T
    oracle: dict[str, float]
    best: dict[str, float]


def mmse(mu: np.ndarray, variance: float) -> float:
    """Σ of the squared errors of posterior means that know the law of all μ.

    Half the μ are 1, half 0: nothing is learnt through much noise, all through little.

    >>> half = np.repeat([0.0, 1.0], 50)
    >>> [round(mmse(half, variance), 2) for variance in (1000.0, 1.0, 0.001)]
    [24.99, 19.9, 0.0]
    """
    values, counts = np.unique(np.round(mu, 2), return_counts=True)
    sd = float(np.sqrt(variance))
    step = _STEP * sd
    z = np.arange(-_BEYOND * sd, values[-1] + _BEYOND * sd, step)
    total = 0.0
    for start in range(0, len(z), 1 << 12):
        here = z[start : start + (1 << 12), None]
        density = np.exp(-0.5 * (here - values) ** 2 / variance) * counts
        whole = density.sum(axis=1)
        some = whole > 1e-300
        first, second = (density @ values**power for power in (1, 2))
        spread = second[some] - first[some] ** 2 / whole[some]
        total += float(spread.sum()) * step / np.sqrt(2 * np.pi * variance)
    return max(float(total), 0.0)


def information_left(lifts: np.ndarray, chance: float) -> float:
    """J: the information on a shift of normal noise, lifted by amounts whose law is known.

    Each lift, in standard deviations of the noise, is on a bit with this chance. A far one costs
    nothing, because it is seen.

    >>> [round(information_left(np.array(lifts), 0.1), 3) for lifts in ([], [20.0], [2.0])]
    [1.0, 1.0, 0.788]
    """
    at = np.arange(-_BEYOND, _BEYOND + float(lifts.sum()), _FINE)
    density = np.exp(-0.5 * at**2) / np.sqrt(2 * np.pi)
    for lift in lifts:
        density = (1 - chance) * density + chance * np.interp(at - lift, at, density, left=0.0)
    slope = np.gradient(density, _FINE)
    some = density > 1e-30
    return float((slope[some] ** 2 / density[some]).sum()) * _FINE


def factor(mu: np.ndarray, lifts: np.ndarray, chance: float, bits: int) -> float:
    """T; lifts in standard deviations of a bit's noise."""
    found = 1.0
    for _ in range(_MAX_ROUNDS):
        noise = 1.0 + mmse(mu, found) / bits
        before, found = found, noise / information_left(lifts / np.sqrt(noise), chance)
        if abs(found - before) < _SETTLED:
            break
    return found


def possible(scenario: Scenario, draws: int = DRAWS) -> Possible:
    """What the oracle finds, and what the best decoder finds that knows the law of shares alone."""
    params = scenario.params
    error = float(privacy.standard_error(params, scenario.reports)) / scenario.reports
    mu = scenario.shares[scenario.listed] / error
    heavy = scenario.shares[~scenario.listed] / (error * np.sqrt(params.m * params.h))
    is_null = mu <= scenario.null_errors
    larger = factor(mu, heavy, params.h / params.k, params.m * params.k)
    noise = np.random.default_rng(1).standard_normal((draws, len(mu)))
    found = []
    for variance in (1.0, larger):
        p_values = ndtr(-(mu / np.sqrt(variance) + noise))
        found.append(
            {
                label: float(
                    np.mean([((adjust(p, name) <= ALPHA) & ~is_null).sum() for p in p_values])
                )
                for label, name in CORRECTIONS.items()
            }
        )
    return Possible(larger, *found)


def main() -> None:
    """Print the table."""
    for name in KNOWN:
        found = possible(SCENARIOS[name])
        print(
            f"{name:4} T {found.factor:.3f}",
            *(
                f"{label} {found.best[label]:.1f} of {found.oracle[label]:.1f} = "
                f"{100 * found.best[label] / found.oracle[label]:.0f} %"
                for label in CORRECTIONS
            ),
            sep="   ",
        )


if __name__ == "__main__":
    main()
