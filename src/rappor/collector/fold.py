"""Folds a group of batches by cell and cohort into what one commit adds to the store.

Small groups are summed bit by bit, large ones by the byte histograms of `kernel_numpy`. Both use
numpy: compiling a kernel would take a second at each start. Reports that are kept are put into a
random order, so that their order does not tell when they came. To limit memory, cells are folded
one at a time while the store writes, and large cells a few cohorts at a time.
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
from rappor.store.report_order import FULL
from rappor.typing import ByteArray, IntArray

_SMALL = 2048  # reports; up to here it is faster to sort and unpack them
_BLOCK_BYTES = 4 * 2**20  # of counts that are folded at once
_WORD_BYTES = 8  # of each count; a row is N_j and k ones

Cohorts = NDArray[np.uint16]


def rows_bytes(destination: Destination, reports: int) -> int:
    """The largest number of bytes that a store writes for some reports of one cell.

    For each cohort that occurs this is a row of counts and, if reports are kept, a chunk of them.

    >>> from rappor.store import CellKey
    >>> rows_bytes(Destination(CellKey("c", 1, "2026-11-16"), "digest", 128, 32, False), 10_000)
    33024
    """
    row = _WORD_BYTES * (destination.k + 1)
    if destination.keep:
        row += FULL * ((destination.k + 7) // 8)
    return min(reports, destination.m) * row


def folds(batches: Iterable[Admitted]) -> Iterator[Fold]:
    """What batches add: one Fold for each cell and cohort, in the order of the keys."""
    by_destination: dict[Destination, list[Admitted]] = {}
    last, group = None, []
    for batch in batches:
        if batch.destination is not last:  # most batches are for the same cell as the one before
            last = batch.destination
            group = by_destination.setdefault(last, [])
        group.append(batch)
    for destination in sorted(by_destination):
        yield from _fold_cell(destination, by_destination[destination])


def _fold_cell(destination: Destination, batches: Sequence[Admitted]) -> Iterator[Fold]:
    cohorts: Cohorts = np.frombuffer(b"".join([batch.cohorts for batch in batches]), "<u2")
    packed = np.frombuffer(b"".join([batch.reports for batch in batches]), np.uint8)
    rows: ByteArray = packed.reshape(len(cohorts), -1)
    block = max(1, _BLOCK_BYTES // (_WORD_BYTES * 8 * rows.shape[1]))  # cohorts at once
    if destination.keep or len(rows) <= _SMALL or block < destination.m:
        order = _by_cohort(cohorts, shuffle=destination.keep)
        rows, cohorts = rows[order], cohorts[order]
    if block >= destination.m:
        yield from _fold_block(destination, rows, cohorts, 0, destination.m)
        return
    for first in range(0, destination.m, block):
        start, end = np.searchsorted(cohorts, (first, first + block))
        if start < end:
            yield from _fold_block(destination, rows[start:end], cohorts[start:end], first, block)


def _fold_block(
    destination: Destination, rows: ByteArray, cohorts: Cohorts, first: int, block: int
) -> Iterator[Fold]:
    """Fold the reports of a range of cohorts."""
    present, totals, ones = _count(rows, cohorts, destination.k, first, block)
    end = 0
    for cohort, total, bits in zip(present, totals, ones, strict=True):
        start, end = end, end + total
        kept = rows[start:end].tobytes() if destination.keep else None
        yield Fold(destination.cell, cohort, destination.digest, total, bits, kept)


def _by_cohort(cohorts: Cohorts, *, shuffle: bool) -> NDArray[np.intp]:
    """An order by cohort; with `shuffle` it is random within each cohort."""
    if not shuffle:
        return np.argsort(cohorts, kind="stable")
    random = np.frombuffer(os.urandom(8 * len(cohorts)), np.uint64)
    return np.lexsort((random, cohorts))


def _count(
    rows: ByteArray, cohorts: Cohorts, k: int, first: int, block: int
) -> tuple[list[int], list[int], IntArray]:
    """The cohorts that occur, their numbers of reports, and their ones; shape (c, k)."""
    if len(rows) > _SMALL:
        totals, ones, _ = kernel_numpy.count_rows(rows, cohorts - np.uint16(first), -1, block)
        present = np.flatnonzero(totals)
        return (present + first).tolist(), totals[present].tolist(), ones[present, :k]
    # The rows are sorted by cohort: a cohort begins where the number changes.
    starts = [0, *(np.flatnonzero(cohorts[1:] != cohorts[:-1]) + 1).tolist()]
    sizes = [end - start for start, end in pairwise([*starts, len(cohorts)])]
    bits = np.unpackbits(rows, axis=1, count=k, bitorder="little")
    ones = np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
    return cohorts[starts].tolist(), sizes, ones
