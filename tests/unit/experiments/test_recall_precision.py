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
