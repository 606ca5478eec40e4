"""The fit: shares, covariance, τ², and the robust steps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from rappor import Params
from rappor.decoding.design import build_design
from rappor.decoding.fit import between_bits, inverse_information, least_squares, robust
from rappor.decoding.observe import observe
from rappor.simulate import simulate

PARAMS = Params(64, 2, 8, 0.25, 0.35, 0.65)
POPULATION = {"a": 0.3, "b": 0.2, "c": 0.1, "d": 0.4}


def fitted(strings, population=POPULATION, params=PARAMS, seed=3, reports=400_000, **more):
    drawn = simulate(population, params, reports, seed=seed, **more)
    design = build_design(strings, params, "rappor-v1")
    seen = observe([drawn.counts])
    active = tuple(range(len(strings)))
    level = np.ones(params.m * params.k)
    return drawn, seen, least_squares(seen, design.columns(active), active, level)


def test_shares_lie_within_their_errors_of_the_truth():
    drawn, _, fit = fitted(list("abcd"))
    truth = np.array([drawn.truth[name] for name in "abcd"]) / drawn.counts.reports
    z = (fit.share - truth) / np.sqrt(np.diag(fit.covariance)[1:])
    assert np.abs(z).max() < 4.5
    assert fit.chi2 == pytest.approx(fit.freedom, abs=5 * np.sqrt(2 * fit.freedom))


def test_it_is_weighted_least_squares():
    _, seen, fit = fitted(list("abcd"))
    dense = np.column_stack([fit.level, fit.columns.toarray()])
    root = np.sqrt(fit.information)
    best, *_ = np.linalg.lstsq(dense * root[:, None], seen.shares.ravel() * root, rcond=None)
    assert fit.share == pytest.approx(best[1:], rel=1e-6)
    assert np.allclose(dense.T @ fit.score, 0, atol=1e-6 * np.abs(dense.T @ np.abs(fit.score)))


def test_the_intercept_takes_mass_that_is_spread_evenly():
    unlisted = {f"u{number}": 0.5 / 2000 for number in range(2000)}
    _, _, fit = fitted(["a"], {"a": 0.5, **unlisted})
    assert fit.intercept * PARAMS.k / PARAMS.h == pytest.approx(0.5, abs=0.05)
    assert fit.share[0] == pytest.approx(0.5, abs=0.01)


def test_variance_between_bits_solves_its_equation_and_is_0_without_excess():
    rng = np.random.default_rng(5)
    v = rng.uniform(1, 3, 2000)
    e = rng.normal(0, np.sqrt(v + 0.7))
    extra = between_bits(e, v, 2000)
    assert (e**2 / (v + extra)).sum() == pytest.approx(2000)
    assert extra == pytest.approx(0.7, abs=0.3)
    assert between_bits(e / 2, v, 2000) == 0


@pytest.mark.parametrize(("freedom", "excess"), [(2000, 3 * (2 / 2000) ** 0.5), (50, 0.1)])
def test_an_excess_that_may_be_chance_or_is_below_a_tenth_widens_nothing(freedom, excess):
    flat = np.ones(freedom)
    assert between_bits(np.sqrt((1 + 0.99 * excess) * flat), flat, freedom) == 0
    above = between_bits(np.sqrt((1 + 1.01 * excess) * flat), flat, freedom)
    assert above == pytest.approx(1.01 * excess)
    certain = between_bits(np.sqrt((1 + 0.5 * excess) * flat), flat, freedom, certain=True)
    assert certain == pytest.approx(0.5 * excess)


def test_repeated_reports_leave_more_than_noise_for_certain():
    once = simulate({"a": 1.0}, PARAMS, 1000, seed=1).counts
    assert not observe([once]).repeated
    assert observe([replace(once, reports_per_client=2)]).repeated
    assert observe([once, once]).repeated


def test_leverage_is_the_diagonal_of_the_hat_matrix(monkeypatch):
    monkeypatch.setattr("rappor.decoding.fit._AT_ONCE", 3)
    _, _, fit = fitted(list("abcd"))
    dense = np.column_stack([fit.level, fit.columns.toarray()]) * np.sqrt(fit.information)[:, None]
    assert fit.leverage == pytest.approx(np.diag(dense @ np.linalg.pinv(dense)), rel=1e-6)


def mean_scale(fit, excess, rounds=200):
    """The mean scale of fits to noise with more variance than thought, by `excess` of each bit."""
    rng = np.random.default_rng(8)
    scales = []
    for _ in range(rounds):
        noise = rng.normal(0, np.sqrt((fit.variance + fit.extra) * (1 + excess)))
        drawn = replace(fit, residual=noise, share=np.zeros(4), intercept=0.0)
        scales.append(drawn.without(np.zeros(len(noise))).widened().scale)
    return float(np.mean(scales))


def test_standard_errors_take_in_an_excess_that_weights_leave_out():
    _, _, fit = fitted(list("abcd"))
    none = np.zeros(len(fit.residual))
    assert mean_scale(fit, none + 0.2) == pytest.approx(1.2, abs=0.02)
    assert 1.0 < mean_scale(fit, none) < 1.04


def test_an_excess_counts_as_much_as_its_bits():
    _, _, fit = fitted(list("abcd"), cohort_sizes=[20, *[1] * 7])
    in_the_large = np.where(np.arange(len(fit.residual)) < PARAMS.k, 0.4, 0.0)
    assert mean_scale(fit, in_the_large) > 1.25
    assert mean_scale(fit, 0.4 - in_the_large) < 1.2


def test_what_is_probably_added_widens_even_where_residuals_do_not_show_it():
    _, _, fit = fitted(list("abcd"))
    quiet = replace(fit, score=fit.score / 2)
    assert quiet.widened().scale == 1.0
    added = fit.extra + 0.04 * float((fit.variance + fit.extra).mean())
    assert quiet.widened(added).scale == pytest.approx(1.04, abs=0.01)


def test_a_cohort_without_reports_has_no_say():
    sizes = [0, *[1] * 7]
    _, seen, fit = fitted(list("abcd"), cohort_sizes=sizes)
    assert seen.rows == 7 * PARAMS.k
    assert fit.freedom == 7 * PARAMS.k - 5
    assert (fit.information[: PARAMS.k] == 0).all()
    assert np.isfinite(fit.share).all()


def test_columns_that_depend_on_each_other_share_their_mass():
    design = build_design(list("ab"), PARAMS, "rappor-v1")
    twice = design.columns([0, 0, 1])
    covariance = inverse_information(twice, np.ones(512), np.ones(512))
    assert np.isfinite(covariance).all()
    assert covariance[1, 1] == pytest.approx(covariance[2, 2])


@pytest.mark.slow
def test_taking_unlisted_mass_out_removes_what_a_missing_string_adds():
    """A missing string of 40 % lifts bits: the plain fit is off, the robust one is not."""
    wrong, right = [], []
    for seed in range(12):
        drawn, seen, plain = fitted(list("abc"), seed=seed)
        better = robust(seen, plain)
        truth = np.array([drawn.truth[name] for name in "abc"]) / drawn.counts.reports
        assert better.law is not None
        assert better.chi2_dof > 10  # what noise alone cannot explain is still said
        wrong.append((plain.share - truth) ** 2)
        z = (better.share - truth) / np.sqrt(better.scale * np.diag(better.covariance)[1:])
        right.append(z**2)
    # 36 squared z; chi2 with 36 degrees of freedom, one-sided 1e-4, and room for three shared draws
    assert np.sum(right) < 1.5 * chi2(36).isf(1e-4)
    assert np.sqrt(np.mean(wrong)) > 3 * np.sqrt(np.diag(better.covariance)[1:].mean())


def test_weights_that_did_not_settle_are_those_of_the_estimate_and_are_told(monkeypatch):
    """One round at low noise: shares, residuals and covariance belong to the last weights."""
    low = Params(64, 2, 8, 0.0, 0.01, 0.99)
    _, seen, settled = fitted(list("abcd"), params=low, reports=20_000)
    assert settled.settled
    monkeypatch.setattr("rappor.decoding.fit._STEPS", 1)
    _, seen, fit = fitted(list("abcd"), params=low, reports=20_000)
    assert not fit.settled
    dense = np.column_stack([fit.level, fit.columns.toarray()])
    root = np.sqrt(fit.information)
    best, *_ = np.linalg.lstsq(dense * root[:, None], seen.shares.ravel() * root, rcond=None)
    assert fit.share == pytest.approx(best[1:], rel=1e-9)
    assert fit.residual == pytest.approx(seen.shares.ravel() - dense @ best, abs=1e-12)
    assert fit.covariance == pytest.approx(np.linalg.inv((dense.T * fit.information) @ dense))
