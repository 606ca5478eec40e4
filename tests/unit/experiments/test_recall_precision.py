"""Figure 2 (§4.1): recall and precision over k, h and m, on a part of the grid, with two seeds."""

from __future__ import annotations

import math

import pytest

from rappor.experiments.experiment import Outcome
from rappor.experiments.recall_precision import experiment as module
from rappor.privacy import epsilon_one
from support.outcomes import check_complete, silent


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """Of the grid a part, for time's sake."""
    with pytest.MonkeyPatch.context() as patch:
        part = tuple(shape for shape in module.GRID if shape[0] == 128 and shape[2] == 16)
        patch.setattr(module, "GRID", part)
        return module.EXPERIMENT.run(2, silent)


@pytest.mark.long
def test_an_outcome_is_complete(outcome: Outcome) -> None:
    check_complete(outcome)


@pytest.mark.slow
def test_every_setting_of_the_grid_costs_ln_3_and_no_more() -> None:
    for shape in module.GRID:
        epsilon = epsilon_one(module.params_of(*shape))
        assert math.log(3) * (1 - 1e-9) < epsilon <= math.log(3) * (1 + 1e-15)


def test_the_noise_is_solved_anew_for_each_number_of_hashes() -> None:
    solved = [module.params_of(128, h, 16).q for h in (1, 2, 4, 8)]
    assert solved == pytest.approx([3 ** (1 / h) / (1 + 3 ** (1 / h)) for h in (1, 2, 4, 8)])


def test_fewer_hashes_find_more_and_one_finds_most(outcome: Outcome) -> None:
    (points, _noise) = outcome.tables
    recall = {row[1]: row[4] for row in points.rows}
    assert recall[1] > recall[2] > recall[4] > recall[8]


def test_verdicts_on_hashes_follow_the_numbers() -> None:
    falling = {1: [40.0, 41.0], 2: [34.0, 35.0], 4: [27.0, 28.0], 8: [20.0, 21.0]}
    best_of_many, best_of_all = module._hashes(falling)
    assert best_of_many.agrees
    assert not best_of_all.agrees
    flat = {h: [30.0, 31.0] for h in (1, 2, 4, 8)}
    best_of_many, best_of_all = module._hashes(flat)
    assert not best_of_many.agrees
    assert best_of_all.agrees


def test_every_column_of_the_points_has_a_name_of_its_own(outcome: Outcome) -> None:
    for table in outcome.tables:
        assert len(set(table.columns)) == len(table.columns)


def precisions(strict: dict[int, list[float]], loose: dict[int, list[float]]) -> module.Runs:
    """Runs, by seed, in which only precision differs."""
    both = {"bonferroni": strict, "none": loose}
    return [
        {
            (shape, correction): module.RecallRun(0.3, found[shape[1]][seed])
            for shape in module.GRID
            for correction, found in both.items()
        }
        for seed in range(2)
    ]


def test_two_hashes_are_best_in_precision_only_if_they_are_above_all_others() -> None:
    tied = {h: [1.0, 1.0] for h in module.HASHES}
    falling = {1: [0.93, 0.94], 2: [0.91, 0.92], 4: [0.90, 0.91], 8: [0.88, 0.89]}
    assert not module._precision(precisions(tied, falling)).agrees
    peak = {1: [0.93, 0.94], 2: [0.97, 0.98], 4: [0.95, 0.96], 8: [0.90, 0.91]}
    assert module._precision(precisions(peak, falling)).agrees
    assert not module._precision(precisions(falling, peak)).agrees


def test_points_have_error_bars_and_do_not_hide_each_other(outcome: Outcome) -> None:
    for figure in outcome.figures:
        for panel in figure.spec["concat"][1:]:
            across, along, points = panel["layer"]
            assert across["encoding"]["x2"]["field"] == "recall_high"
            assert along["encoding"]["y2"]["field"] == "precision_high"
            assert not points["mark"]["filled"]
            for row in panel["data"]["values"]:
                assert row["recall_low"] <= row["recall"] <= row["recall_high"]
                assert row["precision_low"] <= row["precision"] <= row["precision_high"]
