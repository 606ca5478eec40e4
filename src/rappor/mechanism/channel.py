"""Lemma 1: what a reported bit says about a true bit. The only copy of p* and q*.

P(S_i = 1 | B_i = 1) = q* = f(p+q)/2 + (1-f) q
P(S_i = 1 | B_i = 0) = p* = f(p+q)/2 + (1-f) p
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

from rappor.params import Params, check_params


class Channel(NamedTuple):
    """The two effective probabilities of one bit, exact."""

    p_star: Fraction
    q_star: Fraction

    @property
    def noise(self) -> tuple[float, float]:
        """p*(1-p*) and q*(1-q*) over (q*-p*)², what a true 0 and a true 1 add to the variance.

        Divided before rounding to a float, so that a small q* - p* does not become 0.
        """
        p, q = self
        return _as_float(p * (1 - p) / (q - p) ** 2), _as_float(q * (1 - q) / (q - p) ** 2)


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def channel(params: Params) -> Channel:
    """p* and q* of Lemma 1, as exact rationals.

    >>> channel(Params.preset("windows"))
    Channel(p_star=Fraction(9, 16), q_star=Fraction(11, 16))
    """
    check_params(params)
    return _channel(params)


@functools.lru_cache(maxsize=64)  # one decode asks for it ten times
def _channel(params: Params) -> Channel:
    f, p, q = params.exact
    replaced = f * (p + q) / 2
    return Channel(replaced + (1 - f) * p, replaced + (1 - f) * q)


def expected_ones(params: Params, signal_bits: int) -> Fraction:
    """Ones expected in a report whose filter has `signal_bits` ones (Figure 1 of the paper).

    >>> float(expected_ones(Params.preset("life-of-a-report"), 4))
    144.5
    """
    p_star, q_star = channel(params)
    return signal_bits * q_star + (params.k - signal_bits) * p_star


def ones_variance(params: Params, signal_bits: int) -> Fraction:
    """Variance of the ones in a report whose filter has `signal_bits` ones: bits are independent.

    signal_bits q*(1-q*) + (k - signal_bits) p*(1-p*).

    >>> round(float(ones_variance(Params.preset("life-of-a-report"), 4)) ** 0.5, 2)
    7.93
    """
    p_star, q_star = channel(params)
    return signal_bits * q_star * (1 - q_star) + (params.k - signal_bits) * p_star * (1 - p_star)
