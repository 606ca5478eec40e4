"""What N reports can reveal: the smallest count that stands out from the noise (§4.2, appendix).

A count's standard error where it is absent is sd = √(p*(1-p*) N / h) / (q*-p*) (Tables 1 and 2 of
the paper follow it). Testing M candidates one-sided at family-wise level α rejects above Q sd,
Q = Φ⁻¹(1 - α/M). A count at that threshold is detected with 50 % power; more power needs more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rappor.checks import between_0_and_1, is_real, positive, whole
from rappor.errors import ParamsError
from rappor.mechanism.channel import channel
from rappor.params import Params, check_params


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest true count, and share of reports, that is detected with the stated power."""

    power: float
    count: float
    frequency: float


def standard_error(params: Params, reports: float, hashes: int | None = None) -> float:
    """Standard error of the count of a string that nobody holds, over N reports.

    `hashes` is the number of bits of one value: h for strings (the default), 1 for kinds with one
    bit for each value. Assumes equal cohorts and filters that rarely collide.

    >>> round(standard_error(Params.preset("exponential"), 10**6))
    2806
    """
    return _spread(params, positive("reports", reports), 0.0, _hashes(params, hashes))


def _hashes(params: Params, hashes: int | None) -> int:
    check_params(params)
    return params.h if hashes is None else whole("hashes", hashes, 1)


def _spread(params: Params, reports: float, count: float, hashes: int) -> float:
    """Standard error of a realised count T: (T q*(1-q*) + (N-T) p*(1-p*)) / h, rooted."""
    if_zero, if_one = channel(params).noise
    variance = (count * if_one if count else 0.0) + (reports - count) * if_zero
    return math.sqrt(variance / hashes)


def _normal_quantile(share: float) -> float:
    from statistics import NormalDist  # a slow import that most commands do not need

    return NormalDist().inv_cdf(share)


def critical_value(candidates: float, alpha: float = 0.05) -> float:
    """Q = Φ⁻¹(1 - α/M): standard errors above which one of M candidates is detected.

    >>> round(critical_value(10_000), 4)
    4.4172
    """
    if positive("candidates", candidates) < 1:
        raise ParamsError(f"candidates must be a number from 1 on, got {candidates!r}")
    share = between_0_and_1("alpha", alpha) / candidates
    if not 0 < share < 0.5:
        raise ParamsError(
            f"alpha / candidates must be above 0 and below 1/2, got {alpha!r} / {candidates!r}"
        )
    return -_normal_quantile(share)


def detectable(
    params: Params,
    reports: float,
    candidates: float,
    power: float = 0.5,
    alpha: float = 0.05,
    hashes: int | None = None,
) -> Detectable:
    """The smallest count that is detected with the given power among M candidates.

    Solves T = Q sd(0) + z_power sd(T). The count may exceed N: then nothing can be detected.
    """
    total = positive("reports", reports)
    bits = _hashes(params, hashes)
    threshold = critical_value(candidates, alpha) * _spread(params, total, 0.0, bits)
    quantile = _normal_quantile(between_0_and_1("power", power))
    if threshold == math.inf:  # a signal too faint for any number of reports
        return Detectable(power, math.inf, math.inf)
    count = threshold
    for _ in range(100):
        before = count
        count = max(0.0, threshold + quantile * _spread(params, total, min(count, total), bits))
        if abs(count - before) <= 1e-12 * max(count, 1.0):
            break
    return Detectable(power, count, count / total)


def learnable_strings(
    params: Params,
    reports: float,
    candidates: float,
    power: float = 0.5,
    alpha: float = 0.05,
    heavy_share: float = 0.0,
    hashes: int | None = None,
) -> float:
    """Most strings that N reports can reveal: equally frequent ones, just detectable (§4.2).

    With p = .5, f = 0, h = 1 and power .5 this is the paper's (2q-1) √N / Q. It is an upper bound:
    heavy hitters that hold `heavy_share` of the reports leave only the rest to be shared out, and
    a Bloom filter's other strings add noise that is not in the formula. It can exceed the number
    of candidates, which enters through the threshold only.

    >>> round(learnable_strings(Params.preset("normal"), 10**10, 10**4))
    11319
    """
    if not (is_real(heavy_share) and 0 <= heavy_share < 1):
        raise ParamsError(f"heavy_share must be at least 0 and below 1, got {heavy_share!r}")
    smallest = detectable(params, reports, candidates, power, alpha, hashes)
    return (1 - heavy_share) / smallest.frequency if smallest.frequency else math.inf


def smallest_count(epsilon: float, reports: float, candidates: float, alpha: float = 0.05) -> float:
    """The smallest detectable count for a given ε, for one bit with p = .5 and f = 0.

    There q = e^ε / (1 + e^ε), so the count is Q √N / tanh(ε/2).

    >>> round(smallest_count(math.log(3), 10**6, 200) / 10**6, 4)
    0.007
    """
    root = math.sqrt(positive("reports", reports))
    return critical_value(candidates, alpha) * root / math.tanh(positive("epsilon", epsilon) / 2)
