"""Joint tables moved towards what their cells have in common."""

from __future__ import annotations

import numpy as np
import pytest

from rappor.decoding.shrunk_table import shrunk_table
from rappor.decoding.smoothing import project_simplex
from rappor.typing import FloatArray

ROWS, COLUMNS, NOISE = 50, 10, 0.002


def zipf(size: int) -> FloatArray:
    shares = 1.0 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


def drawn(truth: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Estimates of a table, and their shrunken ones with the independent table of their sums."""
    noise = np.random.default_rng(seed).normal(0, NOISE, truth.shape)
    share = truth + noise - noise.mean()
    expected = np.outer(share.sum(axis=1), share.sum(axis=0))
    unknown = np.full(ROWS, np.nan), np.full(COLUMNS, np.nan)
    return share, shrunk_table(share, np.full(truth.shape, NOISE), expected, unknown)


def distances(truth: FloatArray) -> FloatArray:
    """Σ |share - truth| of the projected and of the shrunken table, mean of four seeds."""
    made = []
    for seed in range(4):
        share, shrunk = drawn(truth, seed)
        projected = project_simplex(share.ravel()).reshape(share.shape)
        made.append([np.abs(table - truth).sum() for table in (projected, shrunk)])
    return np.asarray(np.mean(made, axis=0))


def decided(strength: float) -> FloatArray:
    """Zipf margins; for a share of the clients the row decides the column."""
    own = np.arange(COLUMNS) == np.arange(ROWS)[:, None] % COLUMNS
    return zipf(ROWS)[:, None] * ((1 - strength) * zipf(COLUMNS) + strength * own)


@pytest.mark.parametrize(
    ("strength", "limit"), [(0.0, 0.45), (0.1, 0.5), (0.5, 0.65), (0.9, 0.85)], ids=str
)
def test_a_large_table_is_much_nearer_than_its_projection(strength: float, limit: float) -> None:
    """Moving all cells by one factor, as James and Stein do, gains nothing from .5 on."""
    projected, shrunk = distances(decided(strength))
    assert shrunk < limit * projected


def test_one_pair_unlike_all_others_is_kept() -> None:
    truth = decided(0.0)
    truth[4, 7] += 0.05
    truth /= truth.sum()
    for seed in range(4):
        share, shrunk = drawn(truth, seed)
        assert shrunk[4, 7] == pytest.approx(share[4, 7], abs=NOISE)


def test_a_pair_is_kept_where_noise_leaves_nothing_of_its_row() -> None:
    """So that its share is far more than 1000 times what independence expects."""
    error = np.full((ROWS, COLUMNS), 0.0005)
    for seed in range(4):
        share = np.random.default_rng(seed).normal(1 / error.size, 0.0005, error.shape)
        share[0] = -0.006 / (COLUMNS - 1)
        share[0, 0] = 0.006
        expected = np.outer(share.sum(axis=1), share.sum(axis=0))
        margins = np.full(ROWS, 0.002), np.full(COLUMNS, 0.004)
        assert shrunk_table(share, error, expected, margins)[0, 0] > 0.004


def test_without_noise_nothing_moves() -> None:
    truth = decided(0.5)
    error = np.full(truth.shape, 1e-9)
    made = shrunk_table(truth, error, truth, (np.full(ROWS, 1e-9), np.full(COLUMNS, 1e-9)))
    assert made == pytest.approx(truth, abs=1e-7)


def test_rows_may_come_in_any_order() -> None:
    share, shrunk = drawn(decided(0.5), 1)
    order = np.random.default_rng(2).permutation(ROWS)
    unknown = np.full(ROWS, np.nan), np.full(COLUMNS, np.nan)
    expected = np.outer(share.sum(axis=1), share.sum(axis=0))[order]
    again = shrunk_table(share[order], np.full(share.shape, NOISE), expected, unknown)
    assert again == pytest.approx(shrunk[order], abs=1e-12)


def test_what_is_not_known_stays_so() -> None:
    share, _ = drawn(decided(0.5), 3)
    share[-1, 2:] = np.nan
    share[-2] = np.nan
    nothing = np.full(share.shape, np.nan)
    error = np.where(np.isnan(share), np.nan, NOISE)
    made = shrunk_table(share, error, nothing, (nothing[:, 0], nothing[0]))
    assert np.array_equal(np.isnan(made), np.isnan(share))
    assert np.nanmin(made) >= 0
    assert np.isnan(shrunk_table(nothing, nothing, nothing, (nothing[:, 0], nothing[0]))).all()
