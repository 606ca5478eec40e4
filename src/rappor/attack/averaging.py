"""Averaging repeated reports, with a memo and without (§1, §3, R2, R57).

Without memoization each report draws new coins, and n reports are n independent looks at the value
through p* and q*. With it the reports average to B', and no further.
"""

from __future__ import annotations

from rappor.attack.draw import ones_without_memo
from rappor.attack.finding import Bound, Finding, most_believed, percent, share_figure
from rappor.attack.scores import MOST_REPORTS
from rappor.attack.settings import check_trials, generator
from rappor.attack.two_values import accuracy, guesses, majority
from rappor.checks import whole
from rappor.mechanism.channel import channel
from rappor.params import Params
from rappor.privacy.loss import add_up, epsilon_n, epsilon_one
from rappor.privacy.survey import averaging_posterior

WARNER_YES, WARNER_ANSWERS = 75, 100  # the paper's survey: 75 of 100 answers say "yes"


def without_memo(params: Params) -> Params:
    """The parameters of a client that draws B' anew for each report: f = 0, p = p*, q = q*.

    >>> without_memo(Params.preset("windows")).q
    0.6875
    """
    p_star, q_star = channel(params)
    return Params(params.k, params.h, params.m, 0.0, float(p_star), float(q_star))


def attack(params: Params, *, reports: int = 200, trials: int = 50_000, seed: int = 0) -> Finding:
    """Average n reports of one client that keeps its B', and of one that does not.

    >>> found = attack(Params.preset("windows"), trials=1000)
    >>> [round(figure.exact, 4) for figure in found.figures]
    [0.8437, 0.9999]
    """
    n = whole("reports", reports, 1, MOST_REPORTS)
    count = check_trials(trials)
    fresh = without_memo(params)
    kept, redrawn = accuracy(params, n), accuracy(fresh, n)
    hits = guesses(params, n, 1, count, generator(seed, 1))
    free = guesses(params, n, 1, count, generator(seed, 2), ones_without_memo, fresh)
    epsilon = epsilon_n(params, n)
    return Finding(
        name="averaging",
        title="averaging repeated reports, with and without a memo",
        sees=f"{n} reports of one client on one unchanged value",
        does="averages each bit, and says the value whose bits the averages favour",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(
            share_figure("accuracy against a client with a memo", kept, int(hits.sum()), count),
            share_figure("accuracy if B' were drawn anew", redrawn, int(free.sum()), count),
        ),
        bound=Bound(f"ε_{n}", epsilon, most_believed(epsilon)),
        meaning=(
            f"Who averages {n} reports guesses right between two values {percent(kept)} of the "
            f"time; without the memo it would be {percent(redrawn)}, and with it never more than "
            f"{percent(float(majority(params)))}."
            if params.f
            else f"Without a permanent step (f = 0) there is no memo: who averages {n} reports "
            f"guesses right between two values {percent(kept)} of the time, more with each."
        ),
        table={
            "accuracy after reports without end, with a memo": float(majority(params)),
            f"ε of {n} reports without a memo": add_up([(epsilon_one(params), n)]),
            'Warner\'s survey, 75 of 100 answers "yes": P(truth is "no")': float(
                averaging_posterior(WARNER_YES, WARNER_ANSWERS)
            ),
        },
    )
