"""Checks on the cells of a collection: large enough to hide in, small enough to be stored.

Each check is one function that yields `LintFinding`s.
"""

from __future__ import annotations

from collections.abc import Iterator

from rappor.collection.definition import Collection
from rappor.collection.findings import Check, LintFinding, about
from rappor.privacy import MIN_COHORT, reports_in_a_cell

MIB = 2**20
LARGE_COUNTS = 16 * MIB  # bytes of counts in one period; a collector rewrites what a report touches
MAX_COUNTS = 64 * MIB
MAX_SLOTS = 10**6  # cells times cohorts: 100 reports in each make 100 million


def _small_cells(collection: Collection) -> Iterator[LintFinding]:
    """Each version, period, cell and cohort has enough reports to hide among."""
    say = about(collection)
    if collection.cells * collection.params.m > MAX_SLOTS:
        yield say(
            "small-cells",
            "error",
            "§6.1",
            f"{collection.cells:,} cells and {collection.params.m} cohorts are more than clients "
            f"can fill. Anyone can fill all of them: {_counts_bytes(collection):.0e} bytes in a "
            f"{collection.period}.",
            "Declare fewer dimensions or values, or use fewer cohorts (a new version).",
        )
        return
    if collection.expected_reports is None:
        yield say(
            "no-expected-reports",
            "warning",
            "§6.1",
            "The number of reports in a period is not stated, so lint cannot tell how small the "
            "cells are.",
            "Set expected_reports to the number that all clients together send in a period.",
        )
        return
    cells = collection.cells
    size = reports_in_a_cell(collection.expected_reports, collection.params, cells)
    if size < MIN_COHORT:
        yield say(
            "small-cells",
            "error",
            "§6.1",
            f"{collection.expected_reports:,} reports in a {collection.period}, spread over "
            f"{cells} cells and {collection.params.m} cohorts, leave about {size:.3g} in each: "
            f"fewer than {MIN_COHORT} are too few to hide among.",
            "Declare fewer dimensions or values, use fewer cohorts (a new version), or make the "
            "period a week.",
        )


def _size(collection: Collection) -> Iterator[LintFinding]:
    """A collector can write the counts of a period without making others wait."""
    room = _counts_bytes(collection)
    if room <= LARGE_COUNTS or collection.cells * collection.params.m > MAX_SLOTS:
        return  # too many slots are a finding of small-cells
    too_large = room > MAX_COUNTS
    yield about(collection)(
        "large-counts",
        "error" if too_large else "warning",
        "",
        f"The counts of one {collection.period} take up to {room / MIB:,.0f} MiB "
        f"({collection.cells:,} cells, {collection.params.m} cohorts, {collection.params.k} bits), "
        f"and anyone can make them grow to that. More than {LARGE_COUNTS // MIB} MiB is a lot; "
        f"more than {MAX_COUNTS // MIB} MiB is too much.",
        "Use fewer bits or cohorts (a new version), or declare fewer dimensions or values.",
    )


def _counts_bytes(collection: Collection) -> int:
    """Bytes of one period's counts: 8 for each bit and for the total, in each cohort and cell."""
    return collection.cells * collection.params.m * 8 * (collection.params.k + 1)


CELL_CHECKS: tuple[Check, ...] = (_small_cells, _size)
