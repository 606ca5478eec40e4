"""The attacker with a window of n reports of one unchanged value (§6, R56); bounded by ε_n."""

from __future__ import annotations

from rappor.attack.finding import Bound, Finding, most_believed, percent, share_figure
from rappor.attack.scores import MOST_REPORTS
from rappor.attack.settings import check_trials, generator
from rappor.attack.two_values import accuracy, guesses, majority
from rappor.checks import whole
from rappor.params import Params
from rappor.privacy.loss import epsilon_n

SHOWN = (1, 2, 7, 14, 30, 100)


def attack(params: Params, *, reports: int = 7, trials: int = 100_000, seed: int = 0) -> Finding:
    """Guess which of two values n reports of one client hold, by the count of ones of each bit.

    >>> round(attack(Params.preset("windows"), reports=7, trials=1000).exact, 4)
    0.7297
    """
    n = whole("reports", reports, 1, MOST_REPORTS)
    count = check_trials(trials)
    exact = accuracy(params, n)
    hits = guesses(params, n, 1, count, generator(seed))
    epsilon = epsilon_n(params, n)
    table = {f"accuracy, n = {shown}": accuracy(params, shown) for shown in SHOWN}
    return Finding(
        name="window",
        title="a window of n reports of one value: which of two is it?",
        sees=f"{n} reports that belong to one client, who holds one of two values throughout",
        does="adds ln L(c) over the bits of either value, c the ones of a bit (R28), and compares",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound(f"ε_{n}", epsilon, most_believed(epsilon)),
        meaning=(
            f"After {n} reports the better guess between two values is right {percent(exact)} "
            f"of the time; reports without end would make it {percent(float(majority(params)))}."
        ),
        table=table | {"accuracy, n without end": float(majority(params))},
    )
