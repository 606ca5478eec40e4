"""Singling out one person or a small group (§6): how good the estimate about them is.

Each of g clients holds v with probability x. From n reports of each, the count is estimated as for
any collection, T = Σ over clients and bits of (c/n - p*) / (q*-p*) / h. Its squared error is

    g [x V1 + (1-x) V0] / h,   V = noise/n + (n-1)/n κ,

noise = p*(1-p*)/(q*-p*)² or q*(1-q*)/(q*-p*)², κ the noise that reports with the same B' share.
Clients that do not hold v are assumed to hold strings that share no bit with it.
"""

from __future__ import annotations

import math

import numpy as np

from rappor.attack.evidence import (
    MAX_REPORTS,
    ScorePart,
    count_laws,
    evidence,
    sum_law,
    whole_scores,
)
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
from rappor.checks import whole
from rappor.decoding.repeats import shared_noise
from rappor.mechanism.channel import channel
from rappor.params import Params, check_params
from rappor.privacy.deniability import deniability
from rappor.privacy.loss import epsilon_n

MAX_CLIENTS = 10**6


def estimate_error(params: Params, clients: int, frequency: float, reports: int = 1) -> float:
    """Root of the mean squared error of the estimated count of v among g clients, in clients.

    >>> round(estimate_error(Params.preset("windows"), 10, 0.1), 2)
    8.82
    """
    shared = shared_noise(params) * (reports - 1)
    if_zero, if_one = ((noise + shared) / reports for noise in channel(params).noise)
    return math.sqrt(clients * (frequency * if_one + (1 - frequency) * if_zero) / params.h)


def guess_accuracy(params: Params, frequency: float, reports: int = 1) -> float:
    """How often the likelier of "holds v" and "does not" is right about one client; exact.

    >>> guess_accuracy(Params.preset("windows"), 0.1)  # one report: no better than "nobody does"
    0.9
    """
    share = check_frequency("frequency", frequency)
    if share in (0.0, 1.0):
        return 1.0
    scores, unit = whole_scores(evidence(params, reports), params.h)
    threshold = _threshold(share, unit)
    if_one, if_zero = count_laws(params, reports)
    holds = sum_law([ScorePart(scores, if_one, params.h)]).above(threshold)
    does_not = 1 - sum_law([ScorePart(scores, if_zero, params.h)]).above(threshold)
    return share * holds + (1 - share) * does_not


def _threshold(frequency: float, unit: float) -> float:
    """The evidence, in whole-number scores, from which v is likelier; half-way between two."""
    return math.floor(math.log((1 - frequency) / frequency) / unit) + 0.5


def spread_of_squares(params: Params, clients: int, frequency: float, reports: int) -> float:
    """Standard deviation of the squared error of one estimate, exact, from fourth moments.

    Given who holds v, errors of bits are independent with mean 0: a sum of n alike with second and
    fourth moments a and b has the fourth moment n b + 3 n (n-1) a².
    """
    p_star, q_star = (float(number) for number in channel(params))
    second = fourth = 0.0
    for law, mean, share in zip(
        count_laws(params, reports), (q_star, p_star), (frequency, 1 - frequency), strict=True
    ):
        error = (np.arange(reports + 1) / reports - mean) / (q_star - p_star) / params.h
        a, b = float(law @ error**2), float(law @ error**4)
        second += share * params.h * a
        fourth += share * (params.h * b + 3 * params.h * (params.h - 1) * a**2)
    whole_fourth = clients * fourth + 3 * clients * (clients - 1) * second**2
    return math.sqrt(max(whole_fourth - (clients * second) ** 2, 0.0))


def _simulate(
    params: Params,
    clients: int,
    share: float,
    reports: int,
    trials: int,
    random: np.random.Generator,
) -> tuple[float, int]:
    """Mean squared error; and how often the guess about one client is right."""
    p_star, q_star = (float(number) for number in channel(params))
    scores, unit = whole_scores(evidence(params, reports), params.h)
    threshold = _threshold(share, unit) if 0 < share < 1 else (-math.inf if share else math.inf)
    total, right = 0.0, 0
    for batch in batches(trials, clients * params.h):
        holds = random.random((batch, clients)) < share
        signal = np.repeat(holds[..., None], params.h, axis=2)
        seen = ones(signal, params, reports, random)
        scaled = (seen / reports - p_star) / (q_star - p_star)
        error = (scaled.sum(axis=(1, 2)) / params.h - holds.sum(axis=1)) ** 2
        total += float(error.sum())
        said = scores[seen[:, 0]].sum(axis=1) > threshold
        right += int((said == holds[:, 0]).sum())
    return total / trials, right


def attack(
    params: Params,
    *,
    clients: int = 10,
    frequency: float = 0.1,
    reports: int = 1,
    trials: int = 20_000,
    seed: int = 0,
) -> AttackResult:
    """Estimate how many of a small group hold v, and guess whether one person does."""
    check_params(params)
    group = whole("clients", clients, 1, MAX_CLIENTS)
    share = check_frequency("frequency", frequency)
    n = whole("reports", reports, 1, MAX_REPORTS)
    count = check_trials(trials)
    exact = estimate_error(params, group, share, n)
    accuracy = guess_accuracy(params, share, n)
    squared, right = _simulate(params, group, share, n, count, generator(seed))
    spread = spread_of_squares(params, group, share, n) / (2 * exact * math.sqrt(count))
    blind = math.sqrt(group * share * (1 - share))
    combined = exact * blind / math.hypot(exact, blind) if blind else 0.0
    none_left, all_replaced = deniability(params)
    epsilon = epsilon_n(params, n)
    plain = max(share, 1 - share)
    return AttackResult(
        name="targeting",
        title="singling out one person or a small group",
        sees=f"{n} report{'s' * (n > 1)} of each of {group} chosen clients, and that "
        f"{share:.3g} of all clients hold v",
        does="estimates how many of them hold v, and guesses whether one of them does",
        params=params,
        settings={
            "clients": group,
            "frequency": share,
            "reports": n,
            "trials": count,
            "seed": seed,
        },
        figures=(
            AttackFigure("error of the estimate, in clients", exact, math.sqrt(squared), spread),
            share_figure("accuracy of the guess about one person", accuracy, right, count),
        ),
        bound=Bound(f"ε_{n}" if n > 1 else "ε1", epsilon),
        meaning=(
            f"The estimate for {group} people is off by {exact:.3g} of them; a guess from the "
            f"frequency alone is off by {blind:.3g}; "
            + (
                f"about a single person the reports raise the accuracy of a guess from "
                f"{percent(plain)} to {percent(accuracy)}."
                if accuracy > plain + 1e-9
                else "about a single person the reports make no guess better "
                f"({percent(plain)} without them)."
            )
        ),
        table={
            "error of a guess without reports, in clients": blind,
            "error of the best mix of both, in clients": combined,
            "accuracy about one person without reports": plain,
            "probability of v for one person, at most": max_belief(epsilon, share),
            "chance that coins alone decided all bits of the value": float(all_replaced),
            "chance that the permanent step cleared all bits of the value": float(none_left),
        },
    )
