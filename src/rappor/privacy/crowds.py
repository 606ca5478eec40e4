"""Crowds to hide in: how many reports a cell needs, and how many bits tell clients apart (§6).

Neither is part of ε. A cell (version, period, dimensions, cohort) with few reports narrows down
whose they are (R67); a long filter of a value that all clients hold is a name for each (R69).
"""

from __future__ import annotations

import math

from rappor.checks import whole
from rappor.params import Params, check_params

SMALL_COHORT, MIN_COHORT = 1000, 100  # reports in a cell: comfortable, and the least (R67)


def identifying_bits(params: Params) -> float:
    """How many bits of chance tell the B' of clients with one value apart: k H(f/2).

    >>> round(identifying_bits(Params.preset("windows")), 1)
    103.8
    """
    check_params(params)
    a = params.f / 2
    if a == 0:
        return 0.0
    return -params.k * (a * math.log2(a) + (1 - a) * math.log2(1 - a))


def hides_a_shared_value(params: Params, reports: float) -> bool:
    """Whether many clients are expected to have the same B' where all hold one value (R69).

    By the birthday bound: clients share B' by chance while k H(f/2) <= log2(reports) / 2.

    >>> hides_a_shared_value(Params(1, 1, 1, 0.5, 0.5, 0.75), 1000)
    True
    """
    return identifying_bits(params) <= math.log2(reports) / 2


def reports_in_a_cell(reports: int, params: Params, cells: int) -> float:
    """Expected reports in one cell and cohort where all cells and cohorts are alike.

    >>> reports_in_a_cell(10**6, Params.preset("windows"), 5)
    25000.0
    """
    check_params(params)
    return whole("reports", reports, 1) / (params.m * whole("cells", cells, 1))
