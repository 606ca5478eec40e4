"""Generalised least squares: the least variance that any weights can have."""

import numpy as np
import pytest

from rappor.decoding.closed_form import best_weights, combine
from rappor.errors import DecodeError

C = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 9.0]])


def test_weights_are_those_of_the_formula():
    inverse = np.linalg.inv(C)
    expected = inverse.sum(axis=1) / inverse.sum()
    found = combine([1.0, 2.0, 3.0], C)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10)
    assert found.value == pytest.approx(expected @ [1, 2, 3])
    assert found.variance == pytest.approx(1 / inverse.sum())


def test_no_other_weights_have_less_variance():
    rng = np.random.default_rng(5)
    least = combine([0.0, 0.0, 0.0], C).variance
    for _ in range(200):
        w = rng.normal(size=3)
        w /= w.sum()
        assert w @ C @ w >= least * (1 - 1e-12)


def test_chi2_is_the_residual_sum_of_squares():
    x = np.array([1.0, 2.0, 4.0])
    found = combine(x, C)
    apart = x - found.value
    assert found.chi2 == pytest.approx(apart @ np.linalg.inv(C) @ apart)
    assert combine([2.0, 2.0, 2.0], C).chi2 == pytest.approx(0)


def test_many_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(7, 3))
    scales = rng.uniform(0.1, 5, 7)
    found = combine(x, scales[:, None, None] * C)
    for index in range(7):
        one = combine(x[index], scales[index] * C)
        assert found.value[index] == pytest.approx(one.value)
        assert found.variance[index] == pytest.approx(one.variance)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12])
def test_any_scale_gives_the_same_weights(size):
    np.testing.assert_allclose(best_weights(size * C), best_weights(C), rtol=1e-9)


def test_groups_with_the_same_noise_do_not_break_it():
    found = combine([1.0, 1.0, 5.0], [[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    assert found.value == pytest.approx(3)
    assert found.variance == pytest.approx(1)


def test_given_weights_are_used_with_their_variance():
    found = combine([1.0, 3.0], [[1.0, 0.5], [0.5, 2.0]], [0.5, 0.5])
    assert found.value == 2
    assert found.variance == pytest.approx(1.0)


def test_one_group_is_itself():
    found = combine([[0.3], [0.4]], [[2.0]])
    assert found.value.tolist() == [0.3, 0.4]
    assert found.variance.tolist() == [2.0, 2.0]
    assert found.chi2.tolist() == [0.0, 0.0]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(DecodeError, match="must fit each other"):
        combine([1.0, 2.0], [[1.0]])
