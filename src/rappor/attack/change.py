"""Seeing that a value changed between two windows of reports: memoization does not hide it (§6).

Unchanged, both windows come from one B'; changed, from two independent ones. The attacker knows
neither value, so every bit has the same chance of being set in B', π = f/2 + (1-f) h/k, and the
evidence of a bit with c ones in the first window and c' in the second is

    w(c, c') = ln[π M1(c) M1(c') + (1-π) M0(c) M0(c')] - ln P(c) - ln P(c'),   P = π M1 + (1-π) M0.

The attacker says "unchanged" if the sum over all k bits is above 0. The two values share no bit,
unless k < 2h.

A change of one field of a tuple leaves B' as it is in cohorts whose view lacks the field: there it
is judged like no change, and the balanced accuracy is 1/2.
"""

from __future__ import annotations

import math

import numpy as np

from rappor.attack.evidence import (
    ScorePart,
    binomial_sum,
    counted,
    difference,
    mixed,
    normalised,
    sum_law,
    whole_scores,
)
from rappor.attack.result import AttackFigure, AttackResult, Bound, percent
from rappor.attack.seen_fields import seeing_cohorts
from rappor.attack.settings import batches, check_trials, generator, telling_bits
from rappor.attack.simulated_bits import ones_of_memo, permanent
from rappor.attack.two_values import decide
from rappor.checks import whole
from rappor.mechanism.prr import flip_probability
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.privacy.loss import add_up, epsilon_n
from rappor.typing import BoolArray, FloatArray, IntArray

MAX_REPORTS = 400  # the table of pairs of counts has (n+1)² entries
SHOWN = (1, 3, 7, 14, 30)
EVERY_COHORT = np.ones(1, bool)
MIN_STEPS = 1024  # many bits of faint evidence decide together: rounding must keep all of them


def same_scores(params: Params, reports: int, set_share: float) -> FloatArray:
    """w(c, c') for bits that B' sets with probability π; shape (n+1, n+1)."""
    law = counted(params, reports)
    both_set = law.if_set[:, None] + law.if_set
    both_clear = law.if_clear[:, None] + law.if_clear
    alone = mixed(*law, set_share)
    return difference(mixed(both_set, both_clear, set_share), alone[:, None] + alone)


def pair_laws(params: Params, reports: int, set_share: float) -> tuple[FloatArray, FloatArray]:
    """P(c, c') for a bit of one B' in both windows, set with probability π; and P(c) for one."""
    law = counted(params, reports)
    both = mixed(law.if_set[:, None] + law.if_set, law.if_clear[:, None] + law.if_clear, set_share)
    return normalised(both), normalised(mixed(*law, set_share))


def rule(params: Params, reports: int) -> IntArray:
    """The attacker's whole-number scores w(c, c') for every bit, knowing neither value."""
    flip = float(flip_probability(params))
    set_share = flip + (1 - 2 * flip) * params.h / params.k
    return whole_scores(same_scores(params, reports, set_share), params.k, least=MIN_STEPS)[0]


def rates(params: Params, reports: int) -> tuple[float, float]:
    """P("unchanged" | unchanged), and P("changed" | changed); exact for the rule.

    >>> [round(rate, 2) for rate in rates(Params.preset("windows"), 7)]
    [0.96, 0.96]
    """
    scores = rule(params, reports)
    flip, differ = float(flip_probability(params)), telling_bits(params)
    clear_pair, clear = pair_laws(params, reports, flip)
    set_pair, held = pair_laws(params, reports, 1 - flip)
    common = params.h - differ
    unchanged = sum_law(
        [ScorePart(scores, clear_pair, params.k - params.h), ScorePart(scores, set_pair, params.h)]
    )
    changed = sum_law(
        [
            ScorePart(scores, np.outer(clear, clear), params.k - params.h - differ),
            ScorePart(scores, np.outer(held, held), common),
            ScorePart(scores, np.outer(held, clear), differ),
            ScorePart(scores, np.outer(clear, held), differ),
        ]
    )
    return unchanged.above(), 1 - changed.above()


def balanced_accuracy(params: Params, reports: int) -> float:
    """The mean of both rates: how often the rule is right if half of the clients change."""
    return sum(rates(params, reports)) / 2


def by_noise_alone(params: Params, reports: int) -> float:
    """Balanced accuracy from k bits that neither value sets: what the permanent noise reveals.

    >>> round(by_noise_alone(Params.preset("windows"), 7), 3)
    0.955
    """
    flip = float(flip_probability(params))
    scores, _ = whole_scores(same_scores(params, reports, flip), params.k, least=MIN_STEPS)
    pair, alone = pair_laws(params, reports, flip)
    unchanged = sum_law([ScorePart(scores, pair, params.k)]).above()
    changed = sum_law([ScorePart(scores, np.outer(alone, alone), params.k)]).above()
    return (unchanged + 1 - changed) / 2


