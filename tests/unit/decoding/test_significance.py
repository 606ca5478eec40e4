"""P-values corrected for all M tests."""

import numpy as np
import pytest
from scipy import stats

from rappor.decoding.significance import (
    CORRECTIONS,
    adjust,
    benjamini_hochberg,
    check_correction,
    cut_off,
    null_share,
)
from rappor.errors import DecodeError

P = np.array([0.04, 0.001, 0.9, 0.012, 0.3, 0.0001])
RNG = np.random.default_rng(41)
MANY = [RNG.random(n) ** power for n in (1, 2, 10, 200) for power in (1, 3)]


def test_hand_computed_values():
    assert adjust(P, "bonferroni") == pytest.approx([0.24, 0.006, 1, 0.072, 1, 0.0006])
    # Sorted .0001 .001 .012 .04 .3 .9, times 6 5 4 3 2 1.
    assert adjust(P, "holm") == pytest.approx([0.12, 0.005, 0.9, 0.048, 0.6, 0.0006])
    assert adjust(P, "none") == pytest.approx(P)
    # Two p-values above .05: (1 + 2) / (6 * .95) = 10/19 of six are nulls. Plain, the smallest are
    # 6 p / rank = .0006, .003 and .024; 10/19 of that. The others are p itself.
    assert null_share(P) == pytest.approx(10 / 19)
    assert adjust(P, "fdr") == pytest.approx(
        [0.04, 0.003 * 10 / 19, 0.9, 0.024 * 10 / 19, 0.3, 0.0006 * 10 / 19]
    )


@pytest.mark.parametrize("p", MANY)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_fdr_is_the_plain_procedure_at_a_level_that_knows_the_share_of_nulls(p, alpha):
    nulls = null_share(p)
    expected = (stats.false_discovery_control(p) <= min(alpha / nulls, 1)) & (p <= alpha)
    assert ((adjust(p, "fdr") <= alpha) == expected).all()


def test_where_all_seem_to_be_nulls_fdr_is_the_plain_procedure():
    p = np.array([1e-4, 0.06, 0.5, 0.6, 0.7, 0.8])
    assert null_share(p) == 1.0
    plain = stats.false_discovery_control(p)
    assert adjust(p, "fdr") == pytest.approx(plain)


@pytest.mark.parametrize("p", MANY)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_the_plain_procedure_rejects_what_scipy_does(p, alpha):
    found = benjamini_hochberg(p, alpha)
    assert found.tolist() == np.flatnonzero(stats.false_discovery_control(p) <= alpha).tolist()


@pytest.mark.parametrize("p", [*MANY, P, np.array([0.5] * 7), np.array([0.0, 1.0, 1.0])])
def test_bh_is_what_scipy_has_row_by_row(p):
    assert adjust(p, "bh") == pytest.approx(stats.false_discovery_control(p, method="bh"))


@pytest.mark.parametrize("p", MANY)
def test_fdr_never_finds_less_than_bh(p):
    assert (adjust(p, "fdr") <= adjust(p, "bh") + 1e-15).all()


def test_bh_and_fdr_are_said_to_be_what_they_are():
    assert CORRECTIONS["fdr"].rate.format(alpha="5 %") == "FDR 5 %, adaptive"
    assert "adaptive" in CORRECTIONS["fdr"].promise
    assert CORRECTIONS["bh"].rate.format(alpha="5 %") == "FDR 5 %, Benjamini-Hochberg"


@pytest.mark.parametrize("p", MANY)
def test_holm_is_never_above_bonferroni_and_none_is_below_p(p):
    assert (adjust(p, "holm") <= adjust(p, "bonferroni")).all()
    assert (adjust(p, "holm") >= p).all()
    assert (adjust(p, "fdr") >= p).all()
    assert (adjust(p, "bh") <= adjust(p, "holm") + 1e-15).all()


@pytest.mark.parametrize("p", MANY)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_corrections_keep_the_order_and_stay_within_0_and_1(p, correction):
    adjusted = adjust(p, correction)
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
    assert ((adjusted >= 0) & (adjusted <= 1)).all()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_equal_p_values_are_treated_alike_and_none_is_fine(correction):
    assert len(set(adjust([0.01, 0.01, 0.5], correction)[:2])) == 1
    assert adjust([], correction).shape == (0,)
    assert len(benjamini_hochberg(np.array([]), 0.05)) == 0
    assert null_share(np.array([])) == 1.0


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_what_is_given_is_not_changed(correction):
    given = P.copy()
    adjust(given, correction)[:] = 7
    assert (given == P).all()


@pytest.mark.parametrize("p", MANY)
@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "none"])
def test_the_cut_off_is_where_one_more_candidate_is_detected(p, correction):
    detected = adjust(p, correction) <= 0.05
    rest = np.flatnonzero(~detected)
    if not len(rest):
        return
    cut = cut_off(p, int(detected.sum()), correction, 0.05)
    for factor, is_found in ((0.999, True), (1.001, False)):
        trial = p.copy()
        trial[rest[np.argmin(p[rest])]] = cut * factor
        assert (adjust(trial, correction) <= 0.05).sum() == detected.sum() + is_found


def test_the_fdr_cut_off_is_exact_when_the_share_of_nulls_stays():
    p = np.array([1e-5, 1e-4, 0.4, *np.linspace(0.55, 0.99, 60)])
    cut = cut_off(p, 2, "fdr", 0.05)
    assert cut == pytest.approx(0.05 * 3 / 63)
    for factor, number in ((0.999, 3), (1.001, 2)):
        trial = p.copy()
        trial[2] = cut * factor
        assert (adjust(trial, "fdr") <= 0.05).sum() == number


def test_an_unknown_correction_is_refused_with_the_names():
    with pytest.raises(DecodeError, match="one of fdr, bh, holm, bonferroni, none; got 'by'"):
        check_correction("by")
    with pytest.raises(DecodeError, match="got 'fwer'"):
        adjust(P, "fwer")
