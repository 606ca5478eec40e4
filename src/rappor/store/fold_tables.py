"""Folds as rows of counts: the checks, the sums by cohort, and the checksums of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from hashlib import blake2b
from operator import xor as xor_numbers
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rappor.checks import is_whole
from rappor.errors import StoreError
from rappor.store.cell_key import CellKey
from rappor.store.checksums import SIZE
from rappor.store.contract import Fold
from rappor.store.report_order import width

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


def tables_of(cell: CellShape, folds: Sequence[Fold]) -> dict[int, Words]:
    """What folds add, by cohort: the total, then the k ones."""
    ones = np.stack([fold.ones for fold in folds])
    totals = np.array([fold.total for fold in folds], np.int64)
    if (ones < 0).any() or (ones > totals[:, None]).any():
        raise StoreError(f"{cell.key}: ones must be from 0 to the total")
    table = np.empty((len(folds), cell.k + 1), WORD)
    table[:, 0], table[:, 1:] = totals, ones
    tables: dict[int, Words] = {}
    for fold, numbers in zip(folds, table, strict=True):
        cohort = int(fold.cohort)
        tables[cohort] = numbers if cohort not in tables else tables[cohort] + numbers
    return tables


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
    numbers = (int.from_bytes(seal, "little") for seal in seals)
    return reduce(xor_numbers, numbers, 0).to_bytes(SIZE, "little")
