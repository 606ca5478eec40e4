"""Folding: the same counts whichever way, every report kept once, in no order of arrival."""

import os
from typing import Any

import numpy as np
import pytest

from rappor.collector import fold
from rappor.collector.admission import Admitted, Destination
from rappor.store import CellKey


def place(k: int, m: int, keep: bool = False, period: str = "2026-11-16") -> Destination:
    return Destination(CellKey("c", 1, period), "digest", k, m, keep)


def batch_of(where: Destination, cohorts: np.ndarray, rows: np.ndarray) -> Admitted:
    return Admitted(os.urandom(16), where, cohorts.astype("<u2").tobytes(), rows.tobytes())


def random_batch(dice: np.random.Generator, reports: int, where: Destination) -> Admitted:
    bits = dice.integers(0, 2, (reports, where.k), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    return batch_of(where, dice.integers(0, where.m, reports), packed)


def by_hand(batches: list[Admitted], k: int) -> dict[int, tuple[int, list[int]]]:
    found: dict[int, tuple[int, list[int]]] = {}
    width = (k + 7) // 8
    for batch in batches:
        for i in range(len(batch.cohorts) // 2):
            cohort = int.from_bytes(batch.cohorts[2 * i : 2 * i + 2], "little")
            bits = int.from_bytes(batch.reports[width * i : width * (i + 1)], "little")
            total, ones = found.get(cohort, (0, [0] * k))
            found[cohort] = (total + 1, [one + (bits >> j & 1) for j, one in enumerate(ones)])
    return found


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("sizes", [[1], [1, 1, 3], [700, 1, 900], [1500, 1200]])
@pytest.mark.parametrize(("k", "m"), [(1, 1), (13, 3), (128, 32)])
def test_counts_are_those_of_counting_by_hand(k: int, m: int, sizes: list[int], keep: bool) -> None:
    dice = np.random.default_rng(k + len(sizes))
    batches = [random_batch(dice, size, place(k, m, keep)) for size in sizes]
    found = list(fold.folds(batches))
    assert {each.cohort: (each.total, each.ones.tolist()) for each in found} == by_hand(batches, k)
    assert all(each.ones.dtype == np.int64 for each in found)
    assert [each.cohort for each in found] == sorted({each.cohort for each in found})
    assert all((each.reports is not None) == keep for each in found)


@pytest.mark.parametrize("reports", [200, 5000])
def test_kept_reports_are_all_there_in_another_order(reports: int) -> None:
    rows = np.arange(reports, dtype="<u2").view(np.uint8).reshape(-1, 2)
    cohorts = np.arange(reports) % 2
    (even, odd) = fold.folds([batch_of(place(16, 2, True), cohorts, rows)])
    for start, each in ((0, even), (1, odd)):
        kept = np.frombuffer(each.reports or b"", "<u2")
        assert sorted(kept.tolist()) == list(range(start, reports, 2))
        # A shuffle leaves the rank correlation within 5 / sqrt(n) of 0; arrival order has 1.
        rank = np.corrcoef(kept, np.arange(len(kept)))[0, 1]
        assert abs(rank) < 5 / np.sqrt(len(kept))


def test_cells_come_apart_and_in_the_order_of_their_keys() -> None:
    dice = np.random.default_rng(1)
    batches = [random_batch(dice, 4, place(8, 2, period=f"2026-11-{10 + i % 3}")) for i in range(9)]
    keys = [(each.cell.period, each.cohort) for each in fold.folds(batches)]
    assert keys == sorted(keys)
    assert sum(each.total for each in fold.folds(batches)) == 36


@pytest.mark.slow
@pytest.mark.parametrize("reports", [40, 6000])
@pytest.mark.parametrize("keep", [False, True])
def test_a_large_cell_is_folded_by_a_few_cohorts_at_a_time(
    monkeypatch: pytest.MonkeyPatch, reports: int, keep: bool
) -> None:
    """The same folds as at once, and never more than a block of them."""
    dice = np.random.default_rng(3)
    batches = [random_batch(dice, reports // 2, place(61, 200, keep)) for _ in range(2)]
    whole = {each.cohort: (each.total, each.ones.tolist()) for each in fold.folds(batches)}
    sizes: list[int] = []
    counted = fold._count

    def count(rows: Any, cohorts: Any, k: int, first: int, block: int) -> Any:
        found = counted(rows, cohorts, k, first, block)
        sizes.append(found[2].size * 8)
        return found

    monkeypatch.setattr(fold, "_count", count)
    monkeypatch.setattr(fold, "_BLOCK_BYTES", 8 * 64 * 7)  # seven cohorts
    found = list(fold.folds(batches))
    assert {each.cohort: (each.total, each.ones.tolist()) for each in found} == whole
    assert [each.cohort for each in found] == sorted(whole)
    assert len(sizes) > 3
    assert max(sizes) <= 8 * 64 * 7
    assert sum(len(each.reports or b"") for each in found) == (reports * 8 if keep else 0)


def test_rows_are_weighed_by_what_is_written_not_by_what_was_sent() -> None:
    assert fold.rows_bytes(place(4096, 1024), 1) == 8 * 4097
    assert fold.rows_bytes(place(4096, 1024), 10**6) == 1024 * 8 * 4097
    assert fold.rows_bytes(place(128, 8, keep=True), 1) == 8 * 129 + 1024 * 16
