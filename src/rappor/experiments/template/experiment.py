"""Two groups of strings, frequent and rare: which of them come back? An experiment to change.

Change the population, the parameters and what is compared; docs/reproduce.md says what each part
is. `rappor reproduce NAME --experiments FOLDER --output out --seeds 2` is a quick look.
"""

from __future__ import annotations

from typing import NamedTuple

from rappor import Decoded, Params, Population, charts, decode
from rappor.experiments.experiment import Comparison, Experiment, Figure, Outcome, Table
from rappor.experiments.seeds import Progress, mean_sd, replicate
from rappor.simulate import counts

REPORTS = 200_000
PARAMS = Params(k=64, h=1, m=32, f=0.25, p=0.25, q=0.75)
FREQUENT = tuple(f"frequent{number}" for number in range(10))
RARE = tuple(f"rare{number}" for number in range(40))
ABSENT = tuple(f"absent{number}" for number in range(50))  # candidates that nobody holds
POPULATION = Population(
    "two groups",
    strings=(*FREQUENT, *RARE),
    shares=(*[0.05] * len(FREQUENT), *[0.0125] * len(RARE)),
    candidates=(*FREQUENT, *RARE, *ABSENT),
)


class SeedResult(NamedTuple):
    """What one simulated collection gave."""

    frequent: int
    rare: int
    false: int


def decoded_with(seed: int) -> Decoded:
    """Simulate a collection and decode it."""
    return decode(counts(POPULATION, PARAMS, REPORTS, seed=seed), POPULATION.candidates)


def one_seed(seed: int) -> SeedResult:
    """How many strings of each group are detected; at the top level, for other processes."""
    found = {row.string for row in decoded_with(seed).detected}
    return SeedResult(*(len(found.intersection(group)) for group in (FREQUENT, RARE, ABSENT)))


def run(seeds: int, progress: Progress) -> Outcome:
    """Run all seeds, then compare, draw and tabulate."""
    results = replicate(one_seed, seeds, progress, "collections")
    frequent, rare, false = (list(column) for column in zip(*results, strict=True))
    return Outcome(
        comparisons=(
            Comparison(
                f"strings of 5 % that are found, of {len(FREQUENT)}",
                "no figure",  # the number as a paper prints it, or that it has none
                mean_sd(frequent),
                None,  # True: agrees, False: differs, None: nothing was published
                f"Rare strings: {mean_sd(rare)} of {len(RARE)}; false ones: {mean_sd(false)}.",
            ),
        ),
        figures=(
            Figure(
                "found",
                "One collection",
                "The largest estimates of the first collection, with their 95 % intervals.",
                charts.results(decoded_with(1)),
            ),
        ),
        tables=(
            Table(
                "detected",
                "Detected strings by seed",
                ("seed", "frequent", "rare", "false"),
                tuple((seed, *result) for seed, result in enumerate(results, 1)),
            ),
        ),
        text=("Everything is simulated: the truth is known.",),
    )


EXPERIMENT = Experiment(
    name="template",
    title="Which strings come back?",
    source="Not in the paper",
    about=f"{REPORTS:,} clients hold one of {len(FREQUENT) + len(RARE)} strings.",
    run=run,
)
