"""Tests with all other candidates taken off the bits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from rappor import Params, simulate
from rappor.decoding.decode import decode
from rappor.decoding.design import build_design
from rappor.decoding.fit import refit
from rappor.decoding.search import Search
from rappor.decoding.shrinkage import learn_shares, score_without_others

PARAMS = Params.preset("windows")
PRESENT = 300
STRINGS = [f"string{number}" for number in range(1, 2 * PRESENT + 1)]
SHARES = 1.0 / (np.arange(PRESENT) + 10.0) ** 1.6


@pytest.fixture(scope="module", params=[1, 2])
def search(request: pytest.FixtureRequest) -> Search:
    """A list with as many absent strings as present ones, most of them rare."""
    population = dict(zip(STRINGS, SHARES / SHARES.sum(), strict=False))
    counts = simulate.counts(population, PARAMS, reports=150_000, seed=request.param)
    design = build_design(STRINGS, PARAMS, "rappor-v1")
    return decode(counts, design, correction="holm").detail.search


def test_a_doubtful_member_has_the_p_value_of_a_table_made_without_it(search: Search) -> None:
    """The whole search without it, as the theorem asks for, gives the same but for what is kept."""
    fit, scores = search.grow((), 0.05, robustly=False)
    _, tested = score_without_others(search, fit, scores, 0.05)
    doubtful = [column for column in fit.active if tested.p_design[column] > 1e-7]
    assert doubtful
    for column in doubtful:
        rest = np.delete(np.arange(len(search.design)), column)
        part = replace(search, design=search.design.subset(rest))
        other, other_scores = part.grow((), 0.05, robustly=False)
        found = p_value_by(part, search, column, other, other_scores)
        assert np.log10(tested.p_design[column]) == pytest.approx(np.log10(found), abs=0.35)


@pytest.mark.slow
def test_without_a_correction_those_near_alpha_have_it_too(search: Search) -> None:
    """Their p-values come nearer to those of a search that never heard of them."""
    fit, scores = search.grow((), 0.05, robustly=False)
    holm, alone = (
        score_without_others(replace(search, correction=correction), fit, scores, 0.05)[1].p_design
        for correction in ("holm", "none")
    )
    near = np.flatnonzero(holm != alone)
    assert ((alone[near] > 0.03) & (alone[near] < 0.08)).all()
    expected = []
    for column in near[:12]:
        rest = np.delete(np.arange(len(search.design)), column)
        part = replace(search, design=search.design.subset(rest))
        expected.append(p_value_by(part, search, column, *part.grow((), 0.05, robustly=False)))
    shared, own = (np.abs(np.log(p[near[:12]] / expected)).mean() for p in (holm, alone))
    assert own < shared


def p_value_by(part: Search, search: Search, column: int, fit, scores) -> float:
    """The test of a candidate by the table of a search that never heard of it, written out."""
    outside = scores.testable.copy()
    outside[list(fit.active)] = False
    share, error, off = scores.share, np.sqrt(1 / scores.information), 0.0
    table = fit
    for step in range(3):
        law = learn_shares((share / error)[outside])
        mean = np.zeros(len(outside))
        mean[outside] = law.shrink((share / error)[outside]).mean * error[outside]
        off = mean if not step else (off + mean) / 2
        columns = part.design.columns(fit.active)
        table = refit(part.seen, fit, columns, fit.active, part.design.scatter(off))
        share = part.gather(table.score) / scores.information + off
    bits = search.design.columns([column]).toarray()[:, 0]
    shared = table.times(table.information * bits)
    left = bits @ table.information - shared @ table.covariance @ shared
    null = part.null(table, table.score)
    above = (bits @ table.score - null.centre) * np.sqrt(scores.typical / left)
    return float(ndtr(-null.deviate(null.centre + above)))


@pytest.mark.parametrize("seed", [2, 6])
def test_the_only_promising_candidate_is_tested_by_a_table_without_any(seed: int) -> None:
    """No other is searched then: what is left is an empty fit, not the mean of nothing."""
    strings = [f"s{number}" for number in range(40)]
    population = dict.fromkeys(strings, 1.0) | {strings[0]: 20.0}
    params = Params(64, 1, 16, 0.2, 0.2239, 0.5307)
    counts = simulate.counts(population, params, reports=600, seed=seed)
    p_values = [row.p_value for row in decode(counts, strings).rows]
    assert all(0 < p_value < 1 for p_value in p_values)


def test_what_nobody_holds_shrinks_to_nothing_and_what_many_hold_stays() -> None:
    rng = np.random.default_rng(7)
    law = learn_shares(np.concatenate([rng.normal(0, 1, 1900), rng.normal(5, 1, 100)]))
    shrunken = law.shrink(np.array([-2.0, 0.0, 1.0, 5.0]))
    assert shrunken.mean[:3].max() < 0.2
    assert shrunken.mean[3] == pytest.approx(5, abs=0.3)
    assert (shrunken.slope >= 0).all()
    assert (shrunken.slope <= 1).all()
