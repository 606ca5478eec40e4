"""Standard errors of realised counts: how many reports hold a string, not how many might.

The noise of a fit assumes a new draw of reports. The estimand is the realised count: who holds a
string is fixed; only its spread over cohorts and the noise of the mechanism are random. The
difference shows if strings are frequent and noise is low. Reports of no fitted string are no part
of the estimand: on which bits they fall stays random.
"""

from __future__ import annotations

import numpy as np

from rappor.decoding.fit import Fit
from rappor.decoding.observe import Observed
from rappor.typing import FloatArray

_TOO_LARGE = 1 << 28  # multiplications that a small correction is not worth


def realised_variance(seen: Observed, fit: Fit) -> FloatArray:
    """Variance of each fitted share around the share that was realised, shape (active,).

    A share is a sum of a_row y_row. Given who is in which cohort, y varies by the mechanism's noise
    alone; and cohort j holds N_sj of string s instead of N_s N_j / N, a deviation that cancels in
    s's own estimate as far as its weights follow the cohorts' sizes.
    """
    plain = np.diag(fit.covariance)[1:] * fit.scale
    size, (m, k) = len(fit.active), seen.shares.shape
    if not size or m * k * size**2 > _TOO_LARGE:
        return np.asarray(plain)
    dense = fit.columns.toarray()
    both = np.column_stack([fit.level, dense])
    weights = (fit.covariance[1:] @ both.T) * fit.information  # a: (active, m * k)
    others = (fit.intercept * fit.level).reshape(m, k)
    drawn = _drawn(seen, others + (dense @ fit.share).reshape(m, k)) - _drawn(seen, others)
    fixed = plain - weights**2 @ np.maximum(drawn, 0.0).ravel()
    by_cohort = np.einsum("cmk,mks->cms", weights.reshape(size, m, k), dense.reshape(m, k, size))
    own = seen.totals / seen.totals.sum()
    by_cohort[np.arange(size), :, np.arange(size)] -= own
    spread = np.where(seen.live, 1.0 / np.maximum(seen.totals, 1.0), 0.0)
    uneven = np.einsum("cms,m,s->c", by_cohort**2, spread, np.maximum(fit.share, 0.0))
    return np.asarray(np.clip(fixed + uneven, 0.1 * plain, None))


def _drawn(seen: Observed, shares: FloatArray) -> FloatArray:
    """The variance of each bit that comes from who is in the cohort, shape (m, k)."""
    drawn = seen.variance(shares) - seen.noise(shares)
    return np.where(seen.live[:, None], drawn, 0.0)
