"""One seed of one scenario: the counts, the candidates and the truth behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from calibration.scenarios import SCENARIOS, Scenario
from rappor import privacy, simulate
from rappor.aggregate import Counts
from rappor.decoding.design import Design, build_design

FRESH = 20_140_703  # added to every seed, so that no other use of a seed shares its numbers


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A collection whose truth is known; arrays are in the order of `design.strings`.

    Attributes:
        counts: what the decoder sees.
        design: the candidates.
        shares: the candidates' shares of the population.
        truth: how many reports really hold each candidate.
        is_null: which candidates count as false when detected.
        is_negligible: which ones do for the practical false discovery rate.
        error: the standard error of a count, from the parameters alone.
    """

    scenario: Scenario
    seed: int
    counts: Counts = field(repr=False)
    design: Design = field(repr=False)
    shares: np.ndarray = field(repr=False)
    truth: np.ndarray = field(repr=False)
    is_null: np.ndarray = field(repr=False)
    is_negligible: np.ndarray = field(repr=False)
    error: float


def names_of(scenario: Scenario, label: str) -> list[str]:
    return [f"{label}{number}" for number in range(1, len(scenario.shares) + 1)]


def label_of(seed: int, same_names: bool) -> str:
    """What the names of strings begin with: it decides which bits they fall on."""
    return "V_" if same_names else f"{seed}/"


@lru_cache(maxsize=1)
def _design(name: str, label: str) -> Design:
    scenario = SCENARIOS[name]
    names = names_of(scenario, label)
    listed = [names[number] for number in np.flatnonzero(scenario.listed)]
    return build_design(listed, scenario.params, scenario.dialect)


def draw(name: str, seed: int, same_names: bool = False) -> Case:
    """Draw a seed. Names, and so bits, are new for each seed, unless `same_names`."""
    scenario = SCENARIOS[name]
    label = label_of(seed, same_names)
    names = names_of(scenario, label)
    drawn = simulate.simulate(
        population(scenario, names),
        scenario.params,
        scenario.reports,
        seed=[seed, FRESH],
        dialect=scenario.dialect,
        cohort_sizes=1 / np.arange(1, scenario.params.m + 1) if scenario.uneven else None,
        reports_per_client=scenario.repeats,
        values="changing" if scenario.change else "same",
        change=scenario.change or None,
    )
    design = _design(name, label)
    listed = design.strings.strings
    share_of = dict(zip(names, scenario.shares, strict=True))
    shares = np.array([share_of[string] for string in listed])
    truth = np.array([drawn.truth.get(string, 0) for string in listed], float)
    error = float(privacy.standard_error(scenario.params, scenario.reports))
    return Case(
        scenario=scenario,
        seed=seed,
        counts=drawn.counts,
        design=design,
        shares=shares,
        truth=truth,
        is_null=shares * scenario.reports <= scenario.null_errors * error,
        is_negligible=truth < 0.5 * error,
        error=error,
    )


def population(scenario: Scenario, names: list[str]) -> dict[str, float]:
    """The strings that someone holds, listed or not."""
    return {
        names[number]: float(scenario.shares[number]) for number in np.flatnonzero(scenario.shares)
    }
