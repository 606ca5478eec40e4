"""A group of batches, folded by cell and cohort: what one commit adds (R20, R35).

Small groups are summed bit by bit, large ones by the byte histograms of `kernel_numpy`. Both stay
with numpy: a compiler would cost a collector a second at each start. Kept reports are put into an
order drawn anew, so that none tells when it came.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate import kernel_numpy
from rappor.collector.admit import Admitted, Place
from rappor.store import Fold

_SMALL = 2048  # reports: below, sorting and unpacking is faster than 256 counters a byte

Cohorts = NDArray[np.uint16]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


def folds(batches: Iterable[Admitted]) -> Iterator[Fold]:
    """What batches add: one Fold for each cell and cohort, in the order of their keys."""
    together: dict[Place, list[Admitted]] = {}
    last, some = None, []
    for batch in batches:
        if batch.place is not last:  # else there is no need to look it up
            last = batch.place
            some = together.setdefault(last, [])
        some.append(batch)
    for place in sorted(together):
        yield from _fold_cell(place, together[place])


def _fold_cell(place: Place, batches: Sequence[Admitted]) -> Iterator[Fold]:
    cohorts: Cohorts = np.frombuffer(b"".join([batch.cohorts for batch in batches]), "<u2")
    packed = np.frombuffer(b"".join([batch.reports for batch in batches]), np.uint8)
    rows: Bytes = packed.reshape(len(cohorts), -1)
    if place.keep or len(rows) <= _SMALL:
        order = _by_cohort(cohorts, shuffle=place.keep)
        rows, cohorts = rows[order], cohorts[order]
    present, totals, ones = _count(rows, cohorts, place)
    end = 0
    for cohort, total, bits in zip(present, totals, ones, strict=True):
        start, end = end, end + total
        kept = rows[start:end].tobytes() if place.keep else None
        yield Fold(place.cell, cohort, place.digest, total, bits, kept)


def _by_cohort(cohorts: Cohorts, *, shuffle: bool) -> NDArray[np.intp]:
    """An order by cohort; within a cohort by the operating system's dice, if asked for."""
    if not shuffle:
        return np.argsort(cohorts, kind="stable")
    dice = np.frombuffer(os.urandom(8 * len(cohorts)), np.uint64)
    return np.lexsort((dice, cohorts))


def _count(rows: Bytes, cohorts: Cohorts, place: Place) -> tuple[list[int], list[int], Ints]:
    """The cohorts that are there, how many reports each has, and its bits; shape (c, k)."""
    if len(rows) > _SMALL:
        totals, ones, _ = kernel_numpy.count_rows(rows, cohorts, -1, place.m)
        present = np.flatnonzero(totals)
        return present.tolist(), totals[present].tolist(), ones[present, : place.k]
    # They are in the order of their cohorts: a cohort begins where its number differs.
    starts = [0, *(np.flatnonzero(cohorts[1:] != cohorts[:-1]) + 1).tolist()]
    sizes = [end - start for start, end in pairwise([*starts, len(cohorts)])]
    bits = np.unpackbits(rows, axis=1, count=place.k, bitorder="little")
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
    return cohorts[starts].tolist(), sizes, ones
