"""The attacker with one report (§6, R55): an eavesdropper, or one leaked row; bounded by ε1."""

from __future__ import annotations

from rappor.attack.finding import Bound, Finding, most_believed, percent, share_figure
from rappor.attack.settings import check_trials, generator
from rappor.attack.two_values import accuracy, guesses
from rappor.params import Params
from rappor.privacy.deniability import deniability
from rappor.privacy.loss import epsilon_one


def attack(params: Params, *, trials: int = 100_000, seed: int = 0) -> Finding:
    """Guess which of two values one report holds.

    >>> round(attack(Params.preset("windows"), trials=1000).exact, 4)
    0.5952
    """
    count = check_trials(trials)
    exact = accuracy(params, 1)
    hits = guesses(params, 1, 1, count, generator(seed))
    epsilon = epsilon_one(params)
    none_left, all_replaced = deniability(params)
    return Finding(
        name="single",
        title="one report: which of two values is it?",
        sees="one report of a client who holds one of two values, equally likely beforehand",
        does="counts the bits of either value that are set, and says the value with more",
        params=params,
        settings={"trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound("ε1", epsilon, most_believed(epsilon)),
        meaning=(
            f"From a single report the better guess between two values is right "
            f"{percent(exact)} of the time, where a coin is right 50 %."
        ),
        table={
            "largest change of ln odds by any report (ε1)": epsilon,
            "chance that coins alone decided all bits of the value": float(all_replaced),
            "chance that the permanent step cleared all bits of the value": float(none_left),
        },
    )
