"""Are the errors of a tuple's table true: coverage, type I error, family-wise error.

400 runs of each scenario are in `make calibrate`. Here 40 runs give 40 × 20 cells: coverage of
.95 has a standard error of .008 (cells of a run are nearly independent), so .92 to .98 accepts the
truth with 4 of them, and standard errors a fifth too small (coverage .88) or a third too large
(.991) are rejected. A type I error of .05 leads to more than 8 rejections in 40 with a chance of
1e-4; a test that rejects a fifth of true hypotheses has 8 on average. Unlisted values have new
names in every run: which bits they lift is a part of what is random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import rappor
from rappor import Params
from rappor.typing import FloatArray
from support.joint_tables import (
    dependent,
    in_table,
    independent,
    renamed,
    tuple_counts,
    tuple_views,
)

RUNS = 40
PARAMS = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
ROWS, COLUMNS = 5, 4
X = [f"x{row}" for row in range(ROWS)]
Y = [f"y{column}" for column in range(COLUMNS)]
CLOSED, OPEN = tuple_views(Y), tuple_views(None, (0.6, 0.2, 0.2))


class Case(NamedTuple):
    repeats: int
    unlisted: float = 0.0
    heavy: float = 0.0
    is_open: bool = False  # both fields, each also seen alone


CASES = {
    "once": Case(1),
    "weekly": Case(7, unlisted=0.3),
    "monthly": Case(30, heavy=0.15),
    "diffuse": Case(1, unlisted=0.3),
    "heavy": Case(1, heavy=0.15),
    "open": Case(1, heavy=0.15, is_open=True),
}


def runs(case: Case, *, associated: bool, number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """z of all listed cells, p-values of independence, smallest corrected p-value of each run."""
    joint = (dependent if associated else independent)(ROWS, COLUMNS, case.unlisted, case.heavy)
    views = OPEN if case.is_open else CLOSED
    z, p_values, smallest = [], [], []
    for seed in range(number):
        counts, truth = tuple_counts(
            renamed(joint, f"{seed}-{associated}"),
            views,
            PARAMS,
            30_000 // case.repeats * case.repeats,
            seed=[seed, associated],
            repeats=case.repeats,
        )
        found = rappor.associate(counts, (X, Y if case.is_open else None), views=views)
        here = (found.share - in_table(truth, *found.labels)) / found.std_error
        z.append(here[:ROWS, :COLUMNS].ravel())
        p_values.append(found.independence.p_value)
        smallest.append(min(cell.adjusted_p_value for cell in found.rows if cell.p_value >= 0))
    return np.array(z), np.array(p_values), np.array(smallest)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_and_wrong_errors_would_be_noticed(name: str) -> None:
    z, _, _ = runs(CASES[name], associated=True, number=RUNS)
    assert 0.92 < (np.abs(z) < 1.96).mean() < 0.98
    assert not 0.92 < (np.abs(z) / 0.8 < 1.96).mean() < 0.98
    assert not 0.92 < (np.abs(z) / 1.333 < 1.96).mean() < 0.98


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_independent_fields_are_called_associated_as_often_as_promised(name: str) -> None:
    _, p_values, smallest = runs(CASES[name], associated=False, number=RUNS)
    assert (p_values < 0.05).sum() <= 8
    assert (smallest < 0.05).sum() <= 8
    assert 0.3 < p_values.mean() < 0.7  # uniform, within 4 standard errors


def test_a_few_runs_cover_and_hold_their_level() -> None:
    z, _, _ = runs(CASES["heavy"], associated=True, number=8)
    assert (np.abs(z) < 1.96).mean() > 0.85
    assert not (np.abs(z) / 0.5 < 1.96).mean() > 0.85
    _, p_values, _ = runs(CASES["once"], associated=False, number=8)
    assert (p_values < 0.05).sum() <= 3


@pytest.mark.long
def test_a_heavy_unlisted_value_among_short_reports_does_not_reject_independence() -> None:
    """Errors are true with 32 bits and 1,000,000 reports: 40 runs of 20 cells.

    The variance of z has a standard error of .05: 1.16 accepts the truth with 3 of them. Dropping
    the bits far above the fit gives 1.22 and rejects independence in one run of seven. More than 8
    rejections in 40 have a chance of 1e-4 at a level of .05.
    """
    joint = independent(ROWS, COLUMNS, 0.0, 0.15)
    params, z, rejected = replace(PARAMS, k=32), [], 0
    for seed in range(40):
        counts, truth = tuple_counts(renamed(joint, seed), CLOSED, params, 1_000_000, seed=seed)
        found = rappor.associate(counts, (X, None), views=CLOSED)
        rejected += found.is_associated
        here = (found.share - in_table(truth, *found.labels)) / found.std_error
        z.append(here[:ROWS, :COLUMNS].ravel())
    assert rejected <= 8
    assert 0.84 < np.var(z) < 1.16
