"""How likely `rappor.decode` detects a string of some frequency, by formula (§4.2).

A string that a share s of N reports hold is estimated from the h bits it sets in each of m cohorts.
With p*, q*, w = q*-p* and the load h/k of a bit, the share's variance is

    absent:  r(1-r) / (w² N h g) + u,                       r = p* + w h/k
    present: (t q*(1-q*) + (1-t) p*(1-p*)) / (w² N h g) + s(1-s)/N + u,   t = s + (1-s) h/k

where g = (1 - h/k)(1 - (A+1)/(km)) is the information left after fitting the level of all bits and
A strings, and u = Σ s'²/(km) is the unrest of strings that clients hold but the test does not
detect. A candidate is detected above Q standard errors, Q = Φ⁻¹(1 - α/M), and a little more: the
residuals that the test compares with contain the string's own bits (docs/theory/power.md). Kinds
with a bit for each value have neither load nor unrest: g = 1, u = 0, t = s. Where few ones of such
a bit are expected by chance, the normal law promises too much, and the binomial law itself is used:
with c the smallest count that P(Bin(N, p*) >= c) <= α/M allows, the power is P(Bin(N, r) >= c),
r = p* + s w, which is the incomplete beta function I_r(c, N-c+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from scipy.optimize import brentq
from scipy.special import betainc, betaincinv

from rappor.mechanism.channel import channel
from rappor.mechanism.kinds import HASHED
from rappor.params import Params
from rappor.privacy import Detectable

NORMAL = NormalDist()
_STEPS, _MIN_STEP = 200, 1e-6
_MANY_ONES = 1e4  # the variance of a count above which its law is as good as normal
_HALF_NORMAL = 1 / math.sqrt(2 * math.pi)  # the mean of max(0, X), X standard normal


class Measured(NamedTuple):
    """The law of a test's deviate in simulations: normal, with a mean linear in the share."""

    intercept: float
    slope: float
    spread: float


