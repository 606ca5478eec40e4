"""Which candidates are there: p-values corrected for all M tests (§4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.checks import show
from rappor.decoding.options import CORRECTIONS, Correction
from rappor.errors import DecodeError
from rappor.typing import FloatArray

NULLS_ABOVE = 0.05  # Storey's λ, the usual α: p-values above it are taken to be nulls


def check_correction(correction: str) -> Correction:
    """The correction's name, or DecodeError listing the names."""
    for name in CORRECTIONS:
        if name == correction:
            return name
    names = ", ".join(CORRECTIONS)
    raise DecodeError(f"correction must be one of {names}; got {show(correction)}")


def null_share(p_values: FloatArray) -> float:
    """Storey's estimate of the share of candidates that are absent, at most 1.

    (1 + #{p > λ}) / (M (1 - λ)), λ = .05. The 1 keeps the false discovery rate below α in finite
    samples. λ = α is what Blanchard and Roquain (2009) advise where tests depend on each other; a
    low λ counts nearly absent strings as absent.

    >>> round(null_share(np.array([0.001, 0.002, 0.3, 0.7])), 4)
    0.7895
    """
    above = 1 + int((p_values > NULLS_ABOVE).sum())
    return min(1.0, above / (len(p_values) * (1 - NULLS_ABOVE))) if len(p_values) else 1.0


def adjust(p_values: ArrayLike, correction: str) -> FloatArray:
    """P-values corrected for M tests; a candidate is detected if its own is at most α.

    >>> adjust([0.01, 0.02, 0.9], "holm").tolist()
    [0.03, 0.04, 0.9]
    >>> adjust([0.01, 0.02, 0.9], "bonferroni").tolist()
    [0.03, 0.06, 1.0]
    """
    check_correction(correction)
    p = np.asarray(p_values, np.float64)
    m = len(p)
    if correction == "none" or m == 0:
        return p.copy()
    if correction == "bonferroni":
        return np.minimum(1.0, p * m)
    order = np.argsort(p, kind="stable")
    ranked = p[order]
    if correction == "holm":
        stepped = np.maximum.accumulate(ranked * (m - np.arange(m)))
    else:
        nulls = null_share(p) if correction == "fdr" else 1.0
        raw = ranked * (m * nulls) / np.arange(1, m + 1)
        stepped = np.minimum.accumulate(raw[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.clip(stepped, ranked, 1.0)  # never below the raw p-value
    return adjusted


def benjamini_hochberg(
    p_values: FloatArray, alpha: float, family: int | None = None
) -> NDArray[np.intp]:
    """The indices that plain Benjamini-Hochberg rejects, ascending; nulls are not estimated.

    `family` is the number of tests M, if only the smallest p-values are given.
    """
    m = len(p_values) if family is None else family
    small = np.flatnonzero(p_values <= alpha)  # none of the others can be rejected
    order = small[np.argsort(p_values[small], kind="stable")]
    passing = np.flatnonzero(p_values[order] * m <= alpha * np.arange(1, len(order) + 1))
    return np.sort(order[: passing[-1] + 1]) if len(passing) else order[:0]


def cut_off(p_values: FloatArray, detected: int, correction: str, alpha: float) -> float:
    """The p-value at which one more candidate would just be detected, given the others.

    >>> round(cut_off(np.full(200, 0.9), 0, "bonferroni", 0.05), 6)
    0.00025
    """
    m = max(len(p_values), 1)
    if correction == "bonferroni":
        return alpha / m
    if correction == "holm":
        return alpha / max(m - detected, 1)
    if correction in ("fdr", "bh"):
        nulls = null_share(p_values) if correction == "fdr" else 1.0
        return min(alpha, alpha * min(detected + 1, m) / (m * nulls))
    return alpha
