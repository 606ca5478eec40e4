"""Several secrets or devices of one person: each is another look at the value (§6.1)."""

from __future__ import annotations

from dataclasses import replace

from scipy.stats import binom

from rappor.attack.result import (
    AttackFigure,
    AttackResult,
    Bound,
    max_belief,
    percent,
    share_figure,
)
from rappor.attack.seen_fields import if_one_differs
from rappor.attack.settings import check_trials, generator
from rappor.attack.two_values import accuracy, guesses, majority, majority_guesses
from rappor.checks import whole
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.privacy.loss import add_up, epsilon_infinity

SHOWN = (1, 2, 3, 5)
MAX_SECRETS = 100


def attack(
    params: Params,
    *,
    secrets: int = 2,
    trials: int = 100_000,
    seed: int = 0,
    views: Views | None = None,
) -> AttackResult:
    """Combine the B' of one person's r secrets, or of devices that share one.

    >>> round(attack(Params.preset("windows"), secrets=3, trials=1000).exact, 3)
    0.966
    """
    looks = whole("secrets", secrets, 1, MAX_SECRETS)
    count = check_trials(trials)
    apart, shared = float(majority(params, looks)), float(majority(params))
    hits = majority_guesses(params, looks, False, count, generator(seed, 1))
    same = majority_guesses(params, looks, True, count, generator(seed, 2))
    epsilon = add_up([(epsilon_infinity(params), looks)])
    table = {f"accuracy, secrets = {r}": float(majority(params, r)) for r in SHOWN}
    return AttackResult(
        name="secrets",
        title="several secrets or devices of one person",
        sees=f"all reports from {looks} secrets of one person: {looks} different B'",
        does="counts the bits of either value over all B', and says the value with more",
        params=params,
        settings={"secrets": looks, "trials": count, "seed": seed},
        figures=(
            share_figure(f"accuracy with {looks} secrets", apart, int(hits.sum()), count),
            share_figure("accuracy if all share one secret", shared, int(same.sum()), count),
            *_one_time(params, looks, count, seed),
        ),
        bound=Bound(f"{looks} ε∞", epsilon, max_belief(epsilon)),
        meaning=(
            f"A person with {looks} secret{'s' * (looks > 1)} is guessed right {percent(apart)} "
            f"of the time; one secret shared by the account brings that back to "
            f"{percent(shared)}, but does not keep One-time reports (f = 0) of several devices "
            "from adding up."
        ),
        table=table
        | if_one_differs(
            views,
            params,
            f"accuracy, secrets = {looks},",
            lambda seen: _with_own_views(params, looks, seen),
        ),
    )


def _with_own_views(params: Params, secrets: int, seen: float) -> float:
    """The accuracy about a field that each secret's view has with chance `seen`.

    Each secret has a cohort of its own: the number of B' that tell the field is binomial.
    """
    return sum(
        float(binom.pmf(telling, secrets, seen)) * float(majority(params, telling))
        for telling in range(secrets + 1)
    )


def _one_time(params: Params, devices: int, trials: int, seed: int) -> tuple[AttackFigure, ...]:
    """One-time reports without a permanent step: a shared secret does not keep them the same.

    No figure if f = 0 leaves no privacy at all (p = 0 or q = 1).
    """
    if params.p == 0 or params.q == 1:
        return ()
    bare = replace(params, f=0.0)
    hits = guesses(bare, devices, 1, trials, generator(seed, 3))
    label = f"accuracy with One-time reports (f = 0) of {devices} devices, secret shared"
    return (share_figure(label, accuracy(bare, devices), int(hits.sum()), trials),)
