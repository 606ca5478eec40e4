"""The paper's procedure: LASSO finds what is there, is optimal, and repeats itself."""

import numpy as np
import pytest

from rappor import Params, simulate
from rappor.aggregate import Counts
from rappor.decoding.decode import decode
from rappor.decoding.lasso import FOLDS, LassoProblem, choose_penalty, folds

S1 = Params(128, 2, 16, 0.5, 0.5, 0.75)
NAMES = [f"V_{number}" for number in range(1, 201)]
SHARES = dict(zip(NAMES, 0.9505 ** np.arange(1, 101), strict=False))
BITS_THAT_ARE_NOT_ALIKE = Params(100, 2, 8, 0.25, 0.35, 0.65)  # 256 % 100 bits are more frequent


def drawn(params=S1, reports=10**6, seed=38, sizes=None):
    return simulate.counts(SHARES, params, reports, seed=seed, dialect="google", cohort_sizes=sizes)


def search_of(counts, names=NAMES):
    return decode(counts, names).detail.search


def columns_of(decoded):
    rows = decoded.rows
    return [
        getattr(rows, name).tolist()
        for name in ("estimate", "std_error", "low", "high", "p_value", "adjusted_p_value")
    ]


@pytest.fixture(scope="module")
def exponential():
    return drawn()


@pytest.fixture(scope="module")
def decoded(exponential):
    return decode(exponential, NAMES, method="lasso", correction="holm")


@pytest.mark.slow
def test_heavy_strings_are_found_with_their_counts(decoded):
    # The 20 most frequent have 8 to 24 standard errors: none is missed at family-wise 5 %.
    found = {row.string for row in decoded.detected}
    assert set(NAMES[:20]) <= found
    total = sum(SHARES.values())
    for name in NAMES[:20]:
        row = decoded.row(name)
        assert abs(row.estimate - 10**6 * SHARES[name] / total) < 5 * row.std_error


def test_absent_strings_are_not_found(decoded):
    assert not {row.string for row in decoded.detected} & set(NAMES[100:])


def test_what_lasso_drops_is_not_significant_but_is_corrected_for(decoded):
    active = {decoded.detail.search.design.strings.strings[i] for i in decoded.detail.fit.active}
    p_value = dict(zip(decoded.rows.strings, decoded.rows.p_value, strict=True))
    assert all(p_value[name] == 1.0 for name in NAMES if name not in active)
    first = min(p_value.values())
    assert decoded.rows.adjusted_p_value.min() == pytest.approx(200 * first)


@pytest.mark.slow
def test_the_same_counts_give_the_same_table(exponential, decoded):
    again = decode(exponential, NAMES, method="lasso", correction="holm")
    assert columns_of(again) == columns_of(decoded)
    assert list(again.rows.strings) == list(decoded.rows.strings)


@pytest.mark.slow
def test_the_order_of_candidates_does_not_matter(exponential, decoded):
    mixed = [NAMES[i] for i in np.random.default_rng(1).permutation(len(NAMES))]
    again = decode(exponential, mixed, method="lasso", correction="holm")
    assert columns_of(again) == columns_of(decoded)
    assert list(again.rows.strings) == list(decoded.rows.strings)


