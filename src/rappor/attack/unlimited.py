"""The attacker without limits, who learns B' itself (§6, R57); bounded by ε∞."""

from __future__ import annotations

from rappor.attack.finding import Bound, Finding, most_believed, percent, share_figure
from rappor.attack.settings import check_trials, generator
from rappor.attack.two_values import majority, majority_guesses
from rappor.params import Params
from rappor.privacy.deniability import deniability
from rappor.privacy.loss import epsilon_infinity


def attack(params: Params, *, trials: int = 100_000, seed: int = 0) -> Finding:
    """Guess which of two values a client holds, knowing its B'.

    >>> attack(Params.preset("windows"), trials=1000).exact
    0.84375
    """
    exact = float(majority(params))
    count = check_trials(trials)
    hits = majority_guesses(params, 1, False, count, generator(seed))
    epsilon = epsilon_infinity(params)
    none_left, all_replaced = deniability(params)
    return Finding(
        name="unlimited",
        title="reports without end: B' is known, which of two values is it?",
        sees="so many reports of one client that B' is known for certain",
        does="counts the bits of either value that B' has, and says the value with more",
        params=params,
        settings={"trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound("ε∞", epsilon, most_believed(epsilon)),
        meaning=(
            f"Whoever collects for ever learns B' and still guesses wrong between two values "
            f"{percent(1 - exact)} of the time, because B' is itself noisy."
            if params.f
            else "Without a permanent step (f = 0) whoever collects for ever learns the value."
        ),
        table={
            "chance that coins alone decided all bits of the value": float(all_replaced),
            "chance that B' has none of the value's bits": float(none_left),
        },
    )
