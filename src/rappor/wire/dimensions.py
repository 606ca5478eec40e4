"""Dimensions and their cells, as they can be sent.

A cell is a sorted tuple of (name, value) pairs. Dimensions are sent in clear and are not covered by
ε, so they are few, short and declared. Error messages never repeat what was sent.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rappor.errors import WireError
from rappor.wire.protocol import MAX_DIMENSIONS

Cell = tuple[tuple[str, str], ...]

_PAIRS = "dimensions must be pairs of a name and a value"
OTHER = "other"  # sent in place of every value that is not declared
COLLECTION_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
DIMENSION_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
DIMENSION_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._+/:()-]{0,62}[A-Za-z0-9._+()-])?")


def check_cell(dimensions: Any) -> Cell:
    """Pairs in strictly increasing order of names, or WireError."""
    if not dimensions and isinstance(dimensions, (tuple, list)):
        return ()
    try:
        pairs = tuple(pair if type(pair) is tuple else _pair(pair) for pair in dimensions)
        return _checked(pairs)
    except TypeError:  # not iterable, or a pair that cannot be hashed
        raise WireError(_PAIRS) from None


def _pair(pair: Any) -> tuple[Any, ...]:
    if not isinstance(pair, (tuple, list)):
        raise WireError(_PAIRS)
    return tuple(pair)


@lru_cache(maxsize=4096)  # a collector has few cells, and each is used very often
def _checked(cell: tuple[tuple[Any, ...], ...]) -> Cell:
    if len(cell) > MAX_DIMENSIONS:
        raise WireError(f"a batch has at most {MAX_DIMENSIONS} dimensions, got {len(cell)}")
    if any(len(pair) != 2 for pair in cell):
        raise WireError(_PAIRS)
    for name, value in cell:
        if not isinstance(name, str) or not DIMENSION_NAME.fullmatch(name):
            raise WireError("a dimension's name is 1 to 32 of a-z, 0-9 and _, a letter first")
        if not isinstance(value, str) or not DIMENSION_VALUE.fullmatch(value):
            raise WireError(
                "a dimension's value is 1 to 64 letters, digits, spaces or ._+/:()-, "
                "a letter or digit first; no space, / or : last"
            )
    if any(low[0] >= high[0] for low, high in pairwise(cell)):
        raise WireError("dimensions must be sorted by name, each named once")
    return cell
