"""The mechanism at array speed: true bits -> B' -> how often each bit was 1 in n reports (§2).

An attacker who sees n reports of one value needs no more than these counts: given B', the reports
of a bit are independent, so the count of its ones is a sufficient statistic.
"""

from __future__ import annotations

import numpy as np

from rappor.mechanism.prr import flip_probability
from rappor.params import Params
from rappor.typing import BoolArray, IntArray


def permanent(signal: BoolArray, params: Params, generator: np.random.Generator) -> BoolArray:
    """B': each bit of the signal flipped with probability f/2, once for all reports (step 2)."""
    return signal ^ (generator.random(signal.shape) < float(flip_probability(params)))


def ones_of_memo(
    memo: BoolArray, params: Params, reports: int, generator: np.random.Generator
) -> IntArray:
    """How often each bit is 1 in n reports made from these B' (step 3); the shape of `memo`."""
    if reports == 1:
        return (generator.random(memo.shape) < np.where(memo, params.q, params.p)).astype(np.int64)
    return generator.binomial(reports, np.where(memo, params.q, params.p))


def ones(
    signal: BoolArray, params: Params, reports: int, generator: np.random.Generator
) -> IntArray:
    """How often each bit is 1 in n reports of one value that keep one B'."""
    return ones_of_memo(permanent(signal, params, generator), params, reports, generator)


def ones_without_memo(
    signal: BoolArray, params: Params, reports: int, generator: np.random.Generator
) -> IntArray:
    """How often each bit is 1 in n reports that each draw another B': no client may do that."""
    flip = float(flip_probability(params))
    set_in = generator.binomial(reports, np.where(signal, 1 - flip, flip))
    return generator.binomial(set_in, params.q) + generator.binomial(reports - set_in, params.p)
