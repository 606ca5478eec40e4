"""Telling two values apart that share no bit: the game behind most attacks (§6).

A client reports one of two equally likely values. Only the bits that one value sets and the other
does not are informative: d of each, d = h unless k < 2h. The best guess adds ln L(c) over the bits
of the first value, subtracts it over those of the second, and looks at the sign.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from rappor.attack.evidence import ScorePart, count_laws, evidence, sum_law, whole_scores
from rappor.attack.settings import batches, telling_bits
from rappor.attack.simulated_bits import ones, permanent
from rappor.mechanism.prr import flip_probability
from rappor.params import Params
from rappor.typing import BoolArray, IntArray

Draw = Callable[[BoolArray, Params, int, np.random.Generator], IntArray]


def accuracy(params: Params, reports: int, memos: int = 1) -> float:
    """How often the best guess is right after n reports from each of r independent B'; exact.

    The guess adds whole-number scores; the rounding is below every printed digit.

    >>> [round(accuracy(Params.preset("windows"), n), 4) for n in (1, 7, 1000)]
    [0.5952, 0.7297, 0.8438]
    """
    bits = telling_bits(params) * memos
    scores, _ = whole_scores(evidence(params, reports), 2 * bits)
    if_one, if_zero = count_laws(params, reports)
    return sum_law([ScorePart(scores, if_one, bits), ScorePart(-scores, if_zero, bits)]).above()


def majority(params: Params, memos: int = 1) -> Fraction:
    """The same once every B' is known: each of 2dr bits votes for the truth with 1 - f/2; exact.

    P(X > dr) + P(X = dr)/2 with X binomial (docs/theory/memoization.md).

    >>> float(majority(Params.preset("windows")))
    0.84375
    """
    flip = flip_probability(params)
    votes = 2 * telling_bits(params) * memos
    chances = [
        comb(votes, right) * (1 - flip) ** right * flip ** (votes - right)
        for right in range(votes + 1)
    ]
    return sum(chances[votes // 2 + 1 :], Fraction(0)) + chances[votes // 2] / 2


def guesses(
    params: Params,
    reports: int,
    memos: int,
    trials: int,
    generator: np.random.Generator,
    draw: Draw = ones,
    assumed: Params | None = None,
) -> NDArray[np.bool_]:
    """Simulate the guess: for each trial, whether it was right.

    Args:
        params: what the clients use.
        reports: n, from each B'.
        memos: r, the independent B' of one client.
        trials: how many clients; each holds one of the two values, by a coin.
        generator: of the mechanism and of ties.
        draw: the mechanism; by default with a memo.
        assumed: the parameters that the attacker assumes, if not the same.
    """
    bits = telling_bits(params)
    scores, _ = whole_scores(evidence(assumed or params, reports), 2 * bits * memos)
    right = []
    for batch in batches(trials, 2 * bits * memos):
        first = generator.random(batch) < 0.5
        signal = two_signals(first, bits, memos)
        found = scores[draw(signal, params, reports, generator)]
        sums = found[..., :bits].sum(axis=(1, 2)) - found[..., bits:].sum(axis=(1, 2))
        right.append(decide(sums, generator) == first)
    return np.concatenate(right)


def majority_guesses(
    params: Params, memos: int, shared: bool, trials: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Simulate the vote of r known B', which are one and the same if the secret is shared."""
    bits = telling_bits(params)
    right = []
    for batch in batches(trials, 2 * bits * memos):
        first = generator.random(batch) < 0.5
        memo = permanent(two_signals(first, bits, 1 if shared else memos), params, generator)
        votes = np.repeat(memo, memos, axis=1) if shared else memo
        sums = votes[..., :bits].sum(axis=(1, 2)) - votes[..., bits:].sum(axis=(1, 2))
        right.append(decide(sums, generator) == first)
    return np.concatenate(right)


def two_signals(first: NDArray[np.bool_], bits: int, copies: int) -> BoolArray:
    """True telling bits, shape (trials, copies, 2d): the first d are set for the first value."""
    halves = np.stack([first, ~first], axis=1)
    return np.repeat(np.repeat(halves, bits, axis=1)[:, None, :], copies, axis=1)


def decide(sums: IntArray, generator: np.random.Generator) -> NDArray[np.bool_]:
    """True for the first value: by the sign of the evidence, by a coin at a tie."""
    return np.where(sums == 0, generator.random(sums.shape) < 0.5, sums > 0)
