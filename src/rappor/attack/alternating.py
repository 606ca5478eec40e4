"""A value that alternates a, b, a, b: even and odd reports are averaged apart (§2.1, R30)."""

from __future__ import annotations

import numpy as np

from rappor.attack.change import MOST_REPORTS, balanced_figure
from rappor.attack.draw import ones
from rappor.attack.finding import Bound, Finding, most_believed, percent, share_figure
from rappor.attack.scores import evidence, whole_scores
from rappor.attack.settings import batches, check_trials, generator, telling_bits
from rappor.attack.two_values import accuracy, decide, guesses, two_signals
from rappor.checks import whole
from rappor.params import Params
from rappor.privacy.loss import add_up, epsilon_n


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


def attack(params: Params, *, reports: int = 100, trials: int = 20_000, seed: int = 0) -> Finding:
    """Learn both B' of a client that alternates, n reports of each value.

    >>> found = attack(Params.preset("windows"), trials=1000)
    >>> [round(figure.exact, 3) for figure in found.figures[:3]]
    [0.929, 0.844, 0.712]
    """
    n = whole("reports", reports, 1, MOST_REPORTS)
    count = check_trials(trials)
    order, each = accuracy(params, n, 2), accuracy(params, n)
    ordered = _orders(params, n, count, generator(seed, 1))
    even = guesses(params, n, 1, count, generator(seed, 2))
    odd = guesses(params, n, 1, count, generator(seed, 3))
    seen = balanced_figure(
        params, n, count // 10 or 2, seed, "balanced accuracy: does it alternate?"
    )
    epsilon = add_up([(epsilon_n(params, n), 2)])
    return Finding(
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
        bound=Bound(f"2 ε_{n}", epsilon, most_believed(epsilon)),
        meaning=(
            f"Both B' are learnt, so the two values cost the sum of their ε: which of two comes "
            f"first is guessed right {percent(order)} of the time instead of {percent(each)}, and "
            f"that the value alternates is seen {percent(seen.exact)} of the time."
        ),
        table={"ε of one value": epsilon_n(params, n), "ε of both": epsilon},
    )
