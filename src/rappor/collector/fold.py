"""A group of batches, folded by cell and cohort: what one commit adds (R20, R35).

Small groups are summed bit by bit, large ones by the byte histograms of `kernel_numpy`. Both stay
with numpy: a compiler would cost a collector a second at each start. Kept reports are put into an
order drawn anew, so that none tells when it came. Cells are folded one after the other and large
ones by a few cohorts at a time, while the store writes: what is in memory has a bound.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate import kernel_numpy
from rappor.collector.admission import Admitted, Destination
from rappor.store import Fold
from rappor.store.sqlite.chunks import FULL
from rappor.typing import ByteArray, IntArray

_SMALL = 2048  # reports: below, sorting and unpacking is faster than 256 counters a byte
_BLOCK_BYTES = 4 * 2**20  # of counts that are folded at once
_WORD_BYTES = 8  # of each count: N_j and k ones make a row

Cohorts = NDArray[np.uint16]


def rows_bytes(place: Destination, reports: int) -> int:
    """Bytes of the rows that so many reports make a store write, at most.

    A row of counts for each cohort that occurs; where reports are kept, a chunk of them as well.

    >>> from rappor.store import CellKey
    >>> rows_bytes(Destination(CellKey("c", 1, "2026-11-16"), "digest", 128, 32, False), 10_000)
    33024
    """
    row = _WORD_BYTES * (place.k + 1)
    if place.keep:
        row += FULL * ((place.k + 7) // 8)
    return min(reports, place.m) * row


def folds(batches: Iterable[Admitted]) -> Iterator[Fold]:
    """What batches add: one Fold for each cell and cohort, in the order of their keys."""
    together: dict[Destination, list[Admitted]] = {}
    last, some = None, []
    for batch in batches:
        if batch.place is not last:  # else there is no need to look it up
            last = batch.place
            some = together.setdefault(last, [])
        some.append(batch)
    for place in sorted(together):
        yield from _fold_cell(place, together[place])


def _fold_cell(place: Destination, batches: Sequence[Admitted]) -> Iterator[Fold]:
    cohorts: Cohorts = np.frombuffer(b"".join([batch.cohorts for batch in batches]), "<u2")
    packed = np.frombuffer(b"".join([batch.reports for batch in batches]), np.uint8)
    rows: ByteArray = packed.reshape(len(cohorts), -1)
    block = max(1, _BLOCK_BYTES // (_WORD_BYTES * 8 * rows.shape[1]))  # cohorts at once
    if place.keep or len(rows) <= _SMALL or block < place.m:
        order = _by_cohort(cohorts, shuffle=place.keep)
        rows, cohorts = rows[order], cohorts[order]
    if block >= place.m:
        yield from _fold_block(place, rows, cohorts, 0, place.m)
        return
    for first in range(0, place.m, block):
        start, end = np.searchsorted(cohorts, (first, first + block))
        if start < end:
            yield from _fold_block(place, rows[start:end], cohorts[start:end], first, block)


def _fold_block(
    place: Destination, rows: ByteArray, cohorts: Cohorts, first: int, block: int
) -> Iterator[Fold]:
    """Fold the reports of a range of cohorts."""
    present, totals, ones = _count(rows, cohorts, place.k, first, block)
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


def _count(
    rows: ByteArray, cohorts: Cohorts, k: int, first: int, block: int
) -> tuple[list[int], list[int], IntArray]:
    """The cohorts that are there, how many reports each has, and its bits; shape (c, k)."""
    if len(rows) > _SMALL:
        totals, ones, _ = kernel_numpy.count_rows(rows, cohorts - np.uint16(first), -1, block)
        present = np.flatnonzero(totals)
        return (present + first).tolist(), totals[present].tolist(), ones[present, :k]
    # They are in the order of their cohorts: a cohort begins where its number differs.
    starts = [0, *(np.flatnonzero(cohorts[1:] != cohorts[:-1]) + 1).tolist()]
    sizes = [end - start for start, end in pairwise([*starts, len(cohorts)])]
    bits = np.unpackbits(rows, axis=1, count=k, bitorder="little")
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
    return cohorts[starts].tolist(), sizes, ones
