"""Estimates of one thing from several groups, combined: generalised least squares (R32)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.errors import DecodeError

FloatArray = NDArray[np.float64]


class Combined(NamedTuple):
    """One estimate from several, for each of n things.

    `chi2` is Σ over groups of squared disagreement in units of noise: about G - 1 where all groups
    estimate the same thing.
    """

    value: FloatArray
    variance: FloatArray
    weights: FloatArray
    chi2: FloatArray


def combine(shares: ArrayLike, covariance: ArrayLike, weights: ArrayLike | None = None) -> Combined:
    """Σ w_g x_g with Σ w_g = 1 and the smallest variance w'Cw, where w = C⁻¹1 / (1'C⁻¹1).

    Without covariances this is inverse-variance weighting. A singular C (groups whose noise is the
    same noise) gives the best weights of least length. With given `weights`, those are used and
    the variance is theirs: with weights from 0 on and covariances that are upper bounds, it is an
    upper bound.

    Args:
        shares: x_g, shape (..., G).
        covariance: C, shape (..., G, G) or (G, G).
        weights: shape (..., G) or (G,), or None for the best.

    >>> found = combine([0.2, 0.4], [[1.0, 0.0], [0.0, 3.0]])
    >>> round(float(found.value), 6), round(float(found.variance), 6)
    (0.25, 0.75)
    """
    x = np.asarray(shares, dtype=np.float64)
    c = np.asarray(covariance, dtype=np.float64)
    groups = x.shape[-1] if x.ndim else 0
    if not groups or c.shape[-2:] != (groups, groups):
        raise DecodeError(f"shares {x.shape} and covariance {c.shape} do not fit each other")
    c = np.broadcast_to(c, (*x.shape[:-1], groups, groups))
    w = best_weights(c) if weights is None else np.asarray(weights, dtype=np.float64)
    w = np.broadcast_to(w, x.shape)
    value = (w * x).sum(axis=-1)
    variance = np.einsum("...g,...gh,...h->...", w, c, w)
    apart = x - (best_weights(c) * x).sum(axis=-1)[..., None]
    if groups == 1:
        chi2 = np.zeros_like(value)
    else:
        inverse = np.linalg.pinv(c, rcond=1e-12, hermitian=True)
        chi2 = np.einsum("...g,...gh,...h->...", apart, inverse, apart)
    return Combined(value, np.maximum(variance, 0.0), w, chi2)


def best_weights(covariance: FloatArray) -> FloatArray:
    """The weights of least variance that sum to 1, shape (..., G), for C of shape (..., G, G).

    Solves [[C, 1], [1', 0]] (w, μ) = (0, 1), which also has a solution where C is singular.
    """
    groups = covariance.shape[-1]
    if groups == 1:
        return np.ones(covariance.shape[:-1])
    size = np.einsum("...gg->...", covariance) / groups
    scaled = covariance / np.where(size > 0, size, 1.0)[..., None, None]
    system = np.ones((*covariance.shape[:-2], groups + 1, groups + 1))
    system[..., :groups, :groups] = scaled
    system[..., groups, groups] = 0.0
    solved: FloatArray = np.linalg.pinv(system, rcond=1e-12, hermitian=True)[..., :groups, groups]
    return solved
