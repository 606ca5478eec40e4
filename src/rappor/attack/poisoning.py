"""Forged reports: what a few of them do to a count, and whether a check notices.

A count is estimated by (C - p* N) / (q*-p*), the mean over the h bits of v. A client that holds v
adds 1 to it on average; a forged report with all bits of v set adds (1-p*) / (q*-p*). The check
knows that an honest report has h q* + (k-h) p* ones on average, for any value. It raises an alarm
if the ones of all reports are further from N times that than α = 1 % allows. A forger who sets the
bits of v and fewer of the others keeps that sum, and is not noticed.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rappor.attack.evidence import binomial_sum
from rappor.attack.result import AttackFigure, AttackResult, percent, share_figure
from rappor.attack.settings import check_frequency, check_trials, generator
from rappor.checks import whole
from rappor.errors import ParamsError
from rappor.mechanism.channel import channel, expected_ones, ones_variance
from rappor.mechanism.views import Views
from rappor.params import Params, check_params
from rappor.simulate.drawn_counts import reported_ones
from rappor.typing import FloatArray, IntArray

ALPHA = 0.01
MAX_REPORTS = 10**8
SHOWN = (0.001, 0.005, 0.01, 0.05)


def forged_weight(params: Params) -> float:
    """How many honest clients one forged report is worth, (1-p*) / (q*-p*).

    >>> forged_weight(Params.preset("windows")), forged_weight(Params.preset("chrome"))
    (3.5, 6.5)
    """
    p_star, q_star = channel(params)
    return float((1 - p_star) / (q_star - p_star))


def exposed_share(params: Params, frequency: float, forged: float) -> float:
    """The expected estimate of the share of v if a share of the reports is forged.

    >>> round(exposed_share(Params.preset("windows"), 0.01, 0.01), 4)
    0.0449
    """
    return (1 - forged) * frequency + forged * forged_weight(params)


def mimic_chance(params: Params) -> float:
    """The chance for each other bit that gives a forged report the ones of an honest one."""
    spared = (expected_ones(params, params.h) - params.h) / (params.k - params.h)
    return max(float(spared), 0.0)  # 0 if the bits of v alone are more than an honest report has


def alarm_limit(params: Params, reports: int) -> float:
    """Ones that may be missing or too many in N honest reports, for two-sided α = 1 %."""
    each = float(ones_variance(params, params.h))
    return -NormalDist().inv_cdf(ALPHA / 2) * math.sqrt(reports * each)


def alarm_rate(params: Params, reports: int, forged: int, chance: float) -> float:
    """P(alarm) if `forged` reports have all bits of v, and each other bit with `chance`; exact.

    >>> windows = Params.preset("windows")
    >>> round(alarm_rate(windows, 10_000, 0, 0.0), 3)  # false alarms
    0.01
    """
    p_star, q_star = (float(number) for number in channel(params))
    honest, others = reports - forged, params.k - params.h
    law = binomial_sum(
        [(honest * params.h, q_star), (honest * others, p_star), (forged * others, chance)],
        forged * params.h,
    )
    ones = law.low + np.arange(len(law.chances))
    return float(law.chances[_alarms(params, reports, ones)].sum())


def _alarms(params: Params, reports: int, ones: IntArray) -> NDArray[np.bool_]:
    expected = float(reports * expected_ones(params, params.h))
    return np.asarray(np.abs(ones - expected) > alarm_limit(params, reports))


def simulate_estimates(
    params: Params,
    reports: int,
    forged: int,
    frequency: float,
    trials: int,
    random: np.random.Generator,
) -> FloatArray:
    """Estimated shares of v in `trials` collections with `forged` reports that have its bits."""
    p_star, q_star = (float(number) for number in channel(params))
    honest = reports - forged
    holders = random.binomial(honest, frequency, trials)
    bits = np.repeat(holders[:, None], params.h, axis=1)
    ones = reported_ones(bits, honest, params, 1, random) + forged
    found = ((ones - p_star * reports) / (q_star - p_star)).mean(axis=1) / reports
    return np.asarray(found, np.float64)


def simulate_alarms(
    params: Params,
    reports: int,
    forged: int,
    chance: float,
    trials: int,
    random: np.random.Generator,
) -> int:
    """In how many of `trials` collections the check raises an alarm."""
    honest, others = reports - forged, params.k - params.h
    true_ones = np.full(trials, honest * params.h)
    seen = reported_ones(true_ones, honest * params.k, params, 1, random)
    seen += forged * params.h + random.binomial(forged * others, chance, trials)
    return int(_alarms(params, reports, seen).sum())


def attack(
    params: Params,
    *,
    reports: int = 100_000,
    forged: float = 0.01,
    frequency: float = 0.01,
    trials: int = 2_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Send forged reports that have all bits of v, and estimate the count of v."""
    check_params(params)
    if params.h >= params.k:
        raise ParamsError(f"poisoning needs h below k = {params.k}, got h = {params.h}")
    many = whole("reports", reports, 1, MAX_REPORTS)
    share = check_frequency("frequency", frequency)
    liars = round(many * check_frequency("forged", forged))
    count = check_trials(trials)
    exact = exposed_share(params, share, liars / many)
    estimates = simulate_estimates(params, many, liars, share, count, generator(seed, 1))
    if_zero, if_one = channel(params).noise
    each = share * (1 - share) + (share * if_one + (1 - share) * if_zero) / params.h
    spread = math.sqrt((many - liars) * each / count) / many
    figures = [AttackFigure("estimated share of v", exact, float(estimates.mean()), spread)]
    ways = {
        "alarm if forged reports have every bit set": (liars, 1.0),
        "alarm if they have the bits of v and no other": (liars, 0.0),
        "alarm if they imitate the number of ones": (liars, mimic_chance(params)),
        "alarm without any forgery": (0, 0.0),
    }
    for label, (number, chance) in ways.items():
        random = generator(seed, 2, len(figures))
        alarms = simulate_alarms(params, many, number, chance, count, random)
        rate = alarm_rate(params, many, number, chance)
        figures.append(share_figure(label, rate, alarms, count))
    weight = forged_weight(params)
    beyond = " (estimates are not cut at 100 %: forged bits can count for more than there are)"
    return AttackResult(
        name="poisoning",
        title="forged reports that push a value up",
        sees=f"a collection of {many:,} reports, {liars:,} of which the attacker forges",
        does="sends reports with all bits of v set; crudely, or with the ones of an honest report",
        params=params,
        settings={
            "reports": many,
            "forged": liars / many,
            "frequency": share,
            "trials": count,
            "seed": seed,
        },
        figures=tuple(figures),
        bound=None,
        meaning=(
            f"Each forged report counts for {weight:.3g} honest clients, so "
            f"{percent(liars / many)} of all reports lift v from {percent(share)} to "
            f"{percent(exact)}{beyond if exact > 1 else ''}; "
            f"crude forgery raises an alarm {percent(figures[1].exact)} of the time, careful "
            f"forgery {percent(figures[3].exact)}."
        ),
        table={
            "honest clients that one forged report is worth": weight,
            **{
                f"estimated share with {beta:g} forged": exposed_share(params, share, beta)
                for beta in SHOWN
            },
            **_in_one_view(params, views),
        },
    )


def _in_one_view(params: Params, views: Views | None) -> dict[str, float]:
    """What a forged report of a tuple is worth in the counts of one view.

    A forger chooses the cohort, and so the view; an honest client is in a view by its share of the
    cohorts.
    """
    if views is None:
        return {}
    weight = forged_weight(params)
    return {
        f"the same in the counts of view {', '.join(view.fields)}": weight * params.m / cohorts
        for view, cohorts in zip(views.views, views.cohorts(params.m), strict=True)
    }
