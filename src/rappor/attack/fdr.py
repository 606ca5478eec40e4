"""Picking the clients that hold v by their reports: how many of those picked do not (§6, Figure 7).

The attacker picks every report with all h bits of v set. At frequency x, the false share is

    FDR = (1-x) p*^h / [(1-x) p*^h + x q*^h] = 1 - P(v | all h bits set).

Clients that do not hold v are assumed to hold strings that share no bit with it.
"""

from __future__ import annotations

import numpy as np

from rappor.attack.posterior import chances, given_ones
from rappor.attack.result import (
    AttackFigure,
    AttackResult,
    Bound,
    max_belief,
    percent,
    share_figure,
)
from rappor.attack.settings import batches, check_frequency, check_trials, generator
from rappor.attack.simulated_bits import ones
from rappor.checks import exact
from rappor.params import Params, check_params
from rappor.privacy.loss import epsilon_one

SHOWN = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


def false_discovery_rate(params: Params, frequency: float) -> float:
    """Share of the reports with all h bits of v set that do not hold v; exact.

    Args:
        params: the parameters of the collection.
        frequency: share of clients that hold v, 0 to 1.

    >>> windows = Params.preset("windows")
    >>> [round(false_discovery_rate(windows, x), 3) for x in (0.01, 0.1)]
    [0.985, 0.858]
    """
    check_params(params)
    return float(1 - given_ones(params, frequency, params.h))


def picked_share(params: Params, frequency: float) -> float:
    """Share of all reports that have all h bits of v set, rightly or not.

    >>> round(picked_share(Params.preset("windows"), 0.1), 3)
    0.332
    """
    share = exact(check_frequency("frequency", frequency))
    if_held, if_not = chances(params, params.h)
    return float(share * if_held + (1 - share) * if_not)


def attack(
    params: Params, *, frequency: float = 0.1, trials: int = 100_000, seed: int = 0
) -> AttackResult:
    """Pick the reports with all h bits of v set, and count those of clients without v."""
    check_params(params)
    share = check_frequency("frequency", frequency)
    count = check_trials(trials)
    random = generator(seed)
    picked = false = 0
    for batch in batches(count, params.h):
        holds = random.random(batch) < share
        shown = ones(np.repeat(holds[:, None], params.h, axis=1), params, 1, random)
        chosen = shown.all(axis=1)
        picked += int(chosen.sum())
        false += int((chosen & ~holds).sum())
    rate = false_discovery_rate(params, share)
    epsilon = epsilon_one(params)
    label = "share of those picked who do not hold v"
    return AttackResult(
        name="fdr",
        title="picking out the clients that hold a value",
        sees="one report of each client",
        does="picks every report that has all h bits of v set",
        params=params,
        settings={"frequency": share, "trials": count, "seed": seed},
        figures=(
            share_figure(label, rate, false, picked) if picked else AttackFigure(label, rate),
            share_figure("share of all who are picked", picked_share(params, share), picked, count),
        ),
        bound=Bound("ε1", epsilon, 1 - max_belief(epsilon, share), least=True),
        meaning=(
            f"Of those picked, {percent(rate)} do not hold v; of clients picked at random it "
            "would be "
            f"{percent(1 - share)}: "
            + (
                "a picked client probably does not hold it."
                if rate > 0.5
                else "a picked client probably holds it."
            )
        ),
        table={f"false share at frequency {x:g}": false_discovery_rate(params, x) for x in SHOWN},
    )