def dense_lasso(search, penalty):
    """scikit-learn on the whole dense matrix, weights and the intercept's column by hand.

    An unpenalised column beside penalised ones: take it out of y and of all columns first.
    """
    from sklearn.linear_model import Lasso

    seen = search.seen
    even = np.full(seen.shares.shape, seen.expected)
    root = np.sqrt(1.0 / seen.variance(even).ravel())
    x = search.design.columns(np.arange(len(search.design))).toarray() * root[:, None]
    y, level = seen.shares.ravel() * root, search.level * root
    size = level @ level
    x_left = x - np.outer(level, level @ x / size)
    y_left = y - level * (level @ y / size)
    model = Lasso(alpha=penalty, positive=True, fit_intercept=False, tol=1e-10, max_iter=100_000)
    # scikit-learn divides the sum of squares by the number of rows, Problem by the weights' sum.
    model.fit(x_left * np.sqrt(len(y) / size), y_left * np.sqrt(len(y) / size))
    return model.coef_, float(level @ (y - x @ model.coef_) / size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "sizes"),
    [(S1, None), (BITS_THAT_ARE_NOT_ALIKE, None), (S1, 1 / np.arange(1, 17))],
)
@pytest.mark.parametrize("part", [0.5, 0.1, 0.03])
def test_the_solution_is_that_of_scikit_learn_on_the_dense_matrix(params, sizes, part):
    search = search_of(drawn(params, sizes=sizes))
    problem = LassoProblem(search)
    start = problem.empty()
    penalty = part * float(start.pull.max())
    found = problem.solve(penalty, start)
    share, intercept = dense_lasso(search, penalty)
    ours = np.zeros(len(search.design))
    ours[found.working] = found.share
    assert (share > 0).sum() >= 2
    np.testing.assert_allclose(ours, share, atol=2e-3 * share.max())
    assert found.intercept == pytest.approx(intercept, rel=1e-2)


@pytest.mark.slow
def test_the_optimality_conditions_hold_for_every_candidate(exponential):
    search = search_of(exponential)
    problem = LassoProblem(search)
    start = problem.empty()
    penalty = 0.05 * float(start.pull.max())
    found = problem.solve(penalty, start)
    assert found.pull.max() <= penalty * 1.01
    np.testing.assert_allclose(found.pull[found.selected], penalty, rtol=0.01)


@pytest.mark.slow
def test_a_smaller_working_set_leads_to_the_same_solution(exponential, monkeypatch):
    problem = LassoProblem(search_of(exponential))
    start = problem.empty()
    penalty = 0.03 * float(start.pull.max())
    at_once = problem.solve(penalty, start)
    monkeypatch.setattr("rappor.decoding.lasso._AT_ONCE", 3)
    by_threes = problem.solve(penalty, start)
    assert by_threes.selected.tolist() == at_once.selected.tolist()
    np.testing.assert_allclose(
        by_threes.share[by_threes.share > 0], at_once.share[at_once.share > 0], atol=1e-4
    )


def test_no_more_than_a_third_of_the_bits_is_fitted(monkeypatch):
    # A tiny penalty keeps more candidates than the bits can tell apart.
    monkeypatch.setattr(
        "rappor.decoding.lasso.choose_penalty",
        lambda _, problem: 1e-6 * float(problem.empty().pull.max()),
    )
    few_bits = Params(16, 1, 4, 0.25, 0.35, 0.65)
    found = decode(drawn(few_bits), NAMES, method="lasso")
    assert len(found.detail.fit.active) == 16 * 4 // 3


def test_counts_in_which_nothing_stands_out_select_little():
    counts = simulate.counts(
        [f"other {number}" for number in range(5000)], S1, 10**6, seed=3, dialect="google"
    )
    found = decode(counts, NAMES, method="lasso", correction="holm")
    assert not found.detected


def test_nothing_is_selected_where_no_candidate_pulls():
    counts = drawn()
    even = Counts(
        S1, counts.totals, np.full((16, 128), 31_250), dialect="google", reports_per_client=1
    )
    search = search_of(even)
    assert choose_penalty(search, LassoProblem(search)) is None
    assert not decode(even, NAMES, method="lasso").detected


@pytest.mark.slow
def test_empty_cohorts_are_left_out():
    counts = drawn(sizes=[1.0] * 12 + [0.0] * 4)
    found = decode(counts, NAMES, method="lasso", correction="holm")
    assert set(NAMES[:10]) <= {row.string for row in found.detected}


def test_folds_are_even_and_mixed():
    found = folds(2048)
    sizes = np.bincount(found, minlength=FOLDS)
    assert sizes.max() - sizes.min() <= 1
    for cohort in found.reshape(16, 128):
        assert np.bincount(cohort, minlength=FOLDS).min() >= 20