def simulate(
    params: Params,
    reports: int,
    changed: bool,
    trials: int,
    generator: np.random.Generator,
    seeing: BoolArray = EVERY_COHORT,
) -> int:
    """Simulate clients that all keep, or all change, their value; how many are judged rightly.

    A changed value has another B' if the view of the client's cohort shows the change: `seeing`,
    one truth value for each cohort.
    """
    scores = rule(params, reports)
    before, after = signals(params)
    right = 0
    for batch in batches(trials, 2 * params.k):
        memo = permanent(np.broadcast_to(before, (batch, params.k)), params, generator)
        first = ones_of_memo(memo, params, reports, generator)
        if changed:
            other = permanent(np.broadcast_to(after, (batch, params.k)), params, generator)
            if not seeing.all():
                other = np.where(generator.choice(seeing, (batch, 1)), other, memo)
            memo = other
        second = ones_of_memo(memo, params, reports, generator)
        said_same = decide(scores[first, second].sum(axis=1), generator)
        right += int((said_same != changed).sum())
    return right


def signals(params: Params) -> tuple[BoolArray, BoolArray]:
    """The true bits of two values that have as few in common as k allows, shape (k,) each."""
    before = np.arange(params.k) < params.h
    start = telling_bits(params)
    after = (np.arange(params.k) >= start) & (np.arange(params.k) < start + params.h)
    return before, after


def balanced_figure(
    params: Params,
    reports: int,
    trials: int,
    seed: int,
    label: str,
    seeing: BoolArray = EVERY_COHORT,
    stream: int = 11,
) -> AttackFigure:
    """Balanced accuracy, exact and simulated on half of the trials each way.

    `seeing` says which cohorts see the change. Figures of one attack need streams that are two
    apart, so that their simulations are independent.
    """
    kept, changed = rates(params, reports)
    seen = float(seeing.mean())
    changed = seen * changed + (1 - seen) * (1 - kept)
    half = max(1, trials // 2)
    right = simulate(params, reports, False, half, generator(seed, stream))
    right += simulate(params, reports, True, half, generator(seed, stream + 1), seeing)
    spread = math.sqrt(max(kept * (1 - kept) + changed * (1 - changed), 0.0) / half) / 2
    law = binomial_sum([(half, kept), (half, changed)])
    p_value = min(1.0, 2 * min(law.upto(right), 1 - law.upto(right - 1)))
    exact = (kept + changed) / 2
    return AttackFigure(label, exact, right / (2 * half), spread, p_value=p_value)


def _of_fields(
    params: Params, reports: int, trials: int, seed: int, views: Views | None
) -> dict[str, AttackFigure]:
    """The figure for each field of a tuple that changes alone, averaged over cohorts."""
    if views is None:
        return {}
    return {
        name: balanced_figure(
            params,
            reports,
            trials,
            seed,
            f"balanced accuracy if only {name} changes ({int(seeing.sum())} of {params.m} cohorts "
            "see it)",
            seeing,
            13 + 2 * number,
        )
        for number, (name, seeing) in enumerate(seeing_cohorts(views, params).items())
    }


def attack(
    params: Params,
    *,
    reports: int = 7,
    trials: int = 10_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Tell whether a client's value changed between two windows of n reports each.

    With the views of a tuple, also whether one field alone changed: the mean over cohorts.

    >>> round(attack(Params.preset("windows"), reports=7, trials=100).exact, 3)
    0.958
    """
    n = whole("reports", reports, 1, MAX_REPORTS)
    count = check_trials(trials)
    kept, changed = rates(params, n)
    figure = balanced_figure(params, n, count, seed, "balanced accuracy")
    fields = _of_fields(params, n, count, seed, views)
    epsilon = add_up([(epsilon_n(params, n), 2)])
    return AttackResult(
        name="change",
        title="did the value change between two windows?",
        sees=f"two windows of {n} reports each of one client; neither value is known",
        does="compares how often each bit was 1 in both windows: from one B', or from two?",
        params=params,
        settings={"reports": n, "trials": count, "seed": seed},
        figures=(figure, *fields.values()),
        bound=Bound(f"2 ε_{n}", epsilon),
        meaning=(
            f"The attacker tells rightly whether the value changed in {percent(figure.exact)} of "
            "the "
            f"cases, from two windows of {n} reports: memoization hides which values a client has "
            "had, not that they differ."
            + "".join(
                f" If only {name} changes, it is {percent(part.exact)} over all cohorts, because a "
                "change outside the view cannot be seen (50 %)."
                for name, part in fields.items()
                if part.exact < figure.exact
            )
        ),
        table={
            "unchanged values seen as such": kept,
            "changed values seen as such": changed,
            "balanced accuracy by bits that neither value has": by_noise_alone(params, n),
            **{f"balanced accuracy, n = {x}": balanced_accuracy(params, x) for x in SHOWN},
        },
    )
