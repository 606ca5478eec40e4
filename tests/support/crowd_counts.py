"""Counts of a crowd with forty known values, twenty of them held: what decoding is tried on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rappor import Params
from rappor.aggregate import Counts
from rappor.simulate import simulate

PARAMS = Params(64, 2, 8, 0.5, 0.25, 0.75)
NAMES = [f"v{i:02}" for i in range(40)]
SHARES = 0.8 ** np.arange(20)
POPULATION = dict(zip(NAMES, SHARES / SHARES.sum(), strict=False))
N = 200_000


def counts(
    population: Mapping[str, float] = POPULATION,
    *,
    params: Params = PARAMS,
    reports: int = N,
    seed: int = 1,
    **more: Any,
) -> Counts:
    return simulate(population, params, reports, seed=seed, **more).counts
