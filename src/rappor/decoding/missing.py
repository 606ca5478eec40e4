"""Signs of strings that are not among the candidates, in the residuals of the robust fit.

A string of share s lifts h bits of every cohort by s. So, where the unlisted mass of a bit reaches
s in h of k bits, and in nearly every cohort, a string of about that share is missing.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from rappor.decoding.diagnosis import Missing
from rappor.decoding.result import Decoded
from rappor.decoding.strings import Detail
from rappor.typing import FloatArray

_PRESENT = 0.75  # of h / k bits: strings collide, and a law is learnt with error
_COHORTS = 0.9  # of cohorts that must show it


def base_level(detail: Detail) -> float:
    """What most bits have left: the robust fit leaves unlisted mass in its residuals."""
    seen, fit = detail.search.seen, detail.fit
    if fit.law is None:
        return 0.0
    return float(np.median(fit.residual[np.repeat(seen.live, seen.shares.shape[1])]))


def missing_strings(table: Decoded, detail: Detail) -> Missing:
    """Count the bits with unexplained mass, and estimate the heaviest missing string."""
    seen, fit = detail.search.seen, detail.fit
    live = np.repeat(seen.live, seen.shares.shape[1])
    base = base_level(detail)
    error = np.sqrt(fit.variance[live])
    lift = fit.residual[live] - base
    level = 1.0 / seen.rows
    lifted = int((lift > -ndtri(level) * error).sum())
    share = _heaviest(detail, lift.reshape(-1, seen.shares.shape[1]), base, error)
    return Missing(seen.rows, lifted, 1.0, share if table.robust else None)


def _heaviest(detail: Detail, lift: FloatArray, base: float, error: FloatArray) -> float | None:
    """The largest s that h of k bits reach in the law of unlisted mass, confirmed by cohort."""
    law, place = detail.fit.law, detail.search.place
    if law is None:
        return None
    reaching = np.cumsum(law.weight[::-1])[::-1]
    enough = np.flatnonzero(reaching >= _PRESENT * place.distinct / lift.shape[1])
    share = float(law.grid[enough[-1]]) - base
    if share < 3.0 * float(np.median(error)):
        return None
    bits = round(place.distinct)
    shown = (lift > share / 2).sum(axis=1) >= bits
    return share if float(shown.mean()) >= _COHORTS else None
