"""How probable v is, given what its h bits show in one report (§6, Figure 8).

With j of its h bits set, and frequency x,

    P(v) = x q*^j (1-q*)^(h-j) / [x q*^j (1-q*)^(h-j) + (1-x) p*^j (1-p*)^(h-j)].

Clients that do not hold v are assumed to hold strings that share no bit with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

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
from rappor.attack.targeting import guess_accuracy
from rappor.checks import exact, show, whole
from rappor.errors import ParamsError
from rappor.mechanism.channel import channel
from rappor.params import Params, check_params
from rappor.privacy.loss import epsilon_one


def posterior(params: Params, frequency: float, pattern: str | Sequence[int]) -> float:
    """Exact probability that a client holds v, given the h bits of v in its one report.

    Args:
        params: the parameters of the collection.
        frequency: share of clients that hold v, 0 to 1.
        pattern: what the h bits show, as "10" or (1, 0); their order does not matter.

    >>> windows = Params.preset("windows")
    >>> [round(posterior(windows, 0.1, pattern), 4) for pattern in ("00", "01", "11")]
    [0.0536, 0.0884, 0.1424]
    """
    return float(given_ones(params, frequency, _ones_in(params, pattern)))


def given_ones(params: Params, frequency: float, set_bits: int) -> Fraction:
    """The same as an exact rational, for j of the h bits set."""
    share = exact(check_frequency("frequency", frequency))
    if_held, if_not = chances(params, set_bits)
    return share * if_held / (share * if_held + (1 - share) * if_not)


def chances(params: Params, set_bits: int) -> tuple[Fraction, Fraction]:
    """P(one pattern with j of h bits set | v), and P(the same | not v); neither is 0."""
    p_star, q_star = channel(params)
    rest = params.h - set_bits
    return q_star**set_bits * (1 - q_star) ** rest, p_star**set_bits * (1 - p_star) ** rest


def crossing(params: Params, set_bits: int | None = None) -> float:
    """The frequency below which "not v" is likelier, if `set_bits` bits of v are set.

    With all h of them, the default, p*^h / (p*^h + q*^h): .401 at the paper's parameters, where the
    text names 10 %.

    >>> windows = Params.preset("windows")
    >>> [round(crossing(windows, set_bits), 3) for set_bits in (None, 2, 1, 0)]
    [0.401, 0.401, 0.534, 0.662]
    """
    shown = params.h if set_bits is None else whole("set_bits", set_bits, 0, params.h)
    if_held, if_not = chances(params, shown)
    return float(if_not / (if_held + if_not))


def _ones_in(params: Params, pattern: str | Sequence[int]) -> int:
    check_params(params)
    try:
        bits = [int(bit) for bit in pattern]
    except (TypeError, ValueError):
        bits = []
    if len(bits) != params.h or set(bits) - {0, 1}:
        raise ParamsError(
            f"pattern must be h = {params.h} bits, each 0 or 1, such as "
            f"{'1' * params.h!r}; got {show(pattern)}"
        )
    return sum(bits)


def attack(
    params: Params, *, frequency: float = 0.1, trials: int = 100_000, seed: int = 0
) -> AttackResult:
    """Look at the h bits of v in one report of each client, and say "v" if that is likelier."""
    check_params(params)
    share = check_frequency("frequency", frequency)
    count = check_trials(trials)
    random = generator(seed)
    believed = [float(given_ones(params, share, j)) for j in range(params.h + 1)]
    held_by, seen_by = np.zeros(params.h + 1, np.int64), np.zeros(params.h + 1, np.int64)
    right = 0
    for batch in batches(count, params.h):
        holds = random.random(batch) < share
        shown = ones(np.repeat(holds[:, None], params.h, axis=1), params, 1, random).sum(axis=1)
        seen_by += np.bincount(shown, minlength=params.h + 1)
        held_by += np.bincount(shown[holds], minlength=params.h + 1)
        right += int(((np.array(believed)[shown] > 0.5) == holds).sum())
    figures = [
        share_figure(f"P(v) where {j} of its {params.h} bits are set", believed[j], held, seen)
        if seen
        else AttackFigure(f"P(v) where {j} of its {params.h} bits are set", believed[j])
        for j, held, seen in zip(
            range(params.h, -1, -1), held_by.tolist()[::-1], seen_by.tolist()[::-1], strict=True
        )
    ]
    figures.append(
        share_figure("accuracy of the best guess", guess_accuracy(params, share), right, count)
    )
    cross, epsilon = crossing(params), epsilon_one(params)
    return AttackResult(
        name="posterior",
        title="is it this value? Belief after one report",
        sees=f"one report of a client, and that {share:.3g} of all clients hold v",
        does="applies Bayes' rule to the h bits of v, and says v if that is above one half",
        params=params,
        settings={"frequency": share, "trials": count, "seed": seed},
        figures=tuple(figures),
        bound=Bound("ε1", epsilon, max_belief(epsilon, share)),
        meaning=(
            f"Even a report with all bits of v set makes v only {percent(believed[-1])} "
            f"probable; v is the better guess only if more than {percent(cross)} of all "
            "clients hold it."
            if share <= cross
            else f"{percent(share)} of all clients hold v, and a report with all its bits set "
            f"makes that {percent(believed[-1])} for its client: v is then the better guess."
        ),
        table={
            "frequency at which v becomes the better guess": cross,
            "accuracy without any report": max(share, 1 - share),
        },
    )
