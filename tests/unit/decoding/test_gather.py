"""The two ways to gather give the same bits, and those are of the sum in the stated order."""

import sys

import numpy as np
import pytest

from rappor.decoding import design
from rappor.decoding.design import gather_sums

M, COHORTS, H, K = 9000, 3, 2, 37  # more candidates than a block holds


@pytest.fixture
def index() -> np.ndarray:
    return np.random.default_rng(1).integers(0, K + 1, (COHORTS * H, M)).astype(np.uint16)


def table(dtype: type) -> np.ndarray:
    draw = np.random.default_rng(2)
    if dtype is np.uint64:
        words = draw.integers(0, 2**64, (COHORTS, K + 1), dtype=np.uint64)
    else:  # sizes so different that any other order of summation shows
        words = draw.normal(size=(COHORTS, K + 1)) * 10.0 ** draw.integers(-9, 9, (COHORTS, K + 1))
    words[:, K] = 0
    return words


def in_order(words: np.ndarray, index: np.ndarray) -> list[float]:
    sums = []
    for column in index.T.tolist():
        total = 0.0 if words.dtype == np.float64 else 0
        for row, position in enumerate(column):
            total += words[row // H, position].item()
        sums.append(total if words.dtype == np.float64 else total % 2**64)
    return sums


@pytest.mark.parametrize("dtype", [np.float64, np.uint64])
@pytest.mark.parametrize("compile_from", [0, 10**9], ids=["compiled", "numpy"])
def test_sums_run_over_cohorts_then_hashes(index, dtype, compile_from, monkeypatch):
    monkeypatch.setattr(design, "COMPILE_FROM", compile_from)
    words = table(dtype)
    sums = gather_sums(words, index, H)
    assert sums.dtype == dtype
    assert sums.tolist() == in_order(words, index)


def test_the_order_of_summation_is_visible_in_these_numbers(index):
    words = table(np.float64)
    backwards = gather_sums(words[::-1], index[::-1], H)
    assert not np.array_equal(backwards, gather_sums(words, index, H))


def test_large_designs_are_compiled_and_small_ones_not(index, monkeypatch):
    asked = []
    monkeypatch.setattr(design, "_compiled", lambda: asked.append(1))
    gather_sums(table(np.float64), index, H)
    assert not asked
    monkeypatch.setattr(design, "COMPILE_FROM", index.size)
    gather_sums(table(np.float64), index, H)
    assert asked


def test_without_numba_numpy_does_it(index, monkeypatch):
    words = table(np.float64)
    expected = gather_sums(words, index, H)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(design, "COMPILE_FROM", 0)
    design._compiled.cache_clear()
    try:
        assert design._compiled() is None
        assert np.array_equal(gather_sums(words, index, H), expected)
    finally:
        design._compiled.cache_clear()
