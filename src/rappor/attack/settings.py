"""The settings of an attack, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rappor.checks import is_real, is_whole, show, whole
from rappor.errors import ParamsError
from rappor.params import Params, check_params

MAX_TRIALS = 10**8
MAX_SEED = 2**63 - 1


def telling_bits(params: Params) -> int:
    """How many bits each of two values sets that the other does not: h, or k - h if k < 2h.

    >>> telling_bits(Params.preset("windows"))
    2
    """
    check_params(params)
    bits = min(params.h, params.k - params.h)
    if not bits:
        raise ParamsError(
            f"an attack needs two values with different bits: h must be below k = {params.k}, "
            f"got h = {params.h}. A truth value sets one bit or none; its ε, by `rappor privacy`, "
            "bounds every attack on it"
        )
    return bits


def check_trials(trials: object) -> int:
    """The number of simulated trials, from 2 on."""
    return whole("trials", trials, 2, MAX_TRIALS)


def check_frequency(name: str, frequency: object) -> float:
    """A share of the population, from 0 to 1."""
    number = _as_float(frequency)
    if number is not None and 0 <= number <= 1:
        return number
    raise ParamsError(f"{name} must be a number from 0 to 1, got {show(frequency)}")


def _as_float(value: Any) -> float | None:
    return float(value) if is_real(value) else None


def generator(seed: object, *labels: int) -> np.random.Generator:
    """Numpy's generator for a seed; labels keep the figures of one attack independent."""
    if not is_whole(seed):
        raise ParamsError(f"seed must be a whole number from 0 to {MAX_SEED}, got {show(seed)}")
    return np.random.default_rng([whole("seed", seed, 0, MAX_SEED), *labels])


def batches(trials: int, numbers_each: int, most: int = 4_000_000) -> Iterable[int]:
    """Trials in batches whose arrays hold at most `most` numbers, so that memory stays bounded.

    >>> list(batches(10, 3, most=12))
    [4, 4, 2]
    """
    size = max(1, most // max(1, numbers_each))
    for start in range(0, trials, size):
        yield min(size, trials - start)
