"""Several reports of one client on one value share B': how much that widens intervals.

A client's reports on one value are independent given B', and B' differs from B in a bit with
probability f/2. So two of them have the covariance (f/2)(1-f/2)(q-p)² in every bit, whatever the
true bit is; docs/theory/basic.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.checks import exact, is_real, show, whole
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.params import Params, check_params
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts


def _flip_variance(params: Params) -> Fraction:
    """(f/2)(1-f/2): the variance of a bit of B', given the true bit."""
    check_params(params)
    half = params.exact.f / 2
    return half * (1 - half)


def shared_noise(params: Params) -> float:
    """κ = (f/2)(1-f/2)/(1-f)²: covariance of two reports that share B', in estimated counts.

    A set of N reports in which a report shares its client and value with at most R - 1 others has
    at most (R-1) N κ more variance than N independent ones.

    >>> shared_noise(Params.preset("windows"))
    0.75
    """
    return float(_flip_variance(params) / (1 - params.exact.f) ** 2)


@overload
def rho(params: Params, r: float | Fraction | None = None) -> float: ...
@overload
def rho(params: Params, r: FloatArray) -> FloatArray: ...
def rho(params: Params, r: float | Fraction | FloatArray | None = None) -> float | FloatArray:
    """ρ = (f/2)(1-f/2)(q-p)²/(r(1-r)): correlation in one bit of two reports that share B'.

    Args:
        params: the parameters of the reports.
        r: the expected share of ones in the bit, between 0 and 1; a number or an array. The
            default is p*, a bit that nobody holds.

    >>> round(rho(Params.preset("windows")), 3), round(rho(Params.preset("chrome")), 3)
    (0.048, 0.061)
    >>> rho(Params(8, 1, 1, 0.5, 0.0, 1.0))  # no instantaneous noise: the same bits each time
    1.0
    """
    _, p, q = params.exact
    shared = _flip_variance(params) * (q - p) ** 2
    if r is None:
        r = channel(params).p_star
    if isinstance(r, np.ndarray):
        if not ((r > 0) & (r < 1)).all():
            raise DecodeError("r must be shares of ones above 0 and below 1")
        return float(shared) / (r * (1 - r))
    if not is_real(r) or not 0 < r < 1:
        raise DecodeError(f"r must be a share of ones above 0 and below 1, got {show(r)}")
    share = exact(r) if not isinstance(r, Fraction) else r
    return float(shared / (share * (1 - share)))


@overload
def design_effect(
    params: Params, r: float | Fraction | None = None, reports_per_client: int = 1
) -> float: ...
@overload
def design_effect(params: Params, r: FloatArray, reports_per_client: int = 1) -> FloatArray: ...
def design_effect(
    params: Params, r: float | Fraction | FloatArray | None = None, reports_per_client: int = 1
) -> float | FloatArray:
    """1 + (R-1) ρ: the most by which R reports per client on one value can widen a variance.

    >>> round(design_effect(Params.preset("windows"), reports_per_client=18), 2)
    1.81
    """
    others = whole("reports_per_client", reports_per_client, 1) - 1
    return 1 + others * rho(params, r)


def total_repeats(parts: Sequence[Counts]) -> int:
    """The most reports one client can have sent on one value, in all parts together.

    Parts that do not say count as one each.
    """
    return sum(part.reports_per_client or 1 for part in parts)


def repeats(totals: ArrayLike, reports_per_client: int | Sequence[int] = 1) -> NDArray[np.float64]:
    """Other reports that share a report's client and value, at most and on average, by cohort.

    For periods that are kept apart: Σ_{s≠t} min(N_sj, N_tj) / N_j, because the pairs that two
    periods share are at most the reports of the smaller. With R_t reports per client within
    period t, pairs within it add (R_t - 1) N_tj and pairs across are at most
    min(N_sj R_t, N_tj R_s).

    Args:
        totals: N_tj, shape (periods, m).
        reports_per_client: R_t, one number for all periods or one each.

    Returns:
        Shape (m,); 0 in cohorts without reports.

    >>> repeats([[100], [50]])
    array([0.66666667])
    """
    sent = np.atleast_2d(np.asarray(totals, dtype=np.float64))
    if sent.ndim != 2 or not np.isfinite(sent).all() or (sent < 0).any():
        raise DecodeError("totals must be numbers from 0 on, of the shape (periods, cohorts)")
    periods = len(sent)
    given = np.asarray(reports_per_client, dtype=object)  # as they are: `whole` looks at each
    each = [given.item()] * periods if given.ndim == 0 else list(given)
    most = [whole("reports_per_client", number, 1) for number in each]
    if len(most) != periods:
        raise DecodeError(
            f"reports_per_client must have a number for each of {periods} periods, got {len(most)}"
        )
    pairs = sum((most[t] - 1) * sent[t] for t in range(periods))
    for s in range(periods):
        for t in range(s):
            pairs = pairs + 2 * np.minimum(sent[s] * most[t], sent[t] * most[s])
    total = sent.sum(axis=0)
    max_others: FloatArray = np.divide(pairs, total, out=np.zeros_like(total), where=total > 0)
    return max_others


def kept_apart(
    params: Params,
    r: float | Fraction | FloatArray | None,
    totals: ArrayLike,
    reports_per_client: int | Sequence[int] = 1,
) -> FloatArray:
    """DEFF_j <= 1 + ρ Σ_{s≠t} min(N_sj, N_tj)/N_j, for a sum over periods that are known apart.

    Never above 1 + (R-1) ρ with R the number of periods (at one report each); equal to it where
    all periods have the same number of reports.

    Args:
        params: the parameters of the reports.
        r: the expected share of ones: a number, shape (m,), or (m, k); None for p*.
        totals: N_tj, shape (periods, m).
        reports_per_client: R_t, as in `repeats`.

    >>> kept_apart(Params.preset("windows"), None, [[100], [50]]).round(4)
    array([1.0317])
    """
    others = repeats(totals, reports_per_client)
    correlation = np.asarray(rho(params, r))
    if correlation.ndim == 2:
        others = others[:, None]
    widened: FloatArray = 1 + correlation * others
    return widened
