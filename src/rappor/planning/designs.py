"""Which k, h and m a collection could have, and what each can detect (§4.1, R35, R44-R45).

For each h and k the number of cohorts is the smallest that detects nearly as well as any: more
cohorts part strings better and cost nothing on the wire, but each has fewer reports to hide among.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rappor.errors import ParamsError
from rappor.params import MAX_M, Params
from rappor.planning.found import Crowd
from rappor.planning.noise import Goal, least_noise
from rappor.planning.power import Detector, detector
from rappor.planning.request import Request
from rappor.privacy import critical_value

HASHES = (1, 2, 3, 4)
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SMALL_COHORT, LEAST_COHORT = 1000, 100  # reports in a cell: comfortable, and the least (R67)
GOOD_COHORTS = 64  # from here on, tests by random placement are as sharp as tests by noise
FEW_COHORTS = 16
_NEARLY = 1.008  # the price of fewer cohorts
ALIKE = 1.01  # frequencies this near are the same to a person: the shorter report wins


@dataclass(frozen=True, slots=True)
class Design:
    """Parameters and what they detect.

    Attributes:
        params: all six.
        detector: their power amid the population of the request.
        frequency: the smallest share that is detected with the requested power.
    """

    params: Params
    detector: Detector
    frequency: float


def designs(
    request: Request, crowd: Crowd, goal: Goal, reports: float, quick: bool = False
) -> list[Design]:
    """Every design, best first; among nearly equal ones the shortest report is best.

    `quick` leaves out several hashes, which are never best, for solving.
    """
    made = [
        _design(request, crowd, goal, reports, k, h)
        for k, h in _shapes(request)
        if not quick or h == 1
    ]
    made = [each for each in made if not request.shared or _hides(each.params, reports)]
    if not made:
        raise ParamsError(
            "no filter is short enough for a value that all clients share: their permanent bits "
            "would tell them apart (R69). Plan a one-time collection, a smaller epsilon_infinity, "
            "or kind boolean"
        )
    made.sort(key=lambda each: each.frequency)
    alike = [each for each in made if each.frequency <= ALIKE * made[0].frequency]
    best = min(alike, key=lambda each: (each.params.k, each.frequency))
    return [best, *(each for each in made if each is not best)]


def identifying_bits(params: Params) -> float:
    """How many bits of chance tell the B' of clients with one value apart: k H(f/2)."""
    a = params.f / 2
    if a == 0:
        return 0.0
    return -params.k * (a * math.log2(a) + (1 - a) * math.log2(1 - a))


def _hides(params: Params, reports: float) -> bool:
    """Whether many clients are expected to have the same B' where all hold one value."""
    return identifying_bits(params) <= math.log2(reports) / 2


def _shapes(request: Request) -> Iterator[tuple[int, int]]:
    if request.kind == "boolean":
        yield 1, 1
    elif request.kind == "category":
        yield request.candidates, 1
    else:
        longest = 8 * request.most_bytes
        lengths = [k for k in LENGTHS if k <= longest]
        yield from ((k, h) for h in HASHES for k in lengths if h < k)


def _design(request: Request, crowd: Crowd, goal: Goal, reports: float, k: int, h: int) -> Design:
    critical = critical_value(request.candidates, request.alpha)
    options = cohort_options(request, reports)
    shape = Params(k, h, options[-1], 0.5, 0.5, 0.75)

    def score(p_star: float, q_star: float) -> float:
        of = Detector(p_star, q_star, k, h, shape.m, reports, critical, request.kind == "string")
        return of.detectable(request.power).frequency

    noise = least_noise(goal, shape, request.kind, score)
    made = []
    for m in options:
        params = Params(k, h, m, noise.f, noise.p, noise.q)
        amid = crowd.around(detector(params, reports, critical, request.kind))
        made.append(Design(params, amid, amid.detectable(request.power).frequency))
    least = min(each.frequency for each in made)
    return next(each for each in made if each.frequency <= _NEARLY * least)


def cohort_options(request: Request, reports: float) -> Sequence[int]:
    """Numbers of cohorts to choose from, ascending: at least 64 where each has a crowd to hide in.

    Fewer reports allow fewer cohorts, and then as many as they allow are best.
    """
    if request.kind != "string":
        return (1,)
    powers = [2**power for power in range(MAX_M.bit_length()) if 2**power <= MAX_M]
    found = [1]
    for least in (SMALL_COHORT, LEAST_COHORT):
        found = [m for m in powers if reports >= least * m * request.cells] or [1]
        if found[-1] >= FEW_COHORTS:
            break
    return [m for m in found if m >= GOOD_COHORTS] or found[-1:]
