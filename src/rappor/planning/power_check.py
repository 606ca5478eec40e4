"""A plan's promised power, checked with simulated collections and the real decoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import chdtri, ndtri

from rappor.decoding.decode import decode
from rappor.params import Params
from rappor.planning.power import NORMAL, Measured
from rappor.planning.request import PlanRequest
from rappor.privacy import Detectable
from rappor.simulate import counts

_MAX_PROBES = 8  # strings of one frequency in a collection
_PROBED_MASS = 0.25
_MAX_LISTED = 400  # candidates of a simulated decoding; α is scaled to the number requested
_SMALL = 10  # times as many collections if each holds one probe only, and decodes fast
_MIN_DEVIATES = 30
_DISAGREES = 0.001
_SEED = 20_141_103

Progress = Callable[[str], None]


_WITHIN = 2.0  # standard errors that chance explains: 19 of 20 measurements are as near
_TOLERATED, _POINTS = 3.0, 0.03  # standard errors, or an absolute difference, that are no failure

PowerVerdict = Literal["within", "below", "above"]


class Checked(NamedTuple):
    """Promised and measured power at one frequency, over a number of strings of that frequency."""

    power: float
    frequency: float
    measured: float
    std_error: float
    strings: int

    @property
    def deviation(self) -> float:
        """Measured minus promised, in standard errors."""
        return (self.measured - self.power) / self.std_error

    @property
    def verdict(self) -> PowerVerdict:
        """Whether the measured power is within 2 standard errors of the promise, or on which side.

        >>> [Checked(0.5, 0.01, measured, 0.04, 160).verdict for measured in (0.412, 0.42, 0.6)]
        ['below', 'within', 'above']
        """
        if abs(self.deviation) <= _WITHIN + 1e-9:  # 0.42 is 2 of them below 0.5, but for rounding
            return "within"
        return "below" if self.deviation < 0 else "above"


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """The power measured in simulated collections.

    Attributes:
        collections: how many were decoded.
        levels: promised and measured power.
        corrected: whether earlier simulations disagreed with the formula, and the frequencies are
            theirs.
    """

    collections: int
    levels: tuple[Checked, ...]
    corrected: bool = False

    @property
    def holds(self) -> bool:
        """Whether no measured power contradicts its promise.

        One that is more than 3 standard errors, and more than 3 points, away from it does.
        """
        return all(
            abs(level.measured - level.power) <= max(_POINTS, _TOLERATED * level.std_error)
            for level in self.levels
        )


@dataclass(frozen=True, slots=True)
class Simulations:
    """Simulated collections with strings of known frequencies, and the test's verdict on each.

    Attributes:
        collections: how many.
        deviates: for each frequency, the normal deviates of its strings' p-values.
    """

    collections: int
    deviates: Mapping[Detectable, Sequence[float]]

    def check(self, critical: float, corrected: bool = False) -> PlanCheck:
        """The share that was detected, next to the promise."""
        levels = tuple(
            Checked(
                level.power,
                level.frequency,
                sum(deviate >= critical for deviate in made) / len(made),
                math.sqrt(level.power * (1 - level.power) / len(made)),
                len(made),
            )
            for level, made in self.deviates.items()
        )
        return PlanCheck(self.collections, levels, corrected)

    def law(self, critical: float) -> Measured | None:
        """The law of the deviates if it is not the promised one (χ², p < .001), else None."""
        shares = np.concatenate([[level.frequency] * len(z) for level, z in self.deviates.items()])
        deviates = np.concatenate([np.asarray(z) for z in self.deviates.values()])
        if len(self.deviates) < 2 or len(deviates) < _MIN_DEVIATES:
            return None
        slope, start = np.polyfit(shares, deviates, 1)
        spread = float(np.std(deviates - start - slope * shares, ddof=2))
        off = 0.0
        for level, made in self.deviates.items():
            wanted = critical + NORMAL.inv_cdf(level.power) * spread
            off += (float(np.mean(made)) - wanted) ** 2 * len(made) / spread**2
        if off < chdtri(len(self.deviates), _DISAGREES) or slope <= 0:
            return None
        return Measured(float(start), float(slope), spread)


def simulate_promise(
    request: PlanRequest,
    params: Params,
    reports: int,
    promised: Sequence[Detectable],
    collections: int,
    progress: Progress,
    first: int = 0,
) -> Simulations:
    """Decode simulated collections that hold strings of the promised frequencies.

    The other strings are those of the request's population. If strings of every frequency do not
    fit next to them, each collection holds one string of one frequency, in turn.
    """
    mass = sum(level.frequency for level in promised)
    room = request.candidates // (2 * len(promised))
    probes = min(_MAX_PROBES, room, math.floor(_PROBED_MASS / mass))
    together = probes > 0 and request.kind != "boolean"
    times = collections if together else collections * _SMALL
    made: dict[Detectable, list[float]] = {level: [] for level in promised}
    for number in range(times):
        progress(f"checking by simulation: {number} of {times} collections")
        levels = promised if together else [promised[number % len(promised)]]
        found = _deviates(request, params, reports, levels, max(probes, 1), first + number)
        for level, deviate in found:
            made[level].append(deviate)
    return Simulations(times, {level: deviates for level, deviates in made.items() if deviates})


def _deviates(
    request: PlanRequest,
    params: Params,
    reports: int,
    levels: Sequence[Detectable],
    probes: int,
    number: int,
) -> list[tuple[Detectable, float]]:
    """The frequency of each string planted in one collection, and its deviate."""
    planted = {
        f"{number}.{place}.{level.power}": level for level in levels for place in range(probes)
    }
    if request.kind == "boolean":
        (level,) = levels
        shares, listed = {"false": 1 - level.frequency, "true": level.frequency}, None
        planted = {"true": level}
    else:
        shares, listed = _population(request, planted, number)
        planted = {f"{number}/{name}": level for name, level in planted.items()}
    drawn = counts(shares, params, reports, seed=[_SEED, number], kind=request.kind)
    alpha = request.alpha * (len(listed) / request.candidates if listed else 1)
    decoded = decode(drawn, listed, correction="bonferroni", alpha=min(alpha, 0.5))
    return [
        (level, float(-ndtri(max(decoded.row(name).p_value, 1e-300))))
        for name, level in planted.items()
    ]


def _population(
    request: PlanRequest, planted: dict[str, Detectable], number: int
) -> tuple[dict[str, float], list[str]]:
    """Shares of the planted strings and of others, and the list of candidates."""
    shape = request.shape
    room = 1 - sum(level.frequency for level in planted.values())
    others = dict(zip(shape.strings, shape.shares, strict=True))
    listed = [*planted, *shape.candidates][:_MAX_LISTED]
    if request.kind == "category":  # every bit has a name, and a report sets one of them
        listed = [*planted, *shape.candidates][: request.candidates]
        listed += [f"none of them {place}" for place in range(request.candidates - len(listed))]
        others = {name: others.get(name, 0.0) for name in listed if name not in planted}
    total = sum(others.values())
    shares = {name: level.frequency for name, level in planted.items()}
    if total > 0:
        shares |= {name: share * room / total for name, share in others.items()}
    return _named(shares, number), [*_named(dict.fromkeys(listed, 0.0), number)]


def _named(shares: dict[str, float], number: int) -> dict[str, float]:
    """The same strings under other names in each collection, so that their bits differ."""
    return {f"{number}/{name}": share for name, share in shares.items()}
