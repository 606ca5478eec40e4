"""The order of kept reports, which tells nothing about when they came."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

FULL = 1024  # reports in a full chunk

_Places = NDArray[np.uint64]


def width(k: int) -> int:
    """The number of bytes of a packed report."""
    return (k + 7) // 8


def shuffled(reports: bytes, size: int) -> bytes:
    """The reports in a random order, from the operating system's randomness."""
    table = np.frombuffer(reports, np.uint8).reshape(-1, size)
    return table[places(len(table), len(table)).astype(np.intp)].tobytes()


def places(total: int, wanted: int) -> _Places:
    """`wanted` different numbers below `total`; each such sequence is equally likely."""
    if 2 * wanted >= total:
        return np.argsort(_words(total)).astype(np.uint64)[:wanted]
    limit = 2**64 - 2**64 % total  # larger words would make some remainders more likely
    chosen: dict[int, None] = {}
    while len(chosen) < wanted:
        drawn = _words(wanted - len(chosen))
        if limit < 2**64:
            drawn = drawn[drawn < np.uint64(limit)]
        chosen.update(dict.fromkeys((drawn % np.uint64(total)).tolist()))
    return np.array(list(chosen), np.uint64)


def _words(count: int) -> _Places:
    return np.frombuffer(os.urandom(8 * count), np.uint64)
