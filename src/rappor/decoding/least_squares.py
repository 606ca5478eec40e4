"""Weighted least squares with a sparse design: shares, and the variances of sums of them.

The covariance of all shares is N^-1, N = X' W X. Up to `MAX_DENSE` shares it is computed. Beyond
that N is never formed: shares come from conjugate gradients, and so do the variances of up to
`_FEW` functions. Those of more come from a few draws of N(0, N^-1), pooled over functions of one
sort, which differ only in where their bits were hashed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array

from rappor.decoding.conjugate_gradients import Linear, conjugate_gradients
from rappor.errors import DecodeError
from rappor.typing import FloatArray

MAX_DENSE = 2_500
_DRAWS = 8
_FEW = 50  # functions whose variances are computed one by one
_PRECISE = 1e-5  # of shares: far below their noise
_ROUGH = 0.01  # of what variances are made from
_MAX_CONDITION = 1e12
ALIKE = (
    "some of the pairs cannot be told apart by the bits of the cohorts that have reports: list "
    "fewer candidates, or collect with more cohorts or more bits"
)


class FittedShares(Protocol):
    """The shares that fit best, and how sure they are."""

    @property
    def share(self) -> FloatArray:
        """The shares."""

    @property
    def leverage(self) -> FloatArray:
        """How much of each row's noise the fit takes up, from 0 to 1."""

    def covariance(self, one: csr_array, other: csr_array) -> FloatArray:
        """Covariance of row i of `one` times the shares and row i of `other` times the shares."""

    def whiten(self, functions: csr_array, table: csr_array) -> FloatArray:
        """W with W'W = table' Σ^-1 table, Σ the covariance of the functions' values.

        Each function is a sum of shares, of which no two functions have one in common.
        """

    def with_sum(self, function: csr_array, total: float) -> FittedShares:
        """The solution for which one function of the shares is known to have this value."""


def solve(
    matrix: csr_array, seen: FloatArray, precision: FloatArray, start: FloatArray | None = None
) -> FittedShares:
    """Least squares of `seen` on the columns of a matrix, rows weighted by their precision.

    Args:
        matrix: shape (rows, shares).
        seen: what was observed.
        precision: 1/variance of each row; 0 leaves a row out.
        start: shares that are nearly right, which save time.

    Raises:
        DecodeError: columns cannot be told apart.
    """
    if matrix.shape[1] <= MAX_DENSE:
        return _dense(matrix, seen, precision)
    return _iterative(matrix, seen, precision, start)


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A solution with the covariance of all shares."""

    share: FloatArray
    inverse: FloatArray = field(repr=False)
    leverage: FloatArray = field(repr=False)
    operator: FloatArray = field(repr=False)  # shares = operator @ seen, (shares, rows)

    def covariance(self, one: csr_array, other: csr_array) -> FloatArray:
        """See `FittedShares`."""
        found: FloatArray = np.asarray(other.multiply(one @ self.inverse).sum(axis=1)).ravel()
        return found

    def whiten(self, functions: csr_array, table: csr_array) -> FloatArray:
        """See `FittedShares`."""
        spread = functions @ (functions @ self.inverse).T
        try:
            root = np.linalg.cholesky(spread)
        except np.linalg.LinAlgError:
            raise DecodeError(ALIKE) from None
        found: FloatArray = solve_triangular(root, table.toarray(), lower=True)
        return found

    def with_sum(self, function: csr_array, total: float) -> Dense:
        """See `FittedShares`."""
        effect = (function @ self.inverse).ravel()
        gain = effect / float((function @ effect)[0])
        share = self.share - gain * float((function @ self.share)[0] - total)
        inverse = self.inverse - np.outer(gain, effect)
        operator = self.operator - np.outer(gain, function @ self.operator)
        return replace(self, share=share, inverse=inverse, operator=operator)


def _dense(matrix: csr_array, seen: FloatArray, precision: FloatArray) -> Dense:
    weighted = (matrix * precision[:, None]).tocsr()
    normal = (matrix.T @ weighted).toarray()
    try:
        inverse = cho_solve(cho_factor(normal), np.eye(len(normal)))
    except np.linalg.LinAlgError:
        raise DecodeError(ALIKE) from None
    condition = np.abs(normal).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    if not condition < _MAX_CONDITION:
        raise DecodeError(ALIKE)
    operator = (weighted @ inverse).T
    leverage = np.asarray(matrix.multiply(operator.T).sum(axis=1)).ravel()
    return Dense(operator @ seen, inverse, leverage, operator)


@dataclass(frozen=True, slots=True, eq=False)
class Iterative:
    """A solution without the covariance of all shares; variances need `with_draws` first."""

    share: FloatArray
    leverage: FloatArray = field(repr=False)
    equations: _Equations = field(repr=False)
    draws: FloatArray = field(repr=False, default_factory=lambda: np.empty((0, 0)))
    known: tuple[_Known, ...] = field(repr=False, default=())

    def with_draws(self) -> Iterative:
        """The solution with a few draws of the errors of all shares; shape (shares, draws).

        Raises:
            DecodeError: columns cannot be told apart.
        """
        generator = np.random.default_rng(0)
        # Shares and draws solve the equations even if there are many solutions; this does not.
        self.equations.solve(generator.standard_normal((len(self.share), 1)), _PRECISE)
        precision, turned = self.equations.precision, self.equations.turned
        noise = generator.standard_normal((len(precision), _DRAWS))
        draws = self.equations.solve(turned @ (np.sqrt(precision)[:, None] * noise), _ROUGH)
        return replace(self, draws=draws)

    def covariance(self, one: csr_array, other: csr_array) -> FloatArray:
        """See `FittedShares`; one by one for a few rows, else pooled over them.

        Pooled by what they would be if columns did not overlap. Columns are hashed at random, so
        they overlap nearly alike: a row's own variance is within a few per cent of the pooled one.
        """
        if one.shape[0] <= _FEW:
            effect = self._effects(one)
            return np.asarray(other.multiply(effect.T).sum(axis=1), np.float64).ravel()
        alone: FloatArray = np.asarray(one.power(2) @ (1.0 / self.equations.diagonal)).ravel()
        drawn = ((one @ self.draws) * (other @ self.draws)).mean(axis=1)
        ratio: float = drawn.sum() / alone.sum()
        return alone * ratio

    def whiten(self, functions: csr_array, table: csr_array) -> FloatArray:
        """See `FittedShares`.

        t' Σ^-1 t is the least x'Nx of all x whose functions have the values t. The least is found
        exactly over levels, which are in no function, and by conjugate gradients over how a
        function divides among its shares. An error of x enters x'Nx squared.
        """
        equations, root = self.equations, np.sqrt(self.equations.precision)[:, None]
        matrix, turned = equations.matrix, equations.turned
        within = np.asarray(functions.sum(axis=0)).ravel() > 0
        levels = root * matrix[:, np.flatnonzero(~within)].toarray()
        inverse = np.linalg.inv(levels.T @ levels)

        def without_levels(image: FloatArray) -> FloatArray:
            left: FloatArray = image - levels @ (inverse @ (levels.T @ image))
            return left

        count = np.asarray(functions.sum(axis=1))[:, None]
        back = functions.T.tocsr()
        evenly = back @ table.multiply(1.0 / count).tocsr()
        white = without_levels(root * (matrix @ evenly).toarray())
        if count.max() == 1:
            return white
        alone = (within / equations.diagonal)[:, None]
        sums = functions @ alone

        def apply(change: FloatArray) -> FloatArray:
            made: FloatArray = turned @ (root * without_levels(root * (matrix @ change)))
            return made

        def precondition(left: FloatArray) -> FloatArray:
            """Nearly the inverse, among changes that leave every function as it is."""
            near = alone * left
            made: FloatArray = near - alone * (back @ ((functions @ near) / sums))
            return made

        change = _solved(apply, precondition, -(turned @ (root * white)), _ROUGH)
        return white + without_levels(root * (matrix @ change))

    def with_sum(self, function: csr_array, total: float) -> Iterative:
        """See `FittedShares`."""
        effect = self._effects(function)[:, 0]
        gain = effect / float((function @ effect)[0])
        share = self.share - gain * float((function @ self.share)[0] - total)
        draws = self.draws - np.outer(gain, function @ self.draws)
        return replace(self, share=share, draws=draws, known=(*self.known, _Known(gain, effect)))

    def _effects(self, functions: csr_array) -> FloatArray:
        """The covariance of all shares and each function; shape (shares, functions)."""
        found = self.equations.solve(functions.T.toarray(), _ROUGH)
        for gain, effect in self.known:
            found = found - np.outer(gain, functions @ effect)
        return found


class _Known(NamedTuple):
    """What a known sum takes from the covariance of all shares: gain effect'."""

    gain: FloatArray
    effect: FloatArray


