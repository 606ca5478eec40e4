"""The null law of a score: what a string that nobody holds would score, given the residuals.

A hash places an absent string on bits that have nothing to do with the reports. So, given the
residuals, its score is a sum over cohorts of h entries drawn at random, whatever the noise, the
missing strings or the repeated reports behind those residuals: a test that is right by design
(docs/theory/decoding.md). Its tail comes from a saddlepoint approximation, which keeps its relative
precision far below what sampling could reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri_exp

from rappor.typing import FloatArray

# Tilts at which the law is tabulated, in units of one over its standard deviation. Around 0 the
# formula is 0/0; the table is smooth there and is interpolated.
_TILTS = np.concatenate([-np.geomspace(0.05, 5.0, 10)[::-1], np.geomspace(0.05, 200.0, 48)])
_MIN_POINTS = 16
_MIN_LOG_P = -740.0  # the smallest numbers have this logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """How hashes place a string that has nothing to do with the data.

    Attributes:
        h: hash functions.
        law: the probability of each bit, shape (k,).
        distinct: the mean number of different bits that are set.
        shrink: a factor on deviations from the mean that gives the sum its exact variance, though
            bits are not drawn independently of each other.
        draws: how many bits are drawn: those that are set, or those that are not where they are
            fewer; negative then, because what they hold is taken off.
    """

    h: int
    law: FloatArray = field(repr=False)
    distinct: float
    shrink: float
    draws: int


def placement(k: int, h: int, dialect: str | None, collisions: bool) -> Placement:
    """The law of a dialect; for a map without one, what its collisions suggest."""
    law = np.full(k, 1.0 / k)
    numbers = {"google": 256 if k <= 256 else 65536, "google-java": 65536}.get(dialect or "")
    if numbers and numbers % k:  # a hash modulo k favours the lower bits
        law = np.bincount(np.arange(numbers) % k, minlength=k) / numbers
    if dialect == "rappor-v1" or (dialect is None and not collisions):
        chances = {h: 1.0}
    else:
        chances = _distinct_bits(k, h)
    mean = sum(bits * chance for bits, chance in chances.items())
    spread = sum(chance * bits * (k - bits) for bits, chance in chances.items()) / max(k - 1, 1)
    draws = h if len(chances) > 1 or 2 * h <= k else h - k
    return Placement(h, law, mean, float(np.sqrt(spread / max(abs(draws), 1))), draws)


def _distinct_bits(k: int, h: int) -> dict[int, float]:
    """How many different bits h independent draws give (Stirling numbers of the second kind)."""
    chances = {}
    for bits in range(1, min(h, k) + 1):
        onto = sum((-1) ** i * comb(bits, i) * (bits - i) ** h for i in range(bits + 1))
        chances[bits] = comb(k, bits) * onto / k**h
    return chances


class NullScore:
    """The law of Σ_j Σ_l score[j, random bit], with its upper tail as a normal deviate."""

    def __init__(self, score: FloatArray, place: Placement, widen: float = 1.0) -> None:
        """Take the scores of all bits, shape (m, k), and a factor on their deviations."""
        self._place = place
        self._draws = abs(place.draws)
        mean = score @ place.law
        sign = 1.0 if place.draws > 0 else -1.0
        self._around = (score - mean[:, None]) * (sign * place.shrink * widen)
        self.centre = place.distinct * float(mean.sum())
        variance = self._draws * float((self._around**2 @ place.law).sum())
        spread = float(np.sqrt(variance))
        # Scores that are all alike differ by rounding only, which is no law to test against.
        self.sd = spread if spread > 1e-12 * float(np.abs(score).max()) else 0.0
        # The largest sum there is: nothing can lie beyond it.
        self.most = self.centre + self._draws * float(self._around.max(axis=1).sum())

    def deviates(self, sums: ArrayLike) -> FloatArray:
        """For each sum the z with the same upper tail under the standard normal law."""
        given = np.asarray(sums, np.float64)
        if not self.sd > 0:
            return np.zeros_like(given)
        points, values = self._table(float(given.max(initial=self.centre)))
        if len(points) < 2:  # scores that are rounding errors of zeros
            return np.zeros_like(given)
        inside = PchipInterpolator(points, values)(np.clip(given, points[0], points[-1]))
        below = values[0] + (np.minimum(given, points[0]) - points[0]) / self.sd
        return np.where(given < points[0], below, inside)

    def _table(self, highest: float) -> tuple[FloatArray, FloatArray]:
        """Sums and their deviates, up to the first sum beyond the highest that is asked for."""
        points: list[float] = []
        values: list[float] = []
        end = self._end
        for tilt in _TILTS / self.sd:
            point, value = self._saddle(float(tilt))
            # Where the law ends, the formula degenerates: the table stops there.
            value = min(value, end)
            if np.isfinite(value) and (not values or (value > values[-1] and point > points[-1])):
                points.append(point)
                values.append(value)
                if point > highest and len(points) > _MIN_POINTS:
                    return np.array(points), np.array(values)
        if values and self.most > points[-1] and end > values[-1]:
            points.append(self.most)
            values.append(end)
        return np.array(points), np.array(values)

    @property
    def _end(self) -> float:
        """The deviate of the largest sum: every draw takes its cohort's best bit."""
        best = self._around.argmax(axis=1)
        log_p = self._draws * float(np.log(self._place.law[best]).sum())
        return float(-ndtri_exp(max(log_p, _MIN_LOG_P)))

    def deviate(self, total: float) -> float:
        """The same for one sum, without a table."""
        if not self.sd > 0:
            return 0.0
        plain = (total - self.centre) / self.sd
        if plain < 1.0:  # where no candidate is detected the table is good enough
            return float(self.deviates(total))
        low, high = 0.0, float(_TILTS[-1]) / self.sd
        tilt = min(plain / self.sd, high)
        for _ in range(60):
            _, point, spread = self._moments(tilt)
            if abs(point - total) <= 1e-7 * self.sd:
                break
            low, high = (tilt, high) if point < total else (low, tilt)
            newton = tilt + (total - point) / spread if spread > 0 else high
            tilt = newton if low < newton < high else (low + high) / 2
        point, value = self._saddle(tilt)
        # Next to the law's end the formula degenerates; the table goes on to what the end has.
        reached = abs(point - total) <= 1e-6 * self.sd
        if not (reached and np.isfinite(value)) or total > self.most - 0.05 * self.sd:
            return float(self.deviates(total))
        return min(value, self._end)

    def _moments(self, tilt: float) -> tuple[float, float, float]:
        """The cumulant generating function and its first two derivatives."""
        exponent = tilt * self._around
        highest = exponent.max(axis=1, keepdims=True)
        weight = np.exp(exponent - highest) * self._place.law
        total = weight.sum(axis=1)
        first = (weight * self._around).sum(axis=1) / total
        second = (weight * self._around**2).sum(axis=1) / total - first**2
        h = self._draws
        cumulant = h * float((np.log(total) + highest[:, 0]).sum()) + tilt * self.centre
        return cumulant, self.centre + h * float(first.sum()), h * float(second.sum())

    def _saddle(self, tilt: float) -> tuple[float, float]:
        """The sum at a tilt, and r*, the deviate of its tail (Barndorff-Nielsen)."""
        cumulant, point, spread = self._moments(tilt)
        gap = 2.0 * (tilt * point - cumulant)
        if gap <= 0 or spread <= 1e-9 * self.sd**2:
            return point, np.nan
        root = float(np.copysign(np.sqrt(gap), tilt))
        return point, root + float(np.log(tilt * np.sqrt(spread) / root)) / root
