"""An ε checker without formulas: it tries every output and every pair of values, for small k.

It uses exact rationals. It is exponential in k·n: for tests, for teaching, and for privacy officers
who want to see that the closed forms agree with plain counting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

from rappor.mechanism.kinds import check_kind
from rappor.mechanism.prr import flip_probability
from rappor.params import Params
from rappor.privacy.loss import Step, check_step
from rappor.typing import Kind


def filters_of_kind(
    params: Params, kind: Kind, null: bool = False, distinct: bool = True
) -> list[int]:
    """Every filter B that a value of the kind can have.

    Strings and tuples have h distinct bits in rappor-v1, and 1 to h in the other dialects
    (`distinct=False`).
    """
    match check_kind(kind):
        case "string" | "tuple":
            sizes = [params.h] if distinct else range(1, params.h + 1)
            chosen = [bits for size in sizes for bits in combinations(range(params.k), size)]
            filters = [sum(1 << bit for bit in bits) for bits in chosen]
        case "category" | "ordinal":
            filters = [1 << bit for bit in range(params.k)]
        case "boolean":
            filters = [0, 1]
        case _:
            filters = list(range(1 << params.k))
    return filters + [0] * (null and 0 not in filters)


def epsilon_by_enumeration(
    params: Params,
    steps: Sequence[Step],
    kind: Kind = "string",
    null: bool = False,
    distinct: bool = True,
) -> float:
    """The largest ln ratio of any output between any two values, by counting everything.

    Args:
        params: gives k, h and f.
        steps: the reports made of one unchanged value; each is expanded to its `reports`.
        kind: the kind of collection; booleans use bit 0 of k = 1.
        null: whether "no value" (the all-zero filter) is among the values.
        distinct: whether the h bits of a string or tuple are distinct, as in rappor-v1 only.
    """
    k = 1 if kind == "boolean" else params.k
    rounds = [step for step in steps for _ in range(check_step(step)[2])]
    filters = filters_of_kind(params, kind, null, distinct)
    worst = Fraction(1)
    for outputs in product(range(1 << k), repeat=len(rounds)):
        chances = [_chance(params, k, signal, outputs, rounds) for signal in filters]
        least, most = min(chances), max(chances)
        if not most:
            continue
        if not least:
            return math.inf
        worst = max(worst, most / least)
    return _ln(worst)


def _chance(
    params: Params, k: int, signal: int, outputs: Sequence[int], rounds: Sequence[Step]
) -> Fraction:
    """P(these outputs | B): bits are independent, B' is shared by all rounds of one bit."""
    chance = Fraction(1)
    for bit in range(k):
        history = tuple(bool(output >> bit & 1) for output in outputs)
        chance *= bit_chance(
            flip_probability(params), bool(signal >> bit & 1), history, tuple(rounds)
        )
    return chance


@lru_cache(maxsize=1 << 16)
def bit_chance(
    flip: Fraction, signal: bool, history: tuple[bool, ...], rounds: tuple[Step, ...]
) -> Fraction:
    """P(one bit's reported history | its true bit), summed over its permanent response."""
    total = Fraction(0)
    for permanent in (False, True):
        chance = flip if permanent != signal else 1 - flip
        for reported, step in zip(history, rounds, strict=True):
            one = Fraction(step.q if permanent else step.p)
            chance *= one if reported else 1 - one
        total += chance
    return total


def epsilon_of_histories(
    flip: Fraction, steps: Sequence[Step], changes: Iterable[tuple[int, int]]
) -> float:
    """ε from the largest ratio of one bit over all its 2^n histories, for longer n."""
    rounds = tuple(step for step in steps for _ in range(check_step(step)[2]))
    up = down = Fraction(1)
    for history in product((False, True), repeat=len(rounds)):
        if_one = bit_chance(flip, True, history, rounds)
        if_zero = bit_chance(flip, False, history, rounds)
        if not if_one and not if_zero:
            continue
        if not if_one or not if_zero:
            return math.inf
        up = max(up, if_one / if_zero)
        down = max(down, if_zero / if_one)
    return max(u * _ln(up) + d * _ln(down) for u, d in changes)


def _ln(ratio: Fraction) -> float:
    """Ln of a rational that may not fit a float."""
    if ratio < 2:
        return math.log1p(ratio - 1)
    return math.log(ratio.numerator) - math.log(ratio.denominator)
