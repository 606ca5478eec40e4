"""Large tables are solved without their covariance, and say the same as with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

from rappor.decoding import least_squares
from rappor.decoding.least_squares import ALIKE, Dense, Iterative, solve
from rappor.errors import DecodeError

COHORTS, BITS, SHARES = 24, 16, 60


def design(*, levels: int = 1) -> csr_array:
    """Shares that set one bit of each cohort; then a level of all bits."""
    generator = np.random.default_rng(3)
    bits = generator.integers(0, BITS, (COHORTS, SHARES)) + BITS * np.arange(COHORTS)[:, None]
    columns = np.tile(np.arange(SHARES), COHORTS)
    hashed = csr_array(
        (np.ones(bits.size), (bits.ravel(), columns)), shape=(COHORTS * BITS, SHARES)
    )
    level = csr_array(np.ones((COHORTS * BITS, levels)))
    return hstack([hashed, level], format="csr") if levels else hashed


def sums(*, of: int, size: int = SHARES + 1) -> csr_array:
    """Functions of so many neighbouring shares each."""
    starts = np.arange(0, SHARES + 1, of)
    return csr_array((np.ones(SHARES), np.arange(SHARES), starts), shape=(SHARES // of, size))


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[Dense, Iterative]:
    generator = np.random.default_rng(5)
    matrix = design()
    precision = generator.uniform(0.5, 2.0, matrix.shape[0])
    seen = matrix @ generator.uniform(0, 1, matrix.shape[1]) + generator.normal(
        0, 1 / np.sqrt(precision)
    )
    dense = solve(matrix, seen, precision)
    monkeypatch.setattr(least_squares, "MAX_DENSE", 10)
    iterative = solve(matrix, seen, precision)
    assert isinstance(dense, Dense)
    assert isinstance(iterative, Iterative)
    return dense, iterative.with_draws()


@pytest.mark.parametrize("further", [1, 2, 3])
def test_functions_that_sum_shares_are_whitened_as_their_covariance_says(
    both: tuple[Dense, Iterative], further: int
) -> None:
    functions = sums(of=further)
    table = csr_array(np.random.default_rng(1).normal(size=(functions.shape[0], 4)))
    squares = [white.T @ white for white in (each.whiten(functions, table) for each in both)]
    scale = np.sqrt(np.outer(*[np.diag(squares[0])] * 2))
    assert np.abs(squares[1] - squares[0]).max() < 1e-3 * scale.max()


@pytest.mark.parametrize("is_known", [False, True])
def test_variances_of_a_few_sums_are_exact(both: tuple[Dense, Iterative], is_known: bool) -> None:
    """A few draws would give those of 20 sums within a tenth; also if their total is known."""
    functions = sums(of=3)
    dense, iterative = both
    if is_known:
        total = csr_array(np.atleast_2d(functions.sum(axis=0)))
        dense, iterative = dense.with_sum(total, 1.0), iterative.with_sum(total, 1.0)
        assert total @ iterative.share == pytest.approx(1)
        assert iterative.covariance(total, total) == pytest.approx(0, abs=1e-3)
    exact = dense.covariance(functions, functions)
    assert iterative.covariance(functions, functions) == pytest.approx(exact, rel=0.02)


def test_shares_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns are alike: conjugate gradients alone find one of many solutions."""
    table = design().toarray()
    table[:, 7] = table[:, 3]
    matrix = csr_array(table)
    precision = np.ones(matrix.shape[0])
    seen = matrix @ np.ones(matrix.shape[1])
    with pytest.raises(DecodeError, match=ALIKE):
        solve(matrix, seen, precision)
    monkeypatch.setattr(least_squares, "MAX_DENSE", 10)
    found = solve(matrix, seen, precision)
    assert isinstance(found, Iterative)
    with pytest.raises(DecodeError, match=ALIKE):
        found.with_draws()
