"""Decode a simulated collection: which strings are detected, and their standard errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.counts import Counts
from rappor.decoding.decode import decode
from rappor.decoding.options import Method
from rappor.decoding.result import Decoded
from rappor.decoding.significance import adjust
from rappor.experiments.seeds import mean_sd, spread


def decode_strings(counts: Counts, candidates: Sequence[str], method: Method = "auto") -> Decoded:
    """`rappor.decode` at a false discovery rate of 5 %; counts of strings or categories."""
    return decode(counts, candidates, method=method)


def places(decoded: Decoded, strings: Sequence[str]) -> NDArray[np.intp]:
    """Where each string is among the rows, shape (n,)."""
    at = {string: place for place, string in enumerate(decoded.rows.strings)}
    return np.array([at[string] for string in strings], np.intp)


def detected(
    decoded: Decoded, strings: Sequence[str], correction: str, level: float
) -> NDArray[np.bool_]:
    """Which strings `decode` detects under another correction or level, shape (n,).

    The p-values of one fit serve all corrections.
    """
    rows = decoded.rows
    hits = (adjust(rows.p_value, correction) <= level) & (rows.raw_estimate > 0)
    return np.asarray(hits[places(decoded, strings)])


def errors_in_words(
    own: Sequence[float], printed: Sequence[float], formula: float
) -> tuple[str, str]:
    """Mean standard errors of each seed compared with the formula: the numbers, and the reason.

    Args:
        own: under the mechanism's own noise.
        printed: as the decoder prints them, with the factor on variances that it measures.
        formula: √(p*(1-p*)N/h)/(q*-p*).
    """
    more, shown = (100 * (spread(errors).mean / formula - 1) for errors in (own, printed))
    return (
        f"formula {formula:.0f}; under the mechanism's own noise {mean_sd(own, '.0f')}; as the "
        f"decoder prints it, {mean_sd(printed, '.0f')}",
        f"A fit adds {more:.1f} % to the formula, because strings share bits with each other and "
        "with the intercept that stands for unlisted strings. The printed errors also allow for "
        "what residuals show beyond that noise, be it rare strings or chance: "
        f"{shown:.1f} % above the formula on average. The verdict is on the mechanism's own noise.",
    )
