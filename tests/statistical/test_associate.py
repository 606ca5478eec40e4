"""Are the errors of associations true: coverage, type I error, family-wise error.

400 runs of each scenario are in `make calibrate`. Here 40 runs give 40 × 20 cells: coverage of
.95 has a standard error of .008 (cells of a run are nearly independent), so .92 to .98 accepts the
truth with 4 of them, and standard errors a fifth too small (coverage .88) or a third too large
(.991) are rejected. A type I error of .05 leads to more than 8 rejections in 40 with a chance of
1e-4; a test that rejects a fifth of true hypotheses has 8 on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import rappor
from rappor import Params
from rappor.decoding.options import Correction
from rappor.simulate import pair_reports
from rappor.typing import FloatArray
from support.joint_tables import (
    dependent,
    independent,
    listed,
    realised,
    tuple_counts,
    tuple_views,
)

RUNS = 40
FIRST, SECOND = Params(32, 2, 16, 0.5, 0.25, 0.75), Params(16, 2, 16, 0.5, 0.25, 0.75)
ROWS, COLUMNS = 5, 4


class Case(NamedTuple):
    repeats: int
    unlisted: float = 0.0
    heavy: float = 0.0


CASES = {
    "once": Case(1),
    "weekly": Case(7, unlisted=0.3),
    "monthly": Case(30, heavy=0.15),
    "diffuse": Case(1, unlisted=0.3),
    "heavy": Case(1, heavy=0.15),
}


def runs(case: Case, *, associated: bool, number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """z of all listed cells, p-values of independence, smallest corrected p-value of each run."""
    joint = (dependent if associated else independent)(ROWS, COLUMNS, case.unlisted, case.heavy)
    z, p_values, smallest = [], [], []
    for seed in range(number):
        drawn = pair_reports(
            joint,
            (FIRST, SECOND),
            30_000 // case.repeats * case.repeats,
            seed=[seed, associated],
            reports_per_client=case.repeats,
        )
        found = rappor.associate(drawn.count(), listed(joint))
        here = (found.share - realised(drawn, *found.labels)) / found.std_error
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
def test_independent_variables_are_called_associated_as_often_as_promised(name: str) -> None:
    _, p_values, smallest = runs(CASES[name], associated=False, number=RUNS)
    assert (p_values < 0.05).sum() <= 8
    assert (smallest < 0.05).sum() <= 8
    assert 0.3 < p_values.mean() < 0.7  # uniform, within 4 standard errors


def test_a_few_runs_cover_and_hold_their_level() -> None:
    z, _, _ = runs(CASES["heavy"], associated=True, number=8)
    assert (np.abs(z) < 1.96).mean() > 0.85
    assert not (np.abs(z) / 0.5 < 1.96).mean() > 0.85
    _, p_values, _ = runs(CASES["weekly"], associated=False, number=8)
    assert (p_values < 0.05).sum() <= 3


@pytest.mark.parametrize("number", [8, pytest.param(60, marks=pytest.mark.long)])
def test_errors_are_true_where_half_as_many_numbers_are_unknown_as_are_told(number: int) -> None:
    """A table of 15 × 15 whose 196 interactions 392 equations tell: 196 cells in each run.

    Seven bits of eight tell values apart, in 8 cohorts: one over 1 - 196/392 is the factor that
    variances have over those of a table that one cohort tells. The variance of 196 z values in
    each of 8 runs has a standard error of √(2 / 1568) = .036; .85 to 1.12 accepts the truth, which
    is a little below 1 because errors allow for unlisted values, and rejects variances without a
    quarter of the factor (1.28).
    """
    params, size = Params(8, 2, 8, 0.25, 0.25, 0.75), 14
    z, departed = [], []
    for seed in range(number):
        for joint, kept in ((dependent(size, size), z), (independent(size, size), departed)):
            drawn = pair_reports(joint, (params, params), 40_000, seed=[seed, 11])
            found = rappor.associate(drawn.count(), listed(joint))
            if kept is z:
                here = (found.share - realised(drawn, *found.labels)) / found.std_error
            else:
                columns = found.rows.columns
                here = np.asarray(columns["departure"]) / columns["departure_std_error"]
            kept.append(here[:size, :size].ravel())
    for values in (z, departed):
        assert 0.85 < np.var(values) < 1.12
        assert not 0.85 < np.var(values) * 1.28 < 1.12


BLOCK = 4  # pairs that depart
FDR = 0.2


@pytest.mark.parametrize("number", [12, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", ["separate", "tuple"])
def test_few_of_the_pairs_that_bh_finds_are_independent(method: str, number: int) -> None:
    """Benjamini and Hochberg at 20 %: the mean share of false discoveries stays below it.

    Ten first and four second values, all equally frequent, and four pairs of which two are more
    frequent and two less, so that no other pair departs. With a standard deviation of at most .25
    the mean of the shares is below .2 + 3 · .25 / √runs: .42 for 12. Without correction it is .6.
    """
    rows, columns = 10, 4
    joint = {(f"x{row}", f"y{column}"): 1 / 40 for row in range(rows) for column in range(columns)}
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        joint[f"x{row}", f"y{column}"] += 0.018 if row == column else -0.018
    limit = FDR + 3 * 0.25 / np.sqrt(number)
    shares: dict[str, list[float]] = {"bh": [], "none": []}
    hits = 0
    for seed in range(number):
        for correction, kept in shares.items():
            found = _block_found(method, joint, seed, correction)
            true = {cell for cell in found if cell[0] in ("x0", "x1") and cell[1] in ("y0", "y1")}
            kept.append(1 - len(true) / len(found) if found else 0.0)
            hits += len(true) * (correction == "bh")
    assert np.mean(shares["bh"]) < limit
    assert not np.mean(shares["none"]) < limit
    assert hits > BLOCK * number / 4  # nothing found would keep every rate


def _block_found(
    method: str, joint: dict[tuple[str, str], float], seed: int, correction: Correction
) -> list[tuple[str, str]]:
    """The pairs that depart, in a collection of its own."""
    lists = listed(joint)
    if method == "separate":
        params = Params(16, 2, 16, 0.25, 0.25, 0.75)
        counts = pair_reports(joint, (params, params), 100_000, seed=[seed, 12]).count()
        found = rappor.associate(counts, lists, correction=correction, alpha=FDR)
    else:
        views, once = tuple_views(lists[1]), Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
        drawn, _ = tuple_counts(joint, views, once, 100_000, seed=[seed, 12])
        found = rappor.associate(
            drawn, (lists[0], None), views=views, correction=correction, alpha=FDR
        )
    return [(cell.first, cell.second) for cell in found.associated]
