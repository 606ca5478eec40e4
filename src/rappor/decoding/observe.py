"""What was observed: t_ij, the estimated number of true ones of each bit, and its noise (§4).

t_ij = (c_ij - p* N_j)/(q* - p*). As a share, y = t/N = (c/N - p*)/(q* - p*) has the variance
r(1-r)/(N (q*-p*)²), r the expected share of ones. Counts collected under several (p, q) are
averaged bit by bit, each with the weight of its precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.counts import Counts
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Counts of one (p, q), with the weight of each of its bits in the average."""

    totals: FloatArray  # (m,)
    p_star: float
    gain: float  # q* - p*
    noise: tuple[float, float]  # what a true 0 and a true 1 add to the variance of t
    weight: FloatArray  # (m, k)


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Shares of bits by cohort.

    Attributes:
        shares: y, shape (m, k); 0 in cohorts without reports.
        totals: N_j over all groups, shape (m,).
        live: which cohorts have reports, shape (m,).
        bits: h, the bits of one string in a cohort.
        expected: the share that a bit has when strings are spread evenly, h / k.
        repeated: whether a client may have reported a value several times: more noise is certain.
    """

    shares: FloatArray = field(repr=False)
    totals: FloatArray = field(repr=False)
    live: NDArray[np.bool_] = field(repr=False)
    bits: int
    expected: float
    groups: tuple[Group, ...] = field(repr=False)
    repeated: bool = False

    @property
    def rows(self) -> int:
        """Bits that were observed: k for each cohort with reports."""
        return int(self.live.sum()) * int(self.shares.shape[1])

    def variance(self, shares: FloatArray) -> FloatArray:
        """Variance of y where these are the true shares; infinite in cohorts without reports.

        It is that of a new draw of reports: the noise of the mechanism, and who happens to be in a
        cohort.
        """
        total = np.zeros_like(self.shares)
        true = np.clip(shares, 0.0, 1.0)
        for group in self.groups:
            sent = np.maximum(group.totals, 1.0)[:, None]
            # At least half a report of either kind, so that no bit seems to be free of noise.
            edge = 0.5 / (sent + 1.0)
            ones = np.clip(group.p_star + group.gain * true, edge, 1.0 - edge)
            total += group.weight**2 * ones * (1.0 - ones) / (sent * group.gain**2)
        total[~self.live] = np.inf
        return total

    def noise(self, shares: FloatArray) -> FloatArray:
        """Variance of y around the share that the cohort really has: the mechanism alone."""
        total = np.zeros_like(self.shares)
        true = np.clip(shares, 0.0, 1.0)
        for group in self.groups:
            if_zero, if_one = group.noise
            sent = np.maximum(group.totals, 1.0)[:, None]
            total += group.weight**2 * (true * if_one + (1 - true) * if_zero) / sent
        return total


def bit_shares(counts: Counts) -> FloatArray:
    """t_ij / N_j for every cohort and bit, shape (m, k).

    The estimate may be negative or above 1: it is unbiased, and clipping would hide that.

    >>> from rappor import Params
    >>> bit_shares(Counts(Params(1, 1, 1, 0.0, 0.25, 0.75), [100], [[60]], kind="bits")).tolist()
    [[0.7]]
    """
    p_star, q_star = channel(counts.params)
    sent = np.maximum(counts.totals, 1)[:, None]
    excess = counts.ones / sent - float(p_star)
    shares: FloatArray = excess / float(q_star - p_star)
    return shares


def pooled_shares(counts: Counts, bits: int) -> list[float]:
    """Σ_j t_ij / N of the first `bits` bits, in exact arithmetic up to the last division.

    >>> from rappor import Params
    >>> pooled_shares(Counts(Params(1, 1, 1, 0.0, 0.25, 0.75), [100], [[60]], kind="bits"), 1)
    [0.7]
    """
    p_star, q_star = channel(counts.params)
    unit = math.lcm(p_star.denominator, q_star.denominator)
    reports = counts.reports
    offset, step = int(p_star * unit) * reports, int((q_star - p_star) * unit)
    ones = counts.ones[:, :bits].sum(axis=0).tolist()
    return [(one * unit - offset) / step / reports for one in ones]


def observe(parts: Sequence[Counts], about: FloatArray | None = None) -> Observed:
    """The shares of bits that one or several Counts show.

    Args:
        parts: Counts that differ in p and q only.
        about: roughly the true shares, shape (m, k), from which several Counts get their weights; a
            bit of a frequent string is noisier in one of them than in another. Default: strings
            are spread evenly.
    """
    params = parts[0].params
    expected = params.h / params.k
    likely = np.full((params.m, params.k), expected) if about is None else np.clip(about, 0.0, 1.0)
    for part in parts[1:]:
        for name in ("k", "h", "m", "f"):
            mine, theirs = getattr(params, name), getattr(part.params, name)
            if mine != theirs:
                raise DecodeError(
                    f"counts that are decoded together may differ in p and q only: {name} is "
                    f"{mine} and {theirs}"
                )
        for name in ("kind", "dialect", "collection"):
            mine, theirs = getattr(parts[0], name), getattr(part, name)
            if mine != theirs:
                raise DecodeError(
                    f"counts that are decoded together need the same {name}: {mine} and {theirs}"
                )
    precision = []
    for part in parts:
        p_star, q_star = (float(number) for number in channel(part.params))
        ones = p_star + (q_star - p_star) * likely
        noise = np.maximum(ones * (1 - ones), 1e-300)
        precision.append(part.totals[:, None] * (q_star - p_star) ** 2 / noise)
    whole = np.sum(precision, axis=0)
    totals = np.sum([part.totals for part in parts], axis=0).astype(np.float64)
    shares = np.zeros((params.m, params.k))
    groups = []
    for part, share in zip(parts, precision, strict=True):
        noisy = channel(part.params)
        p_star, gain = float(noisy.p_star), float(noisy.q_star - noisy.p_star)
        weight = np.divide(share, whole, out=np.zeros_like(likely), where=whole > 0)
        shares += weight * bit_shares(part)
        groups.append(Group(part.totals.astype(np.float64), p_star, gain, noisy.noise, weight))
    live = totals > 0
    shares[~live] = 0.0
    repeated = len(parts) > 1 or (parts[0].reports_per_client or 1) > 1
    return Observed(shares, totals, live, params.h, expected, tuple(groups), repeated)
