"""Simulated collections that check the bound on learnable strings (§4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rappor.experiments.detected_strings import decode_strings, detected
from rappor.experiments.seeds import Progress, replicate
from rappor.params import Params
from rappor.privacy import learnable_strings, solve_q
from rappor.simulate import Population, simulate, uniform

BASIC = Params.preset("normal")  # p = .5, q = .75, f = 0: only its channel matters here
REPORTS, CANDIDATES, ALPHA = 10**6, 1000, 0.05
POWERS = (0.5, 0.8, 0.95)
HEAVY, HEAVY_SHARE = 5, 0.5  # heavy hitters, and the share of reports that they hold together
PLAIN, WITH_HEAVY, WITH_BLOOM = "equal strings", "with heavy hitters", "through a Bloom filter"


def bloom_params() -> Params:
    """Strings in filters of 128 bits with 2 hashes and 16 cohorts, at the same ε = ln 3."""
    params = Params(128, 2, 16, 0.0, 0.5, 0.75)
    return replace(params, q=solve_q(math.log(3), params))


def strings_at(power: float, params: Params = BASIC, heavy_share: float = 0.0) -> int:
    """How many equally frequent strings are each found with this power, rounded down."""
    found = learnable_strings(params, REPORTS, CANDIDATES, power, heavy_share=heavy_share)
    return math.floor(found)


def with_heavy_hitters(strings: int) -> Population:
    """Equal strings that share what a few heavy ones leave."""
    heavy = [HEAVY_SHARE / HEAVY] * HEAVY
    light = [(1 - HEAVY_SHARE) / strings] * strings
    names = [f"heavy {i}" for i in range(HEAVY)] + [f"light {i}" for i in range(strings)]
    absent = [f"absent {i}" for i in range(CANDIDATES - len(names))]
    return Population("heavy", tuple(names), tuple(heavy + light), (*names, *absent))


def found_share(population: Population, params: Params, kind: str, seed: int) -> float:
    """Share of the equal strings that one collection detects at a family-wise 5 %."""
    counts = simulate(population, params, REPORTS, seed=seed, kind=kind).counts
    decoded = decode_strings(counts, population.candidates)
    light = [name for name in population.strings if not name.startswith("heavy")]
    return float(detected(decoded, light, "bonferroni", ALPHA).mean())


def one_seed(seed: int) -> dict[str, float]:
    """The share found, for each power and for what lowers it."""
    basic = replace(BASIC, k=CANDIDATES)
    shares = {}
    for power in POWERS:
        x = strings_at(power)
        shares[str(power)] = found_share(
            uniform(x, absent=CANDIDATES - x), basic, "category", 100 * seed + x
        )
    x = strings_at(0.5)
    shares[WITH_HEAVY] = found_share(with_heavy_hitters(x), basic, "category", seed)
    shares[WITH_BLOOM] = found_share(
        uniform(x, absent=CANDIDATES - x), bloom_params(), "string", seed
    )
    return shares


def run_all(seeds: int, progress: Progress) -> Mapping[str, list[float]]:
    """Shares found over seeds, by name."""
    runs = replicate(one_seed, seeds, progress, "equal strings")
    return {name: [run[name] for run in runs] for name in runs[0]}