@dataclass(frozen=True, slots=True)
class Detector:
    """What decides whether a string is detected.

    Attributes:
        p_star: chance that a bit which is 0 is reported as 1.
        q_star: chance that a bit which is 1 is reported as 1.
        k: bits in a report.
        h: bits that a value sets.
        m: cohorts.
        reports: N.
        critical: Q, the normal deviate that a candidate must exceed.
        hashed: whether values share bits, as strings do.
        fitted: A, how many other strings are detected.
        unrest: Σ s'² over strings that clients hold and the test does not detect.
        measured: what simulations showed, if they disagreed with the formula.
        smooth: whether the count that is needed may lie between whole numbers, so that a search for
            the best p* and q* has no steps.
    """

    p_star: float
    q_star: float
    k: int
    h: int
    m: int
    reports: float
    critical: float
    hashed: bool
    fitted: float = 0.0
    unrest: float = 0.0
    measured: Measured | None = None
    smooth: bool = False

    @property
    def is_binomial(self) -> bool:
        """Whether counts are too small for a normal law; values that share bits are fitted."""
        return not self.hashed and self.reports * self.p_star * (1 - self.p_star) < _MANY_ONES

    def needed_ones(self, deviate: float) -> float:
        """The smallest count of ones that noise reaches with a chance of at most Φ(-deviate).

        >>> eleven = Detector(0.01, 0.99, 100, 1, 1, 1100, 3.29, hashed=False)
        >>> eleven.needed_ones(3.29)  # Φ(-3.29) = .0005; 24 ones or more have .0004
        24.0
        """
        chance = math.erfc(deviate / math.sqrt(2)) / 2
        size = self.reports

        def above(ones: float) -> float:
            return math.log(max(float(betainc(ones, size - ones + 1, self.p_star)), 1e-300))

        if self.p_star <= 0:
            return 1.0
        least, most = min(max(size * self.p_star, 1e-9), size), size
        goal = math.log(max(chance, 1e-300))
        if above(most) >= goal:
            return math.inf  # even if all reports had the bit
        if above(least) <= goal:
            return math.ceil(least)
        found = float(brentq(lambda ones: above(ones) - goal, least, most, xtol=1e-9))
        return found + 0.5 if self.smooth else float(math.ceil(found - 1e-6))

    @property
    def bits(self) -> int:
        """Bits of all cohorts."""
        return self.k * self.m

    @property
    def load(self) -> float:
        """The share of values that set a given bit."""
        return self.h / self.k if self.hashed else 0.0

    def absent(self) -> float:
        """Standard error of the share of a string that nobody holds."""
        rate = self.p_star + (self.q_star - self.p_star) * self.load
        return math.sqrt(rate * (1 - rate) / self._information() + self._unrest())

    def present(self, share: float) -> float:
        """Standard error of the share of a string that this share of the population holds."""
        p, q = self.p_star, self.q_star
        ones = share + (1 - share) * self.load
        noise = (ones * q * (1 - q) + (1 - ones) * p * (1 - p)) / self._information()
        return math.sqrt(noise + share * (1 - share) / self.reports + self._unrest())

    def power(self, share: float) -> float:
        """Chance that a string with this share of the population is detected.

        >>> from rappor.privacy import critical_value
        >>> paper = detector(Params(128, 2, 64, 0.5, 0.5, 0.75), 10**6, critical_value(200))
        >>> round(paper.power(0.012), 2)
        0.77
        """
        if self.measured is not None:
            start, slope, spread = self.measured
            return NORMAL.cdf((start + slope * share - self.critical) / spread)
        if self.is_binomial:
            return self.binomial_power(share, self.needed_ones(self.critical))
        return NORMAL.cdf((share - self.threshold() * self.absent()) / self.present(share))

    def binomial_power(self, share: float, ones: float) -> float:
        """Chance that a bit which this share of the population holds shows as many ones."""
        rate = self.p_star + share * (self.q_star - self.p_star)
        return float(betainc(ones, self.reports - ones + 1, rate)) if ones <= self.reports else 0.0

    def threshold(self) -> float:
        """Standard errors above which a string is detected: Q, and the share of its own bits."""
        if not self.hashed:
            return self.critical
        z = self.critical
        for _ in range(_STEPS):
            missing = self.critical - self._deviate(z)
            if missing <= 0:
                return z
            z += max(missing, _MIN_STEP)
        return math.inf  # too few bits: nothing is detected

    def detectable(self, power: float) -> Detectable:
        """The smallest share that is detected with this chance; above 1 if nothing can be detected.

        Solves s = threshold + z_power times the standard error at s, as privacy.detectable does.
        """
        quantile = NORMAL.inv_cdf(power)
        if self.measured is not None:
            start, slope, spread = self.measured
            share = max(0.0, self.critical + quantile * spread - start) / slope
            return Detectable(power, share * self.reports, share)
        if self.is_binomial:
            ones = self.needed_ones(self.critical)
            rate = (
                float(betaincinv(ones, self.reports - ones + 1, power))
                if ones <= self.reports
                else math.inf
            )
            share = max(0.0, (rate - self.p_star) / (self.q_star - self.p_star))
            return Detectable(power, share * self.reports, share)
        floor = self.threshold() * self.absent()
        share = floor
        for _ in range(_STEPS):
            before = share
            share = max(0.0, floor + quantile * self.present(min(share, 1.0)))
            if not abs(share - before) > 1e-9 * share:
                break
        return Detectable(power, share * self.reports, share)

    def _information(self) -> float:
        w = self.q_star - self.p_star
        left = 1.0
        if self.hashed:
            left = (1 - self.load) * max(1 - (self.fitted + 1) / self.bits, 1e-9)
        return w * w * self.reports * self.h * left

    def _unrest(self) -> float:
        return self.unrest / self.bits if self.hashed else 0.0

    def _deviate(self, z: float) -> float:
        """What the test by random placement makes of an estimate z standard errors above 0.

        The string's bits, each √(z²/hm) standard errors too high, are among the bits that a random
        string can be placed on. Of two p-values, one with the noise of the mechanism and one with
        the observed noise, the larger counts.
        """
        wider = 1 + _HALF_NORMAL * math.sqrt(2 / self.bits) / 2
        patterns = self.m * math.log(math.comb(self.k, self.h))
        chance = max(math.erfc(self.critical / math.sqrt(2)) / 2, 1e-300)  # cdf(-9) would be 0
        if patterns <= math.log(10 / chance):
            return z / wider  # too few placements: the decoder tests by the noise alone
        square = z * z / (self.h * self.m)
        if square > 200:
            return 0.0
        own = self.h * self.m * self.load
        tail = own * (math.expm1(square) * math.exp(square / 2) - square)
        return (z - tail / z) / wider


def detector(params: Params, reports: float, critical: float, kind: str = "string") -> Detector:
    """The detector of a set of parameters."""
    p_star, q_star = (float(chance) for chance in channel(params))
    return Detector(p_star, q_star, params.k, params.h, params.m, reports, critical, kind in HASHED)
