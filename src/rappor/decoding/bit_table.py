"""Cohort by bit: what was counted, what the fit expects, and how far apart they are (§4).

fitted count = Σ over groups of N_j (p* + (q*-p*) share), the share being the fit's; a residual is
in standard deviations of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.counts import Counts
from rappor.decoding.missing import base_level
from rappor.decoding.result import Decoded
from rappor.decoding.strings import Detail
from rappor.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class BitTable:
    """Three tables of shape (m, k), row by cohort.

    Attributes:
        totals: reports by cohort, shape (m,).
        counts: reports with the bit set.
        fitted: what the detected strings and the base level make it; None where nothing is fitted.
        residuals: observed minus fitted, in standard deviations of the noise; nan in cohorts
            without reports, None where nothing is fitted.
    """

    totals: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    fitted: FloatArray | None = field(repr=False)
    residuals: FloatArray | None = field(repr=False)


def bit_table(decoded: Decoded, parts: Sequence[Counts]) -> BitTable:
    """The tables of a decoding and of the counts that it was made from.

    >>> from rappor import Params
    >>> from rappor.decoding.categories import decode_basic
    >>> made = Counts(Params(2, 1, 1, 0.0, 0.25, 0.75), [100], [[60, 40]], kind="category")
    >>> bit_table(decode_basic(made, ["x", "y"]), [made]).counts.tolist()
    [[60, 40]]
    """
    totals = np.sum([part.totals for part in parts], axis=0)
    counts = np.sum([part.ones for part in parts], axis=0)
    detail = decoded.detail
    if not isinstance(detail, Detail):
        return BitTable(totals, counts, None, None)
    seen = detail.search.seen
    shares = seen.shares - _left(detail)
    fitted = np.zeros_like(shares)
    for group in seen.groups:
        fitted += group.totals[:, None] * (group.p_star + group.gain * shares)
    return BitTable(totals, counts, fitted, residuals(detail))


def residuals(detail: Detail) -> FloatArray:
    """Observed minus fitted shares over their noise, shape (m, k); nan where nothing was seen."""
    seen, fit = detail.search.seen, detail.fit
    left = _left(detail) / np.sqrt(fit.variance.reshape(seen.shares.shape))
    left[~seen.live] = np.nan
    return left


def _left(detail: Detail) -> FloatArray:
    """What the fit leaves of each share, the base level of unlisted mass taken as fitted."""
    shape = detail.search.seen.shares.shape
    return np.asarray((detail.fit.residual - base_level(detail)).reshape(shape))
