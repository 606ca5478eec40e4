"""A1: a lower bound on ε_n of the real client for every kind, from threshold events.

For two values x, y of a kind, fresh clients report n times. On each bit where x and y differ, the
event "at least c of n reports are 1" (or "at most c") is counted under both, for both orders of x
and y; c is chosen beforehand from the parameters. Clopper-Pearson bounds on both sides give a lower
bound on the bit's ln ratio; bits are independent (support/audit.py tests that), so the bounds of
the differing bits add up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from rappor.mechanism import Encoder, Field, Ranges, View
from rappor.mechanism.entropy import Entropy
from rappor.params import Params
from rappor.privacy import epsilon_n
from rappor.testing import SeededEntropy
from rappor.typing import Kind
from support.audit import FAMILY_ALPHA, MakeEncoder, bits_of, log_ratio_lower

ROUNDS = (1, 2, 5, 10, 30)


@dataclass(frozen=True)
class Case:
    """Two values of a kind that lie as far apart as the kind allows."""

    kind: Kind
    params: Params
    x: object
    y: object
    shape: dict[str, Any]


# Reports of fresh clients as bits (clients, times, k): case, value, clients, times.
Draw = Callable[[Case, object, int, int], np.ndarray]


_SHAPE = {
    "fields": (Field("page", "string"), Field("beta", "boolean")),
    "views": (View(("page", "beta"), 1.0),),
}
_TUPLES = ({"page": "alpha", "beta": True}, {"page": "beta", "beta": False})


def cases(f: float = 0.5, p: float = 0.5, q: float = 0.75) -> list[Case]:
    """Every kind."""
    one = {"cohort": 0}
    return [
        Case("string", Params(16, 2, 1, f, p, q), "alpha", "beta", one),
        Case("category", Params(4, 1, 1, f, p, q), "a", "d", {**one, "categories": list("abcd")}),
        Case("boolean", Params(1, 1, 1, f, p, q), False, True, one),
        Case("ordinal", Params(3, 1, 1, f, p, q), 1, 99, {**one, "ranges": Ranges((10, 20))}),
        Case("bits", Params(3, 1, 1, f, p, q), 0, 7, one),
        Case("tuple", Params(16, 2, 1, f, p, q), *_TUPLES, {**one, **_SHAPE}),
    ]


def drawing(make: MakeEncoder, entropy: Entropy) -> Draw:
    """Draw the reports of fresh clients one by one, with encoders of this kind."""

    def draw(case: Case, value: object, clients: int, times: int) -> np.ndarray:
        reports: list[int] = []
        for _ in range(clients):
            encoder = make(
                case.params,
                secret=entropy(32),
                collection="audit",
                kind=case.kind,
                entropy=entropy,
                **case.shape,
            )
            reports += [encoder.encode(value).bits for _ in range(times)]
        return bits_of(reports, case.params.k).reshape(clients, times, case.params.k)

    return draw


def counts_of_ones(
    case: Case, value: object, trials: int, rounds: tuple[int, ...], draw: Draw
) -> np.ndarray:
    """For each number of reports in `rounds` and each bit, how often each count occurred."""
    k, longest = case.params.k, max(rounds)
    totals = np.zeros((len(rounds), k, longest + 1), np.int64)
    for start in range(0, trials, 4000):
        clients = min(4000, trials - start)
        ones = np.cumsum(draw(case, value, clients, longest), axis=1, dtype=np.int64)
        for row, n in enumerate(rounds):
            for bit in range(k):
                totals[row, bit] += np.bincount(ones[:, n - 1, bit], minlength=longest + 1)
    return totals


def best_threshold(params: Params, n: int, up: bool, trials: int) -> int:
    """The count that should give the best bound, from the parameters alone."""
    a, counts = params.f / 2, np.arange(n + 1)

    def tail(one: float) -> np.ndarray:
        law = stats.binom(n, one)
        return law.sf(counts - 1) if up else law.cdf(counts)

    high, low = (tail(params.q), tail(params.p)) if up else (tail(params.p), tail(params.q))
    likely, rare = (1 - a) * high + a * low, a * high + (1 - a) * low
    error = 5 * np.sqrt((1 - likely) / likely / trials) + 5 * np.sqrt((1 - rare) / rare / trials)
    return int(np.argmax(np.log(likely / rare) - error))


def audit_epsilon(
    case: Case,
    trials: int,
    seed: int,
    comparisons: int,
    entropy: Callable[[str], Entropy] = SeededEntropy,
    rounds: tuple[int, ...] = ROUNDS,
    make: MakeEncoder = Encoder,
    draw: Draw | None = None,
    family_alpha: float = FAMILY_ALPHA,
) -> dict[int, tuple[float, float]]:
    """(lower bound, promise) of ε_n for each n, with total confidence 1 - family_alpha.

    Reports come from `make`, one encoder at a time, or from `draw`, many at a time.
    """
    draw = draw or drawing(make, entropy(f"epsilon {seed} {case.kind} {case.x}"))
    at_x = counts_of_ones(case, case.x, trials, rounds, draw)
    at_y = counts_of_ones(case, case.y, trials, rounds, draw)
    probe = Encoder(case.params, secret=bytes(32), collection="audit", kind=case.kind, **case.shape)
    signal_x, signal_y = probe.trace(case.x).signal, probe.trace(case.y).signal
    differing = [b for b in range(case.params.k) if (signal_x ^ signal_y) >> b & 1]
    alpha = family_alpha / (comparisons * len(rounds) * len(differing) * 2)
    found = {}
    for row, n in enumerate(rounds):
        bounds = []
        for likelier, other, signal in ((at_y, at_x, signal_y), (at_x, at_y, signal_x)):
            lower = 0.0
            for bit in differing:
                up = bool(signal >> bit & 1)  # this value makes ones likelier
                count = best_threshold(case.params, n, up, trials)
                event = slice(count, None) if up else slice(None, count + 1)
                hits, other_hits = likelier[row, bit, event].sum(), other[row, bit, event].sum()
                lower += log_ratio_lower(hits, trials, other_hits, trials, alpha)
            bounds.append(lower)
        found[n] = (max(bounds), epsilon_n(case.params, n, case.kind))
    return found


def averaging_accuracy(f: float, h: int) -> float:
    """Best accuracy at telling two disjoint values apart from B' itself, even prior.

    Each of the 2h differing bits of B' shows the truth with probability 1 - f/2.
    """
    right = stats.binom(2 * h, 1 - f / 2)
    correct = sum(right.pmf(c) * (1.0 if 2 * c > 2 * h else 0.5) for c in range(h, 2 * h + 1))
    return float(correct)
