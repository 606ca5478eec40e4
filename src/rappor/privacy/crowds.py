"""Crowds to hide in: how many reports a cell needs, and how many bits tell clients apart (§6.1).

Neither is part of ε. A cell (version, period, dimensions, cohort) with few reports narrows down
whose reports they are. If all clients hold the same value, a long filter identifies each of them.
"""

from __future__ import annotations

import math

from rappor.checks import whole
from rappor.params import Params, check_params

SMALL_COHORT, MIN_COHORT = 1000, 100  # reports in a cell: comfortable, and required


def identifying_bits(params: Params) -> float:
    """The entropy, in bits, of the B' of clients that hold the same value: k H(f/2).

    >>> round(identifying_bits(Params.preset("windows")), 1)
    103.8
    """
    check_params(params)
    a = params.f / 2
    if a == 0:
        return 0.0
    return -params.k * (a * math.log2(a) + (1 - a) * math.log2(1 - a))


def hides_a_shared_value(params: Params, reports: float) -> bool:
    """Whether clients that all hold one value are expected to share their B' with others.

    By the birthday bound, they share it by chance while k H(f/2) <= log2(reports) / 2.

    >>> hides_a_shared_value(Params(1, 1, 1, 0.5, 0.5, 0.75), 1000)
    True
    """
    return identifying_bits(params) <= math.log2(reports) / 2


def reports_in_a_cell(reports: int, params: Params, cells: int) -> float:
    """Expected reports in one cell and cohort, if all have the same size.

    >>> reports_in_a_cell(10**6, Params.preset("windows"), 5)
    25000.0
    """
    check_params(params)
    return whole("reports", reports, 1) / (params.m * whole("cells", cells, 1))
