"""A simulated collection decoded, with the columns in the order of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.counts import Counts
from rappor.decoding.decode import decode
from rappor.decoding.result import Decoded
from rappor.decoding.significance import adjust


def decode_strings(counts: Counts, candidates: Sequence[str], method: str = "auto") -> Decoded:
    """`rappor.decode` at a false discovery rate of 5 %; the counts are of strings."""
    return cast(Decoded, decode(counts, candidates, method=method))


def places(decoded: Decoded, strings: Sequence[str]) -> NDArray[np.intp]:
    """Where each string is among the rows, shape (n,)."""
    at = {string: place for place, string in enumerate(decoded.rows.strings)}
    return np.array([at[string] for string in strings], np.intp)


def detected(
    decoded: Decoded, strings: Sequence[str], correction: str, level: float
) -> NDArray[np.bool_]:
    """Which strings `decode` detects under another correction or level, shape (n,).

    The p-values of one fit serve all corrections: only what is done with them differs.
    """
    rows = decoded.rows
    hits = (adjust(rows.p_value, correction) <= level) & (rows.estimate > 0)
    return np.asarray(hits[places(decoded, strings)])
