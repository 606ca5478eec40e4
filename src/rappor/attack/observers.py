"""Attackers who see one report, a window of reports, or all reports of a client (§6).

An eavesdropper or a leaked row shows one report, bounded by ε1; n reports are bounded by ε_n, and
any number by ε∞.
"""

from __future__ import annotations

import numpy as np

from rappor.attack import change
from rappor.attack.evidence import MAX_REPORTS, evidence, whole_scores
from rappor.attack.result import AttackResult, Bound, max_belief, percent, share_figure
from rappor.attack.seen_fields import if_one_differs, over_cohorts
from rappor.attack.settings import batches, check_trials, generator, telling_bits
from rappor.attack.simulated_bits import ones, ones_without_memo
from rappor.attack.two_values import (
    accuracy,
    decide,
    guesses,
    majority,
    majority_guesses,
    two_signals,
)
from rappor.checks import whole
from rappor.mechanism.channel import channel
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.privacy.deniability import deniability
from rappor.privacy.loss import add_up, epsilon_infinity, epsilon_n, epsilon_one
from rappor.privacy.survey import averaging_posterior


def single(
    params: Params, *, trials: int = 100_000, seed: int = 0, views: Views | None = None
) -> AttackResult:
    """Guess which of two values one report holds.

    >>> round(single(Params.preset("windows"), trials=1000).exact, 4)
    0.5952
    """
    count = check_trials(trials)
    exact = accuracy(params, 1)
    hits = guesses(params, 1, 1, count, generator(seed))
    epsilon = epsilon_one(params)
    none_left, all_replaced = deniability(params)
    return AttackResult(
        name="single",
        title="one report: which of two values is it?",
        sees="one report of a client who holds one of two values, equally likely beforehand",
        does="counts the bits of either value that are set, and says the value with more",
        params=params,
        settings={"trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound("ε1", epsilon, max_belief(epsilon)),
        meaning=(
            f"From a single report the best guess between two values is right "
            f"{percent(exact)} of the time; a coin is right 50 %."
        ),
        table={
            "largest change of ln odds by any report (ε1)": epsilon,
            "chance that coins alone decided all bits of the value": float(all_replaced),
            "chance that the permanent step cleared all bits of the value": float(none_left),
            **_by_field(views, params, exact),
        },
    )


def _by_field(
    views: Views | None, params: Params, exact: float, label: str = "accuracy"
) -> dict[str, float]:
    """The figure if one field alone differs; a client has one cohort, and so one view."""
    return if_one_differs(views, params, label, lambda seen: over_cohorts(seen, exact))


SHOWN = (1, 2, 7, 14, 30, 100)


def window(
    params: Params,
    *,
    reports: int = 7,
    trials: int = 100_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Guess which of two values n reports of one client hold, by the count of ones of each bit.

    >>> round(window(Params.preset("windows"), reports=7, trials=1000).exact, 4)
    0.7297
    """
    n = whole("reports", reports, 1, MAX_REPORTS)
    count = check_trials(trials)
    exact = accuracy(params, n)
    hits = guesses(params, n, 1, count, generator(seed))
    epsilon = epsilon_n(params, n)
    table = {f"accuracy, n = {shown}": accuracy(params, shown) for shown in SHOWN}
    return AttackResult(
        name="window",
        title="a window of n reports of one value: which of two is it?",
        sees=f"{n} reports that belong to one client, who holds one of two values throughout",
        does="adds ln L(c) over the bits of either value, c the ones of a bit, and compares",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound(f"ε_{n}", epsilon, max_belief(epsilon)),
        meaning=(
            f"After {n} reports the best guess between two values is right {percent(exact)} "
            f"of the time; after any number of reports, {percent(float(majority(params)))}."
        ),
        table={
            **table,
            "accuracy, any number of reports": float(majority(params)),
            **_by_field(views, params, exact),
        },
    )


def unlimited(
    params: Params, *, trials: int = 100_000, seed: int = 0, views: Views | None = None
) -> AttackResult:
    """Guess which of two values a client holds, knowing its B'.

    >>> unlimited(Params.preset("windows"), trials=1000).exact
    0.84375
    """
    exact = float(majority(params))
    count = check_trials(trials)
    hits = majority_guesses(params, 1, False, count, generator(seed))
    epsilon = epsilon_infinity(params)
    none_left, all_replaced = deniability(params)
    return AttackResult(
        name="unlimited",
        title="any number of reports: B' is known, which of two values is it?",
        sees="all reports of one client, enough to know B' for certain",
        does="counts the bits of either value that B' has, and says the value with more",
        params=params,
        settings={"trials": count, "seed": seed},
        figures=(share_figure("accuracy", exact, int(hits.sum()), count),),
        bound=Bound("ε∞", epsilon, max_belief(epsilon)),
        meaning=(
            f"An attacker who collects any number of reports learns B' and still guesses wrong "
            f"between two values {percent(1 - exact)} of the time, because B' is itself noisy."
            if params.f
            else "Without a permanent step (f = 0) an attacker who collects enough reports "
            "learns the "
            "value."
        ),
        table={
            "chance that coins alone decided all bits of the value": float(all_replaced),
            "chance that B' has none of the value's bits": float(none_left),
            **_by_field(views, params, exact),
        },
    )


WARNER_YES, WARNER_ANSWERS = 75, 100  # the paper's survey: 75 of 100 answers say "yes"


def without_memo(params: Params) -> Params:
    """The parameters of a client that draws B' again for each report: f = 0, p = p*, q = q*.

    >>> without_memo(Params.preset("windows")).q
    0.6875
    """
    p_star, q_star = channel(params)
    return Params(params.k, params.h, params.m, 0.0, float(p_star), float(q_star))


def averaging(
    params: Params,
    *,
    reports: int = 200,
    trials: int = 50_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Average n reports of one client that keeps its B', and of one that does not.

    >>> found = averaging(Params.preset("windows"), trials=1000)
    >>> [round(figure.exact, 4) for figure in found.figures]
    [0.8437, 0.9999]
    """
    n = whole("reports", reports, 1, MAX_REPORTS)
    count = check_trials(trials)
    fresh = without_memo(params)
    kept, redrawn = accuracy(params, n), accuracy(fresh, n)
    hits = guesses(params, n, 1, count, generator(seed, 1))
    free = guesses(params, n, 1, count, generator(seed, 2), ones_without_memo, fresh)
    epsilon = epsilon_n(params, n)
    return AttackResult(
        name="averaging",
        title="averaging repeated reports, with and without a memo",
        sees=f"{n} reports of one client on one unchanged value",
        does="averages each bit, and says the value whose bits the averages favour",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(
            share_figure("accuracy against a client with a memo", kept, int(hits.sum()), count),
            share_figure(
                "accuracy if B' were drawn again each time", redrawn, int(free.sum()), count
            ),
        ),
        bound=Bound(f"ε_{n}", epsilon, max_belief(epsilon)),
        meaning=(
            f"An attacker who averages {n} reports guesses right between two values "
            f"{percent(kept)} "
            f"of the time; without the memo it would be {percent(redrawn)}, and with it never more "
            f"than {percent(float(majority(params)))}."
            if params.f
            else f"Without a permanent step (f = 0) there is no memo: an attacker who averages {n} "
            f"reports guesses right between two values {percent(kept)} of the time, and more often "
            "with more reports."
        ),
        table={
            "accuracy after any number of reports, with a memo": float(majority(params)),
            f"ε of {n} reports without a memo": add_up([(epsilon_one(params), n)]),
            'Warner\'s survey, 75 of 100 answers "yes": P(truth is "no")': float(
                averaging_posterior(WARNER_YES, WARNER_ANSWERS)
            ),
            **_by_field(views, params, kept, "accuracy, with a memo,"),
        },
    )


def _orders(params: Params, reports: int, trials: int, random: np.random.Generator) -> int:
    """Simulate clients that begin with a or with b; how often the order is guessed right."""
    bits = telling_bits(params)
    scores, _ = whole_scores(evidence(params, reports), 4 * bits)
    right = 0
    for batch in batches(trials, 4 * bits):
        first = random.random(batch) < 0.5
        signal = two_signals(first, bits, 2)
        signal[:, 1] = ~signal[:, 1]  # odd reports hold the other value
        found = scores[ones(signal, params, reports, random)]
        favour = found[..., :bits].sum(axis=2) - found[..., bits:].sum(axis=2)
        right += int((decide(favour[:, 0] - favour[:, 1], random) == first).sum())
    return right


def alternating(
    params: Params,
    *,
    reports: int = 100,
    trials: int = 20_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Learn both B' of a client that alternates, n reports of each value.

    >>> found = alternating(Params.preset("windows"), trials=1000)
    >>> [round(figure.exact, 3) for figure in found.figures[:3]]
    [0.929, 0.844, 0.712]
    """
    n = whole("reports", reports, 1, change.MAX_REPORTS)
    count = check_trials(trials)
    order, each = accuracy(params, n, 2), accuracy(params, n)
    ordered = _orders(params, n, count, generator(seed, 1))
    even = guesses(params, n, 1, count, generator(seed, 2))
    odd = guesses(params, n, 1, count, generator(seed, 3))
    seen = change.balanced_figure(
        params, n, count // 10 or 2, seed, "balanced accuracy: does it alternate?"
    )
    epsilon = add_up([(epsilon_n(params, n), 2)])
    return AttackResult(
        name="alternating",
        title="a value that alternates a, b, a, b",
        sees=f"{2 * n} reports of one client whose value alternates, so {n} of either value",
        does="splits even from odd reports, averages each half, and reads both B'",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(
            share_figure("accuracy: a first, or b first?", order, ordered, count),
            share_figure("accuracy: the even value, one of two", each, int(even.sum()), count),
            share_figure(
                "accuracy: both values, each one of two", each**2, int((even & odd).sum()), count
            ),
            seen,
        ),
        bound=Bound(f"2 ε_{n}", epsilon, max_belief(epsilon)),
        meaning=(
            f"The attacker learns both B', so the two values cost the sum of their ε: which value "
            f"comes first is guessed right {percent(order)} of the time instead of "
            f"{percent(each)}, and {percent(seen.exact)} of the time the attacker sees that the "
            "value alternates."
        ),
        table={
            "ε of one value": epsilon_n(params, n),
            "ε of both": epsilon,
            **_by_field(views, params, order, "accuracy: a first, or b first,"),
            **_by_field(views, params, seen.exact, "balanced accuracy: does it alternate,"),
        },
    )
