"""Conjugate gradients: solutions of equations that are never written down as a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rappor.typing import FloatArray

Linear = Callable[[FloatArray], FloatArray]

_MAX_STEPS = 2_000
_MAX_CONDITION = 1e10  # of the preconditioned equations, whose eigenvalues are near 1


def conjugate_gradients(
    apply: Linear,
    precondition: Linear,
    right: FloatArray,
    precise: float,
    start: FloatArray | None = None,
) -> FloatArray:
    """N^-1 times each column of a table, for a symmetric positive definite N.

    Equations that have many solutions are noticed if the right side has a part that no solution
    explains, as a random one has; a right side that they do explain gives any of its solutions.

    Args:
        apply: N times each column.
        precondition: nearly N^-1 times each column.
        right: the right sides, shape (unknowns, columns).
        precise: the relative error of a column, in the norm of N.
        start: solutions that are nearly right; default: the preconditioned right side.

    Raises:
        numpy.linalg.LinAlgError: N is singular.

    >>> table = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> right = np.array([[3.0], [5.0]])
    >>> conjugate_gradients(lambda x: table @ x, lambda x: x / 2, right, 1e-9).round(6).tolist()
    [[0.8], [1.4]]
    """
    goal = precise**2 * (right * precondition(right)).sum(axis=0)
    found = precondition(right) if start is None else start
    left = right - apply(found)
    near = precondition(left)
    direction, length = near, (left * near).sum(axis=0)
    longest = _MAX_CONDITION * np.maximum(length, goal)  # a residual grows by less
    for _ in range(_MAX_STEPS):
        short = length > goal
        if not short.any():
            return found
        image = apply(direction)
        curve = (direction * image).sum(axis=0)
        if ((length > _MAX_CONDITION * curve) | (length > longest))[short].any():
            break
        step = np.divide(length, curve, out=np.zeros_like(length), where=curve > 0)
        found = found + step * direction
        left = left - step * image
        near = precondition(left)
        before, length = length, (left * near).sum(axis=0)
        ratio = np.divide(length, before, out=np.zeros_like(length), where=before > 0)
        direction = near + ratio * direction
    raise np.linalg.LinAlgError("the equations have many solutions")
