"""Pair counts: what is counted, that parts add up, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rappor import Counts, DecodeError, PairCounts, Params, WireError
from rappor.aggregate import count_pairs

ONE, TWO = Params(11, 2, 3, 0.5, 0.25, 0.75), Params(3, 1, 3, 0.25, 0.25, 0.75)


def drawn(reports: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (reports, 11)), generator.integers(0, 2, (reports, 3))
    first, second = (np.packbits(each, axis=1, bitorder="little") for each in bits)
    return first, second, generator.integers(0, 3, reports)


def counted(reports: int, seed: int) -> PairCounts:
    return count_pairs(*drawn(reports, seed), (ONE, TWO), names=("x", "y"), reports_per_client=1)


def test_every_pair_of_bits_is_counted_by_cohort() -> None:
    first, second, cohorts = drawn(5000, 1)
    found = counted(5000, 1)
    bits = (np.unpackbits(packed, axis=1, bitorder="little") for packed in (first, second))
    one, two = (each.astype(np.int64) for each in bits)
    for cohort in range(3):
        here = cohorts == cohort
        assert found.totals[cohort] == here.sum()
        assert np.array_equal(found.both[cohort], one[here][:, :11].T @ two[here][:, :3])
        assert np.array_equal(found.first.ones[cohort], one[here][:, :11].sum(axis=0))
        assert np.array_equal(found.second.ones[cohort], two[here][:, :3].sum(axis=0))


def test_parts_add_up_in_any_order_with_zero_as_the_neutral_element() -> None:
    parts = [counted(200, seed) for seed in (1, 2, 3)]
    one, two, three = parts
    assert (one + two) + three == three + (two + one)
    assert one + PairCounts.zero(one.first, one.second) == one
    assert (one + two).reports == 400


def test_other_parameters_do_not_add_up() -> None:
    other = count_pairs(*drawn(10, 1), (ONE, Params(3, 1, 3, 0.5, 0.25, 0.75)), names=("x", "y"))
    with pytest.raises(DecodeError, match="another params"):
        counted(10, 1) + other


def test_a_file_brings_everything_back(tmp_path: Path) -> None:
    pairs = counted(300, 4)
    pairs.to_npz(tmp_path / "pairs.npz")
    assert PairCounts.from_npz(tmp_path / "pairs.npz") == pairs


def test_a_file_of_other_counts_is_named(tmp_path: Path) -> None:
    counted(10, 1).first.to_npz(tmp_path / "counts.npz")
    with pytest.raises(DecodeError, match="not pair counts"):
        PairCounts.from_npz(tmp_path / "counts.npz")


def test_counts_that_contradict_each_other_are_refused() -> None:
    pairs = counted(100, 1)
    with pytest.raises(DecodeError, match="more or less often than the single bits allow"):
        PairCounts(pairs.first, pairs.second, pairs.both + 100)
    other = Counts.zero(TWO)
    with pytest.raises(DecodeError, match="same reports in each cohort"):
        PairCounts(pairs.first, other, pairs.both)


def test_reports_without_a_partner_and_cohorts_out_of_range_are_refused() -> None:
    first, second, cohorts = drawn(10, 1)
    with pytest.raises(WireError, match="each report needs both"):
        count_pairs(first, second[:9], cohorts, (ONE, TWO))
    with pytest.raises(WireError, match="cohort"):
        count_pairs(first, second, cohorts + 1, (ONE, TWO))
    with pytest.raises(DecodeError, match="share their cohorts: m is 3 and 4"):
        count_pairs(first, second, cohorts, (ONE, Params(3, 1, 4, 0.5, 0.25, 0.75)))
