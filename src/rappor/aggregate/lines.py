"""Whole lines to reports: machine code for lines as they should be, care for all others.

The two ways give the same reports: machine code takes a line only when it is certain, and what it
leaves goes through the careful reader, as all lines do where numba is not installed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rappor.aggregate import _engine
from rappor.aggregate.part import FilePart, NotAReport, PackedReports, Wrong
from rappor.params import Params
from rappor.typing import ByteArray, IntArray

LONGEST = 100_000  # characters; a report of 4096 bits in three columns takes 12,300
_ODD_AT_ONCE = 2**14

Careful = Callable[[str, Params], tuple[int, int]]  # cohort and bits, or NotAReport
Columns = tuple[int, int, int]  # columns, the cohort's, the bits'
NO_COLUMNS: Columns = (0, 0, 0)  # JSON


def parse_lines(data: bytes, params: Params, careful: Careful, columns: Columns) -> FilePart:
    """The reports of some whole lines, the last one with or without its newline."""
    fast = _engine.load("lines_numba")
    if fast is None:
        return _all_carefully(data, params, careful)
    array: ByteArray = np.frombuffer(data, np.uint8)
    most = len(data) // (params.k + 2) + 2  # a report takes its bits, a cohort and a comma
    packed: ByteArray = np.empty((most, (params.k + 7) // 8), np.uint8)
    cohorts: IntArray = np.empty(most, np.int64)
    odd: IntArray = np.empty((_ODD_AT_ONCE, 3), np.int64)
    layout: IntArray = np.array(columns, np.int64)
    limits = (params.k, params.m, LONGEST)
    others, wrong = PackedReports(params), Wrong()
    at = lines = rows = 0
    while at < len(data):
        at, seen, parsed, odds = fast.parse(
            layout, array, at, limits, packed[rows:], cohorts[rows:], odd
        )
        for line, start, end in odd[:odds].tolist():
            _take(data[start:end], lines + line + 1, careful, others, wrong)
        lines += seen
        rows += parsed
    more_packed, more_cohorts = others.arrays()
    return FilePart(
        np.concatenate([packed[:rows], more_packed]),
        np.concatenate([cohorts[:rows], more_cohorts]),
        lines,
        wrong,
    )


def _all_carefully(data: bytes, params: Params, careful: Careful) -> FilePart:
    """Every line with the careful reader."""
    reports, wrong = PackedReports(params), Wrong()
    lines = data.removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        _take(line, number, careful, reports, wrong)
    return FilePart(*reports.arrays(), len(lines), wrong)


def _take(line: bytes, number: int, careful: Careful, reports: PackedReports, wrong: Wrong) -> None:
    """One line into the reports, or into the account of those that are none; or blank: neither."""
    text = line.removesuffix(b"\r").decode("latin-1")  # what matters in it is ASCII
    if not text.strip(" \t"):
        return
    try:
        if len(line) > LONGEST:
            raise NotAReport(f"a line of more than {LONGEST:,} characters")
        cohort, bits = careful(text, reports.params)
    except NotAReport as reason:
        wrong.add(number, str(reason))
    else:
        reports.add(cohort, bits)
