"""Laws of simulated collections, for any parameters and any crowd."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappor import Params
from rappor.simulate import reports, simulate, uniform
from rappor.simulate.crowd import distinct_values
from rappor.simulate.memos import memos_of
from support.params_strategies import valid_params

crowds = st.one_of(
    st.just({}),
    st.builds(lambda r: {"reports_per_client": r}, st.sampled_from([2, 3, 6])),
    st.builds(lambda n: {"clients": n}, st.integers(1, 40)),
    st.builds(
        lambda r, c: {"values": "changing", "change": c, "reports_per_client": r},
        st.sampled_from([2, 6]),
        st.floats(0, 1),
    ),
    st.builds(lambda r: {"values": "distinct", "reports_per_client": r}, st.sampled_from([2, 6])),
    st.just({"cohort_sizes": "random"}),
)


@pytest.mark.slow
@given(valid_params(), crowds, st.integers(0, 2**32), st.integers(0, 20))
def test_reports_and_counts_are_of_the_same_crowd(params, how, seed, sixes):
    small = Params(min(params.k, 64) + 2, min(params.h, 4), min(params.m, 16),
                   params.f, params.p, params.q)  # fmt: skip
    population, number = uniform(6, absent=1), 6 * sixes
    made = reports(population, small, number, seed=seed, keep_steps=True, **how)
    drawn = simulate(population, small, number, seed=seed, **how)
    assert made.truth == drawn.truth
    counted = made.count()  # refuses padding bits that are set
    assert counted.totals.tolist() == drawn.counts.totals.tolist()
    assert counted.reports_per_client == drawn.counts.reports_per_client
    assert (drawn.counts.ones <= drawn.counts.totals[:, None]).all()
    memos = {}
    for client, value, prr in zip(made.clients, made.values, made.prr, strict=True):
        assert memos.setdefault((client, value), prr.tobytes()) == prr.tobytes()
    most = max(np.bincount(made.clients * 6 + made.values), default=1)
    assert most <= made.reports_per_client


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=8))
def test_a_memo_is_one_client_and_one_value(rows):
    values = np.array(rows, np.int32)
    held, memo = memos_of(values)
    assert np.array_equal(held[memo], values.ravel())
    pairs = {(i // 3, value): number for i, (value, number) in
             enumerate(zip(values.ravel().tolist(), memo.tolist(), strict=True))}  # fmt: skip
    assert len(set(pairs.values())) == len(pairs) == len(held)


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 2**32), st.data())
def test_distinct_values_never_repeat(each, clients, seed, data):
    weights = data.draw(st.lists(st.floats(0.5, 1), min_size=2 * each, max_size=4 * each))
    shares = np.array(weights) / sum(weights)
    values = distinct_values(shares, clients, each, np.random.default_rng(seed))
    assert values.shape == (clients, each)
    assert all(len(set(row)) == each for row in values.tolist())
    assert values.min() >= 0
    assert values.max() < len(shares)
