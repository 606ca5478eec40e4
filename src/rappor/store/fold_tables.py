"""Folds as rows of counts: the checks, the sums by cohort, and the checksums of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rappor.checks import is_whole
from rappor.errors import StoreError
from rappor.store.cell_key import CellKey
from rappor.store.checksums import SIZE
from rappor.store.contract import Fold
from rappor.store.report_order import width

Row = tuple[int, bytes, bytes]  # slot, bytes and checksum
Words = NDArray[np.uint64]
Seal = Callable[[int, bytes], bytes]

WORD = np.dtype("<u8")
MAX_COUNT = 2**63 - 1
_AT_ONCE = 4096  # folds; with the next line, limits the memory of an import or a commit
_BYTES_AT_ONCE = 4 * 2**20


class CellShape(Protocol):
    """What a row of a cell says about the counts of its cohorts."""

    @property
    def key(self) -> CellKey:
        """The cell's key."""
        ...

    @property
    def params_digest(self) -> str:
        """The digest of the parameters that its reports were made with."""
        ...

    @property
    def k(self) -> int:
        """The number of bits in a report."""
        ...

    @property
    def m(self) -> int:
        """The number of cohorts."""
        ...


def next_folds(folds: Iterator[Fold]) -> list[Fold]:
    """The next folds, at most the number that memory allows."""
    taken: list[Fold] = []
    size = 0
    for fold in folds:
        taken.append(fold)
        size += getattr(fold.ones, "nbytes", 0) + len(fold.reports or b"")
        if len(taken) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
            break
    return taken


def check_fold(fold: Fold, cell: CellShape) -> None:
    """StoreError unless the fold fits its cell's definition."""
    wrong = ""
    if fold.params_digest != cell.params_digest:
        wrong = "reports made with other parameters than its definition's"
    elif not is_whole(fold.cohort) or not 0 <= fold.cohort < cell.m:
        wrong = f"cohort must be 0 to {cell.m - 1}, got {fold.cohort!r}"
    elif not is_whole(fold.total) or not 0 <= fold.total <= MAX_COUNT:
        wrong = "total must be a whole number from 0 on"
    elif not isinstance(fold.ones, np.ndarray) or fold.ones.shape != (cell.k,):
        wrong = f"ones must have the shape ({cell.k},)"
    elif fold.ones.dtype.kind not in "iu":
        wrong = f"ones must be whole numbers, got {fold.ones.dtype}"
    elif fold.reports is not None and len(fold.reports) != fold.total * width(cell.k):
        wrong = f"{len(fold.reports)} bytes are not {fold.total} reports of {cell.k} bits"
    if wrong:
        raise StoreError(f"{fold.cell}: {wrong}")


def tables_of(cell: CellShape, folds: Sequence[Fold]) -> tuple[list[int], Words]:
    """The cohorts of folds, each once, and what the folds add to it: the total, then the k ones."""
    ones = np.array([fold.ones for fold in folds])
    totals = np.array([fold.total for fold in folds], np.int64)
    if (ones < 0).any() or (ones > totals[:, None]).any():
        raise StoreError(f"{cell.key}: ones must be from 0 to the total")
    table = np.empty((len(folds), cell.k + 1), WORD)
    table[:, 0], table[:, 1:] = totals, ones
    cohorts = [int(fold.cohort) for fold in folds]
    places = {cohort: place for place, cohort in enumerate(dict.fromkeys(cohorts))}
    if len(places) < len(cohorts):
        sums: Words = np.zeros((len(places), cell.k + 1), WORD)
        np.add.at(sums, [places[cohort] for cohort in cohorts], table)
        table = sums
    return list(places), table


def changed_rows(
    cell: CellShape, folds: Sequence[Fold], first: int, known: Mapping[int, tuple[bytes, bytes]]
) -> tuple[list[Row], list[bytes]]:
    """The rows of counts that folds change, and the checksums that those rows had before.

    Args:
        cell: the cell of the folds.
        folds: what is added.
        first: the slot of cohort 0.
        known: the bytes and the checksum of each row that exists, by slot.
    """
    cohorts, table = tables_of(cell, folds)
    slots = [first + cohort for cohort in cohorts]
    before = [known.get(slot, (b"", b"")) for slot in slots]
    empty = bytes(table.shape[1] * WORD.itemsize)
    table += np.frombuffer(b"".join([data or empty for data, _ in before]), WORD).reshape(
        table.shape
    )
    if (table[:, 0] > MAX_COUNT).any():
        raise StoreError(f"{cell.key}: counts above 2^63 - 1")
    seal, rows = sealer(cell), []
    for slot, numbers in zip(slots, table, strict=True):
        data = numbers.tobytes()
        rows.append((slot, data, seal(slot, data)))
    return rows, [found for _, found in before if found]


def sealer(cell: CellShape) -> Seal:
    """The checksum of a row of counts covers its number, its bytes and the parameters."""
    base = blake2b(cell.params_digest.encode(), digest_size=SIZE, person=b"rappor-counts")

    def seal(slot: int, data: bytes) -> bytes:
        state = base.copy()
        state.update(slot.to_bytes(8, "little") + data)
        return state.digest()

    return seal


def parity_of(seals: Sequence[bytes]) -> bytes:
    """The XOR of checksums."""
    words = np.frombuffer(b"".join(seals), WORD).reshape(-1, SIZE // WORD.itemsize)
    parity: Words = np.bitwise_xor.reduce(words, axis=0)
    return parity.tobytes()
