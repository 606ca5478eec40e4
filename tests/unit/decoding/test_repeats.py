"""Reports that share B' are correlated by exactly as much as the code says."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rappor import Params
from rappor.decoding.repeats import design_effect, kept_apart, repeats, rho, shared_noise
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism import channel

WINDOWS, CHROME = Params.preset("windows"), Params.preset("chrome")
PARAMS = [WINDOWS, CHROME, Params(8, 1, 1, 0.25, 0.125, 0.5), Params(8, 1, 1, 0.5, 0.0, 1.0)]


def variance_of_ones(params: Params, true_bit: int, reports: int) -> Fraction:
    """Of how many of one client's reports have a bit set, by enumerating B' and every report."""
    f, p, q = params.exact
    law: dict[int, Fraction] = {}
    for memo in (0, 1):
        kept = 1 - f / 2 if memo == true_bit else f / 2
        one = q if memo else p
        for drawn in product((0, 1), repeat=reports):
            ones = sum(drawn)
            chance = kept * one**ones * (1 - one) ** (reports - ones)
            law[ones] = law.get(ones, Fraction(0)) + chance
    mean = sum(ones * chance for ones, chance in law.items())
    return sum(((ones - mean) ** 2 * chance for ones, chance in law.items()), Fraction(0))


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("true_bit", [0, 1])
@pytest.mark.parametrize("reports", [1, 2, 5])
def test_the_design_effect_is_exact_for_clients_that_all_repeat(params, true_bit, reports):
    r = channel(params)[true_bit]
    independent = reports * r * (1 - r)
    widened = float(variance_of_ones(params, true_bit, reports) / independent)
    assert design_effect(params, r, reports) == pytest.approx(widened, rel=1e-14)


@pytest.mark.parametrize("params", PARAMS)
def test_shared_noise_is_the_same_covariance_in_counts(params):
    p_star, q_star = channel(params)
    covariance = rho(params) * float(p_star * (1 - p_star) / (q_star - p_star) ** 2)
    assert shared_noise(params) == pytest.approx(covariance, rel=1e-14)


def test_the_papers_figures():
    assert round(rho(WINDOWS), 3) == 0.048
    assert round(rho(CHROME), 3) == 0.061
    assert rho(Params(8, 1, 1, 0.5, 0.0, 1.0)) == 1
    assert rho(Params.preset("normal")) == 0
    assert design_effect(WINDOWS, reports_per_client=18) == pytest.approx(1.81, abs=0.005)


def test_arrays_and_numbers_agree():
    shares = np.array([[0.2, 0.5], [0.6, 0.9]])
    expected = [[rho(WINDOWS, float(r)) for r in row] for row in shares]
    np.testing.assert_allclose(rho(WINDOWS, shares), expected, rtol=1e-14)
    np.testing.assert_allclose(
        design_effect(WINDOWS, shares, 3), 1 + 2 * np.array(expected), rtol=1e-14
    )


def most_pairs(sizes: list[int]) -> int:
    """Ordered pairs by one client, where each client reports in as many periods as it can."""
    clients = [sum(size > client for size in sizes) for client in range(max(sizes))]
    return sum(times * (times - 1) for times in clients)


@pytest.mark.parametrize("sizes", [[3, 2, 1], [5, 5], [7, 0, 4, 4], [9]])
def test_pairs_across_periods_are_as_many_as_clients_can_make(sizes):
    found = repeats([[size] for size in sizes])
    assert found[0] == pytest.approx(most_pairs(sizes) / sum(sizes))


def test_kept_apart_periods_never_exceed_the_bound_for_their_sum():
    totals = np.array([[10, 4, 0], [10, 9, 0], [10, 1, 0]])
    apart = kept_apart(WINDOWS, None, totals)
    bound = design_effect(WINDOWS, reports_per_client=3)
    assert apart[0] == pytest.approx(bound)
    assert 1 < apart[1] < bound
    assert apart[2] == 1
    shares = np.full((3, 8), 0.6)
    by_bit = kept_apart(WINDOWS, shares, totals)
    assert by_bit.shape == (3, 8)
    assert by_bit[1, 0] == pytest.approx(kept_apart(WINDOWS, 0.6, totals)[1])


def test_repeats_within_periods_count_too():
    assert repeats([[10], [10]], [3, 3])[0] == pytest.approx(5)  # six reports each
    assert repeats([[10], [10]], 1)[0] == pytest.approx(1)
    assert repeats([[10]], 4)[0] == 3


@pytest.mark.parametrize("r", [0, 1, -0.1, 1.5, float("nan"), "0.5", True])
def test_impossible_shares_are_refused(r):
    with pytest.raises(DecodeError, match="share of ones"):
        rho(WINDOWS, r)


def test_impossible_inputs_are_refused():
    with pytest.raises(DecodeError):
        rho(WINDOWS, np.array([0.5, 1.0]))
    with pytest.raises(ParamsError):
        design_effect(WINDOWS, reports_per_client=0)
    with pytest.raises(DecodeError, match="periods"):
        repeats([[1], [2]], [1, 1, 1])
    with pytest.raises(DecodeError, match="totals"):
        repeats([[-1.0]])
