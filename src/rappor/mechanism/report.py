"""Report: the only thing about a value that a client ever sends (§2, step 4)."""

from __future__ import annotations

from typing import NamedTuple


class Report(NamedTuple):
    """One randomized report.

    Attributes:
        cohort: the client's cohort, 0 to m-1; public.
        bits: S; bit i of the integer is bit i of the filter.
    """

    cohort: int
    bits: int
