"""A plan's promise held against simulated collections and the real decoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rappor.decoding.decode import decode
from rappor.params import Params
from rappor.planning.request import Request
from rappor.privacy import Detectable
from rappor.simulate import counts

_MOST_PROBES = 8  # of each frequency
_PROBED_MASS = 0.25
_MOST_LISTED = 400  # candidates of a simulated decoding; α is scaled to the number requested
_SEED = 20_141_103

Progress = Callable[[str], None]


class Checked(NamedTuple):
    """Promised and measured power at one frequency; the error is that of a mean of coin tosses."""

    power: float
    frequency: float
    measured: float
    std_error: float


@dataclass(frozen=True, slots=True)
class Check:
    """What simulated collections showed."""

    collections: int
    probes: int
    levels: tuple[Checked, ...]

    @property
    def holds(self) -> bool:
        """Whether every promise is within 4 standard errors, or 3 points, of what was measured."""
        return all(
            abs(each.measured - each.power) <= max(0.03, 4 * each.std_error) for each in self.levels
        )


def check(
    request: Request,
    params: Params,
    reports: int,
    promised: Sequence[Detectable],
    collections: int,
    progress: Progress,
) -> Check | None:
    """Decode simulated collections that hold strings of the promised frequencies.

    The other strings are those of the request's population. None where nothing can be detected or
    the frequencies leave no room for others.
    """
    mass = sum(each.frequency for each in promised)
    probes = min(_MOST_PROBES, math.floor(_PROBED_MASS / mass) if mass > 0 else _MOST_PROBES)
    if request.kind == "boolean":
        promised, probes = [each for each in promised if each.frequency < 1], 1
    elif not probes:
        if mass >= 1:
            return None
        probes = 1
    hits = {each.power: 0 for each in promised}
    for number in range(collections):
        progress(f"checking by simulation: {number} of {collections} collections")
        for power, found in _one(request, params, reports, promised, probes, number):
            hits[power] += found
    total = collections * probes
    levels = []
    for each in promised:
        share = hits[each.power] / total
        error = math.sqrt(each.power * (1 - each.power) / total)
        levels.append(Checked(each.power, each.frequency, share, error))
    return Check(collections, total, tuple(levels))


def _one(
    request: Request,
    params: Params,
    reports: int,
    promised: Sequence[Detectable],
    probes: int,
    number: int,
) -> list[tuple[float, int]]:
    """How many probes of each power were detected in one collection."""
    if request.kind == "boolean":
        return [(each.power, _boolean(params, reports, each, request, number)) for each in promised]
    shape = request.shape
    held = {
        f"{number}.{place}.{each.power}": each.frequency
        for each in promised
        for place in range(probes)
    }
    room = 1 - sum(held.values())
    others = {
        f"{number}/{name}": share * room
        for name, share in zip(shape.strings, shape.shares, strict=True)
    }
    listed = [*held, *(f"{number}/{name}" for name in shape.candidates)]
    listed = listed[: min(request.candidates, _MOST_LISTED)]
    if request.kind == "category":
        listed = listed[: params.k]
        kept = {name: share for name, share in (held | others).items() if name in set(listed)}
        population = {name: kept.get(name, 0.0) for name in listed}
    else:
        population = held | others
    drawn = counts(population, params, reports, seed=[_SEED, number], kind=request.kind)
    alpha = request.alpha * len(listed) / request.candidates
    decoded = decode(drawn, listed, correction="bonferroni", alpha=alpha)
    found = {row.string for row in decoded.detected}
    return [
        (each.power, sum(f"{number}.{place}.{each.power}" in found for place in range(probes)))
        for each in promised
    ]


def _boolean(params: Params, reports: int, each: Detectable, request: Request, number: int) -> int:
    population = {"false": 1 - each.frequency, "true": each.frequency}
    drawn = counts(
        population, params, reports, seed=[_SEED, number, round(100 * each.power)], kind="boolean"
    )
    decoded = decode(drawn, correction="none", alpha=request.alpha)
    return int(any(row.detected for row in decoded.rows if row.string == "true"))
