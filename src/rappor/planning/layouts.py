"""Which k, h and m a collection could have, and what each can detect (§4.1).

For each h and k, m is the smallest number of cohorts that detects nearly as well as any. More
cohorts separate strings better and cost nothing on the wire, but each has fewer reports to hide in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rappor.errors import ParamsError
from rappor.mechanism.channel import channel
from rappor.params import MAX_M, Params
from rappor.planning.expected_detections import ExpectedCrowd
from rappor.planning.noise import Goal, min_noise
from rappor.planning.power import Detector, detector
from rappor.planning.request import PlanRequest
from rappor.privacy import critical_value
from rappor.privacy.crowds import MIN_COHORT, SMALL_COHORT, hides_a_shared_value

HASHES = (1, 2, 3, 4)
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
GOOD_COHORTS = 64  # with this many, tests by random placement are as sharp as tests by noise
FEW_COHORTS = 16
MIN_ONES = 5  # expected by chance in a bit of a cohort
_NEARLY = 1.008  # the price of fewer cohorts
ALIKE = 1.01  # frequencies within 1 % count as equal: the shorter report wins


@dataclass(frozen=True, slots=True)
class Layout:
    """Parameters and what they detect.

    Attributes:
        params: all six.
        detector: their power amid the population of the request.
        frequency: the smallest share that is detected with the requested power.
    """

    params: Params
    detector: Detector
    frequency: float


def rank_layouts(
    request: PlanRequest, crowd: ExpectedCrowd, goal: Goal, reports: float, quick: bool = False
) -> list[Layout]:
    """All layouts, the one that detects the rarest string first.

    `quick` leaves out layouts with several hashes, which are never best; for solving.
    """
    made = [
        _design(request, crowd, goal, reports, k, h)
        for k, h in _shapes(request)
        if not quick or h == 1
    ]
    made = [
        design
        for design in made
        if not request.shared or hides_a_shared_value(design.params, reports)
    ]
    if not made:
        raise ParamsError(
            "no filter is short enough for a value that all clients share: their permanent bits "
            "would tell them apart. Plan a one-time collection, a smaller epsilon_infinity, "
            "or kind boolean"
        )
    return sorted(made, key=lambda design: design.frequency)


def best_first(made: list[Layout], frequency: float) -> list[Layout]:
    """The same layouts with the best in front: the shortest report among those that are as good.

    A layout is as good if it detects the requested frequency, and one within 1 % of the rarest.
    """
    limit = max(min(ALIKE * made[0].frequency, frequency), made[0].frequency)
    best = min(
        (design for design in made if design.frequency <= limit),
        key=lambda design: (design.params.k, design.frequency),
    )
    return [best, *(design for design in made if design is not best)]


def _shapes(request: PlanRequest) -> Iterator[tuple[int, int]]:
    if request.kind == "boolean":
        yield 1, 1
    elif request.kind == "category":
        yield request.candidates, 1
    else:
        longest = 8 * request.max_bytes
        lengths = [k for k in LENGTHS if k <= longest]
        yield from ((k, h) for h in HASHES for k in lengths if h < k)


def _design(
    request: PlanRequest, crowd: ExpectedCrowd, goal: Goal, reports: float, k: int, h: int
) -> Layout:
    critical = critical_value(request.candidates, request.alpha)
    shape = Params(k, h, cohort_options(request, reports)[-1], 0.5, 0.5, 0.75)

    def score(p_star: float, q_star: float) -> float:
        hashed = request.kind == "string"
        of = Detector(p_star, q_star, k, h, shape.m, reports, critical, hashed, smooth=True)
        return of.detectable(request.power).frequency

    noise = min_noise(goal, shape, request.kind, score)
    made = []
    p_star, q_star = (float(chance) for chance in channel(noise))
    ones = reports * (p_star + (q_star - p_star) * h / k)
    for m in cohort_options(request, reports, ones):
        params = Params(k, h, m, noise.f, noise.p, noise.q)
        amid = crowd.around(detector(params, reports, critical, request.kind))
        made.append(Layout(params, amid, amid.detectable(request.power).frequency))
    least = min(design.frequency for design in made)
    return next(design for design in made if design.frequency <= _NEARLY * least)


def cohort_options(request: PlanRequest, reports: float, ones: float = math.inf) -> Sequence[int]:
    """Numbers of cohorts to choose from, ascending: 64 or more if every cohort is large enough.

    With fewer reports the largest number that they allow is best. Few `ones` expected by chance in
    a bit of all cohorts, at a large ε, also limit it: counts of one or two are not normal.
    """
    if request.kind != "string":
        return (1,)
    powers = [2**power for power in range(MAX_M.bit_length()) if 2**power <= MAX_M]
    filled = [m for m in powers if m <= max(ones / MIN_ONES, FEW_COHORTS)]
    found = [1]
    for least in (SMALL_COHORT, MIN_COHORT):
        found = [m for m in filled if reports >= least * m * request.cells] or [1]
        if found[-1] >= FEW_COHORTS:
            break
    return [m for m in found if m >= GOOD_COHORTS] or found[-1:]
