"""The law of one bit's estimated share, given the share that truly has the bit (§2.1).

Where N reports have the bit T times, its ones are Bin(T, q*) + Bin(N-T, p*). With few ones expected
that is skewed, and a normal tail would be wrong by factors; tails come from a saddlepoint, which is
right to a few per cent down to a single expected one. docs/theory/basic.md derives each line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from rappor.typing import FloatArray

_STEPS = 60
_CLOSE = 1e-5  # deviates that a limit may be off
_MAX = 100.0  # a deviate as good as infinite
_BY_BIT = ("weight", "p_star", "q_star", "shared", "sampling", "rest")
_NEARLY_0 = 1e-2  # standard deviations from the mean in which the formula is 0/0


@dataclass(frozen=True, slots=True, eq=False)
class BitLaw:
    """How estimated shares of bits vary; arrays over bits and groups of reports.

    An estimate is x = Σ_g w_g (c_g/N_g - p*_g)/(q*_g - p*_g), c_g the ones of group g.

    Attributes:
        weight: w, shape (bits, groups).
        reports: N_g, shape (groups,).
        p_star: chance of a one where the true bit is 0, shape (bits, groups).
        q_star: where it is 1.
        shared: variance that repeated reports add, shape (bits,).
        sampling: factor of s(1-s) by which weights that differ from N_g/N add variance.
        rest: variance of the other bits if all shares were made to sum to 1, else infinite.
    """

    weight: FloatArray = field(repr=False)
    reports: FloatArray = field(repr=False)
    p_star: FloatArray = field(repr=False)
    q_star: FloatArray = field(repr=False)
    shared: FloatArray = field(repr=False)
    sampling: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False)

    @property
    def mirrored(self) -> BitLaw:
        """The law of 1 - x, for a true share of 1 - s: ones and zeros change places."""
        return replace(self, p_star=1.0 - self.q_star, q_star=1.0 - self.p_star)

    @property
    def _step(self) -> FloatArray:
        """What a single one adds to x, shape (bits, groups)."""
        step: FloatArray = self.weight / (self.reports * (self.q_star - self.p_star))
        return step

    def variance(self, share: FloatArray) -> FloatArray:
        """Of x, around the share that truly has the bit."""
        own = self._own_variance(share)
        own = own + self.shared + share * (1 - share) * self.sampling
        kept = np.divide(
            self.rest, own + self.rest, out=np.ones_like(own), where=self.rest < np.inf
        )
        found: FloatArray = own * kept
        return found

    def _own_variance(self, share: FloatArray) -> FloatArray:
        noise = share[:, None] * self.q_star * (1 - self.q_star)
        noise += (1 - share)[:, None] * self.p_star * (1 - self.p_star)
        found: FloatArray = (self._step**2 * self.reports * noise).sum(axis=1)
        return found

    def deviate(self, value: FloatArray, share: FloatArray) -> FloatArray:
        """The z whose upper normal tail is that of `value`, where `share` truly has the bit.

        Half of what a single one adds is taken off: P(X >= x) includes x itself. Where repeated
        reports or a common sum change the variance, the tail keeps its shape.
        """
        own, whole = self._own_variance(share), self.variance(share)
        above = value - share
        wider = np.sqrt(np.divide(whole, own, out=np.ones_like(own), where=own > 0))
        certain = np.where(above > 0, np.inf, -np.inf)
        spread = np.sqrt(whole)
        plain = np.divide(above, spread, out=certain, where=spread > 0)
        skewed = np.flatnonzero((own > 0) & (whole > 0))
        half = np.abs(self._step[skewed]).min(axis=1, initial=np.inf) / 2
        point = above[skewed] / wider[skewed] - half
        found = self._only(skewed)._saddle(point, share[skewed])
        # A common sum may carry x beyond what its own ones can reach, where the law has no shape.
        outside = np.isinf(found) & (whole[skewed] < own[skewed])
        plain[skewed] = np.where(outside, plain[skewed], found)
        return plain

    def _only(self, which: NDArray[np.intp]) -> BitLaw:
        """The law of some of the bits."""
        return replace(self, **{name: getattr(self, name)[which] for name in _BY_BIT})

    def with_mirrored(self) -> BitLaw:
        """The bits, and after them the same bits mirrored."""
        other = self.mirrored
        both = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _BY_BIT
        }
        return replace(self, **both)

    def _saddle(self, above: FloatArray, share: FloatArray) -> FloatArray:
        """r* of x lying this far above its mean, by binomial noise alone (Barndorff-Nielsen)."""
        step = self._step
        largest = np.abs(step).max(axis=1)
        limit = 500.0 / largest
        spread = np.sqrt(self._own_variance(share))
        low, high = np.where(above > 0, 0.0, -limit), np.where(above > 0, limit, 0.0)
        tilt = np.clip(above / spread**2, low, high)
        for _ in range(_STEPS):
            _, first, second = self._cumulants(tilt, share)
            too_low = first < above
            low, high = np.where(too_low, tilt, low), np.where(too_low, high, tilt)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = tilt + (above - first) / second
            inside = (newton >= low) & (newton <= high)
            after = np.where(inside, newton, (low + high) / 2)
            done = float((np.abs(after - tilt) * spread).max(initial=0.0)) < 1e-9
            tilt = after
            if done:
                break
        cumulant, first, second = self._cumulants(tilt, share)
        gap = np.maximum(2.0 * (tilt * first - cumulant), 0.0)
        root = np.copysign(np.sqrt(gap), tilt)
        skewness = self._third(share) / spread**3
        # Beyond the largest or smallest sum there is nothing: the tilt runs into its limit.
        beyond = np.abs(first - above) > 1e-6 * spread
        # Counts move in steps; so does their tail (Daniels' second correction for continuity).
        smallest = np.maximum(np.abs(step).min(axis=1), 1e-300)
        stepped = 2.0 * np.sinh(tilt * smallest / 2.0) / smallest
        with np.errstate(divide="ignore", invalid="ignore"):
            found = root + np.log(stepped * np.sqrt(second) / root) / root
        found = np.where(np.abs(root) < _NEARLY_0, root + skewness / 6, found)
        return np.where(beyond, np.where(above > 0, np.inf, -np.inf), found)

    def _cumulants(
        self, tilt: FloatArray, share: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The cumulant generating function of x around its mean, and two derivatives."""
        step = self._step
        exponent = tilt[:, None] * step
        value = np.zeros_like(tilt)
        first, second = np.zeros_like(tilt), np.zeros_like(tilt)
        for chance, held in ((self.q_star, share), (self.p_star, 1 - share)):
            size = held[:, None] * self.reports
            log, tilted = _tilted_coin(chance, exponent)
            value += (size * log).sum(axis=1)
            first += (size * step * tilted).sum(axis=1)
            second += (size * step**2 * (chance + tilted) * (1 - chance - tilted)).sum(axis=1)
        return value, first, second

    def _third(self, share: FloatArray) -> FloatArray:
        """The third cumulant."""
        p, q = self.p_star, self.q_star
        third = share[:, None] * q * (1 - q) * (1 - 2 * q)
        third += (1 - share)[:, None] * p * (1 - p) * (1 - 2 * p)
        found: FloatArray = (self._step**3 * self.reports * third).sum(axis=1)
        return found

    def lower(self, value: FloatArray, reach: FloatArray) -> FloatArray:
        """The share below which `value` would lie more than `reach` deviates up; within 0 and 1."""
        low, high = np.zeros_like(value), np.ones_like(value)
        above = np.clip(self.deviate(value, low) - reach, -_MAX, _MAX)
        below = np.clip(self.deviate(value, high) - reach, -_MAX, _MAX)
        at_0, at_1 = above <= 0, below >= 0
        for step in range(_STEPS):
            # False position, and every third time the middle: it always ends, and soon.
            slope = np.where(above > below, above / np.maximum(above - below, 1e-300), 0.5)
            part = 0.5 if step % 3 == 2 else np.clip(slope, 0.02, 0.98)
            middle = low + part * (high - low)
            gap = np.clip(self.deviate(value, middle) - reach, -_MAX, _MAX)
            too_low = gap > 0
            low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
            above, below = np.where(too_low, gap, above), np.where(too_low, below, gap)
            if bool((at_0 | at_1 | (np.abs(gap) < _CLOSE) | (high - low < 1e-15)).all()):
                break
        return np.where(at_0, 0.0, np.where(at_1, 1.0, middle))

    def upper(self, value: FloatArray, reach: FloatArray) -> FloatArray:
        """The share above which `value` would lie more than `reach` deviates down."""
        found: FloatArray = 1.0 - self.mirrored.lower(1.0 - value, reach)
        return found

    def needed(self, deviate: float) -> float:
        """The estimate that an absent bit needs to reach a deviate: the noisiest bit."""
        noise = self.variance(np.zeros(len(self.weight)))
        noisiest = self._only(np.array([np.argmax(noise)]))
        top = max(1.0, 40 * math.sqrt(float(noise.max())))

        def missing(estimate: float) -> float:
            found = float(noisiest.deviate(np.array([estimate]), np.zeros(1))[0])
            return min(max(found, -_MAX), _MAX) - deviate

        if missing(top) <= 0:
            return top
        return float(brentq(missing, 0.0, top, xtol=1e-15, rtol=1e-9)) if missing(0.0) < 0 else 0.0


def _tilted_coin(chance: FloatArray, exponent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln(1 - p + p e^t) - p t, and by how much tilting raises the chance of a one.

    With very many reports t is tiny, and both are differences of nearly equal numbers: they are
    taken from e^t - 1 there.
    """
    near = np.abs(exponent) < 1.0
    growth = np.expm1(np.where(near, exponent, 0.0))
    log = np.log1p(chance * growth) - exponent * chance
    raised = chance * (1 - chance) * growth / (1 + chance * growth)
    if not near.all():
        with np.errstate(divide="ignore"):  # a chance of 0 or 1
            log_zero, log_one = np.log1p(-chance), np.log(chance) + exponent
        far = np.logaddexp(log_zero, log_one)
        log = np.where(near, log, far - exponent * chance)
        raised = np.where(near, raised, np.exp(log_one - far) - chance)
    return log, raised
