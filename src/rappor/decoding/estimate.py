"""t: how many reports truly had a bit set, and how sure that is (§4, R36 and R43).

Plain arithmetic on numbers: one bit of one cohort.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rappor.checks import exact
from rappor.mechanism.channel import channel
from rappor.params import Params


@dataclass(frozen=True, slots=True)
class BitEstimate:
    """The estimated count of true ones and its standard error (of the realised count)."""

    count: float
    std_error: float


def estimate_bit(ones: float, reports: float, params: Params) -> BitEstimate:
    """T = (C - p* N) / (q* - p*), with variance (T q*(1-q*) + (N-T) p*(1-p*)) / (q*-p*)².

    The estimate may be negative or above N: it is unbiased, and clipping would hide that.

    >>> estimate_bit(60, 100, Params(1, 1, 1, 0.0, 0.25, 0.75))
    BitEstimate(count=70.0, std_error=8.660254037844387)
    """
    p_star, q_star = found = channel(params)
    count = float((exact(ones) - p_star * exact(reports)) / (q_star - p_star))
    held = min(max(count, 0.0), float(reports))
    if_zero, if_one = found.noise
    variance = held * if_one + (reports - held) * if_zero
    return BitEstimate(count, math.sqrt(variance))
