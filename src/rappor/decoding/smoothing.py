"""Prior knowledge about a histogram's shape: smooth, or nowhere negative.

Nothing here happens unless it is called by name. Both lower the error of a histogram that has the
assumed shape, and both bias one that has not: neither result has an ordinary interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from rappor.checks import is_real, show
from rappor.decoding.histogram import Histogram
from rappor.decoding.options import STRENGTHS
from rappor.errors import DecodeError
from rappor.typing import FloatArray

NO_INTERVAL = "Depends on an assumed shape, so it has no ordinary interval."

_TRIED = np.geomspace(1e-2, 1e8, 41)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Shares that follow an assumed shape.

    Attributes:
        labels: a name for each range, lowest first.
        share: the shares; they sum to 1.
        method: what was assumed, in words.
        strength: λ, for smoothing.
        freedom: how many free numbers the smooth shares amount to: the trace of the smoother.
        note: why there are no intervals.
    """

    labels: tuple[str, ...]
    share: FloatArray = field(repr=False)
    method: str
    strength: float
    freedom: float
    note: str = NO_INTERVAL


def smooth(histogram: Histogram, strength: str | float = "auto") -> Shape:
    """Shares x that minimise Σ (x_i - share_i)²/v_i + λ w Σ (x_{i-1} - 2 x_i + x_{i+1})², Σ x = 1.

    w is the mean of 1/v, so that λ does not depend on N. Assumes that neighbouring ranges are alike
    and of equal importance; shares may still be negative.

    Args:
        histogram: what `decode_ordinal` returned.
        strength: "light", "medium", "strong", a number λ above 0, or "auto": λ from 10^-2 to 10^8
            by generalised cross-validation, n Σ (x_i - share_i)²/v_i / (n - trace)², at its least.

    Returns:
        A Shape, which says that it has no ordinary interval.
    """
    share, variance = histogram.share, histogram.variance
    if not histogram.reports:
        raise DecodeError("there are no reports to smooth: choose counts that have some")
    if len(share) < 3:
        raise DecodeError(f"smoothing needs at least 3 ranges, got {len(share)}: leave it out")
    if not (variance > 0).all():
        raise DecodeError("smoothing needs a variance above 0 in every range")
    weight = variance.mean() / variance
    bends = _bends(weight)
    lam = _best(share, weight, bends) if strength == "auto" else _strength(strength)
    fitted, freedom = _fit(share, weight, lam), _freedom(bends, lam)
    total = float(share.sum()) if not histogram.complete else 1.0
    return Shape(histogram.labels, _with_sum(fitted, weight, lam, total), "smooth", lam, freedom)


def _strength(strength: str | float) -> float:
    if isinstance(strength, str) and strength in STRENGTHS:
        return STRENGTHS[strength]
    if is_real(strength) and 0 < float(strength) < np.inf:
        return float(strength)
    names = ", ".join(("auto", *STRENGTHS))
    raise DecodeError(f"strength must be one of {names} or a number above 0, got {show(strength)}")


def _second_differences(n: int) -> FloatArray:
    """D'D, D the second differences, as the upper bands that scipy takes."""
    bands = np.zeros((3, n))
    bands[2, : n - 2] += 1.0
    bands[2, 1 : n - 1] += 4.0
    bands[2, 2:] += 1.0
    bands[1, 1 : n - 1] += -2.0
    bands[1, 2:] += -2.0
    bands[0, 2:] += 1.0
    return bands


def _banded(weight: FloatArray, lam: float) -> FloatArray:
    """W + λ D'D."""
    bands = lam * _second_differences(len(weight))
    bands[2] += weight
    return bands


def _fit(share: FloatArray, weight: FloatArray, lam: float) -> FloatArray:
    """The minimiser, without the sum imposed."""
    solved: FloatArray = linalg.solveh_banded(_banded(weight, lam), weight * share)
    return solved


def _bends(weight: FloatArray) -> FloatArray:
    """Eigenvalues e of W^-1/2 D'D W^-1/2: how much each independent shape bends."""
    root = 1 / np.sqrt(weight)
    bands = _second_differences(len(weight)) * root
    bands[2] *= root
    bands[1, 1:] *= root[:-1]
    bands[0, 2:] *= root[:-2]
    found: FloatArray = np.maximum(linalg.eigvals_banded(bands), 0.0).astype(np.float64)
    return found


def _freedom(bends: FloatArray, lam: float) -> float:
    """The trace of the smoother (W + λ D'D)⁻¹ W: Σ 1/(1 + λ e)."""
    return float((1 / (1 + lam * bends)).sum())


def _best(share: FloatArray, weight: FloatArray, bends: FloatArray) -> float:
    """λ with the least generalised cross-validation score."""
    n = len(share)

    def score(lam: float) -> float:
        missed = float((weight * (_fit(share, weight, lam) - share) ** 2).sum())
        return float(n * missed / (n - _freedom(bends, lam)) ** 2)

    return min((float(lam) for lam in _TRIED), key=score)


def _with_sum(fitted: FloatArray, weight: FloatArray, lam: float, total: float) -> FloatArray:
    """The same minimiser with its sum imposed: it moves along (W + λ D'D)⁻¹ 1."""
    along = linalg.solveh_banded(_banded(weight, lam), np.ones_like(fitted))
    moved: FloatArray = fitted - along * (fitted.sum() - total) / along.sum()
    return moved


def project_simplex(
    shares: ArrayLike | Sequence[float], weights: ArrayLike | None = None
) -> FloatArray:
    """The nearest shares that are at least 0 and sum to 1: x_i = max(0, s_i - τ/w_i), exactly.

    Minimises Σ w_i (x_i - s_i)². Lowers the error of a complete histogram; where mass is missing
    from it, all of that mass is handed out to the ranges that are there. No ordinary interval.

    Args:
        shares: s, shape (n,).
        weights: w, above 0, shape (n,): 1/variance, say; default all equal.

    >>> project_simplex([0.7, 0.5, -0.1]).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    s = np.array(shares, dtype=np.float64)
    w = np.ones_like(s) if weights is None else np.array(weights, dtype=np.float64)
    if s.ndim != 1 or not len(s) or not np.isfinite(s).all():
        raise DecodeError("shares must be one or more finite numbers")
    if w.shape != s.shape or not (np.isfinite(w) & (w > 0)).all():
        raise DecodeError("weights must be finite numbers above 0, one for each share")
    # In order of s w, a range is in while s w > τ: take ranges in until the next would be out.
    order = np.argsort(-s * w, kind="stable")
    sums, inverse = np.cumsum(s[order]), np.cumsum(1 / w[order])
    tau = (sums - 1) / inverse
    last = np.flatnonzero(s[order] * w[order] > tau)[-1]
    projected: FloatArray = np.maximum(s - tau[last] / w, 0.0)
    return projected