class _Equations:
    """N x = b by conjugate gradients, N = X' W X applied as X and W."""

    def __init__(self, matrix: csr_array, precision: FloatArray) -> None:
        self.matrix, self.turned, self.precision = matrix, matrix.T.tocsr(), precision
        self.diagonal: FloatArray = self.turned @ precision
        if (self.diagonal <= 0).any():
            raise DecodeError(ALIKE)

    def solve(
        self, right: FloatArray, precise: float, start: FloatArray | None = None
    ) -> FloatArray:
        """N^-1 times the columns of a table, to this relative error in the norm of N."""
        diagonal = self.diagonal[:, None]
        return _solved(self._apply, lambda left: left / diagonal, right, precise, start)

    def _apply(self, table: FloatArray) -> FloatArray:
        image: FloatArray = self.turned @ (self.precision[:, None] * (self.matrix @ table))
        return image


def _solved(
    apply: Linear,
    precondition: Linear,
    right: FloatArray,
    precise: float,
    start: FloatArray | None = None,
) -> FloatArray:
    try:
        return conjugate_gradients(apply, precondition, right, precise, start)
    except np.linalg.LinAlgError:
        raise DecodeError(ALIKE) from None


def _iterative(
    matrix: csr_array, seen: FloatArray, precision: FloatArray, start: FloatArray | None
) -> Iterative:
    equations = _Equations(matrix, precision)
    right = (equations.turned @ (precision * seen))[:, None]
    near = None if start is None else start[:, None]
    share = equations.solve(right, _PRECISE, near)[:, 0]
    live = float((precision > 0).sum())
    # What it would be if columns did not overlap, made to sum to the number of columns.
    leverage = precision * (matrix.power(2) @ (1.0 / equations.diagonal))
    leverage = leverage * (matrix.shape[1] / float(leverage.sum()))
    leverage = np.minimum(leverage, 1.0 - 1.0 / live)
    return Iterative(share, leverage, equations)
