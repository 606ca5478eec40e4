"""The figures behind a result, next to its checks."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.categories import decode_basic
from rappor.decoding.decode import decode
from rappor.decoding.diagnosis import diagnose, residuals, upper_deviates
from rappor.decoding.fit import least_squares
from rappor.decoding.ordinal import decode_ordinal
from support.crowd_counts import NAMES, PARAMS, POPULATION, N, counts


@pytest.fixture(scope="module")
def fine():
    return decode(counts(), NAMES)


def with_missing(**missing):
    left = 1 - sum(missing.values())
    return {**{name: left * share for name, share in POPULATION.items()}, **missing}


def failed(found):
    return {check.code: check.text for check in found.checks if not check.ok}


@pytest.fixture(scope="module")
def heavy():
    return decode(counts(with_missing(elsewhere=0.3)), NAMES)


def test_nothing_is_said_of_a_good_decoding(fine):
    found = diagnose(fine)
    assert found.checks == fine.checks
    assert all(check.ok for check in found.checks)
    assert found.missing.share is None
    assert found.missing.lifted <= 5


def test_residuals_are_standard_normal_where_nothing_is_wrong(fine):
    found = diagnose(fine)
    assert found.residuals.shape == (8, 64)
    assert abs(found.residuals.std() - 1) < 4 / math.sqrt(2 * 512)
    assert len(found.largest) == 10
    top = found.largest[0]
    assert abs(top.z) == np.abs(found.residuals).max()
    assert found.residuals[top.cohort, top.bit] == top.z


def test_high_cells_are_judged_by_their_binomial_tail_where_few_ones_are_expected():
    """800 reports in four cohorts, of which .2 % of absent bits are ones: the noise is skewed."""
    low = Params(64, 2, 4, 0.0, 0.002, 0.9)
    drawn = counts(params=low, reports=800, seed=3)
    found = decode(drawn, NAMES)
    detail = found.detail
    plain, judged = np.nan_to_num(residuals(detail)), upper_deviates(detail)
    shares = detail.search.seen.shares - plain * np.sqrt(detail.fit.variance.reshape(plain.shape))
    ones = np.clip(0.002 + 0.898 * shares, 0.5 / 201, None)
    high = np.argwhere((plain > 1.5) & (drawn.ones < 6))
    assert len(high) >= 5
    for cohort, bit in high:
        sent, seen = int(drawn.totals[cohort]), int(drawn.ones[cohort, bit])
        true = -ndtri(stats.binom.sf(seen - 1, sent, ones[cohort, bit]))
        assert judged[cohort, bit] == pytest.approx(true, abs=0.15)
        assert judged[cohort, bit] < plain[cohort, bit]
    below = plain <= 1.0
    assert (judged[below] == plain[below]).all()


def test_the_effect_of_a_string_is_the_chi2_it_takes_with_the_same_weights(fine):
    effects = {effect.string: effect.chi2 for effect in diagnose(fine).effects}
    assert set(effects) == {row.string for row in fine.detected}
    assert list(effects.values()) == sorted(effects.values(), reverse=True)
    fit, seen = fine.detail.fit, fine.detail.search.seen
    strings = fine.detail.search.design.strings.strings
    for place, column in enumerate(fit.active[:3]):
        others = np.delete(np.arange(len(fit.active)), place)
        less = least_squares(seen, fit.columns[:, others], (), fit.level)
        drop = ((less.residual**2 - fit.residual**2) * fit.information).sum()
        assert effects[strings[column]] == pytest.approx(drop, rel=0.05)


@pytest.mark.slow
def test_a_heavy_missing_string_is_named_with_its_share(heavy):
    found = diagnose(heavy)
    assert found.missing.share == pytest.approx(0.3, rel=0.1)
    assert 16 <= found.missing.lifted <= 20
    missing = failed(found)["missing"]
    assert "far above the fit. A string of about" in missing
    assert missing.endswith("is probably missing from the list.")
    assert failed(found)["fit"].startswith("The counts hold more than noise and detected strings")


@pytest.mark.slow
def test_a_missing_string_of_uneven_cohorts_is_not_taken_for_bad_cohorts():
    sizes = 1 / np.arange(1, 9)
    found = diagnose(decode(counts(with_missing(elsewhere=0.3), cohort_sizes=sizes), NAMES))
    assert found.missing.share == pytest.approx(0.3, rel=0.1)
    assert "cohorts" not in failed(found)
    assert failed(found)["balance"].startswith("Cohorts are uneven")
    assert found.balance.p_value < 1e-100


def test_the_wrong_dialect_is_suspected():
    found = diagnose(decode(counts(), NAMES, dialect="google"))
    assert "is the dialect (google) that of the clients" in failed(found)["missing"]


@pytest.mark.slow
def test_a_cohort_that_does_not_fit_is_named():
    good = counts()
    ones = good.ones.copy()
    ones[5] = np.roll(ones[5], 3)
    found = diagnose(decode(Counts(PARAMS, good.totals, ones, dialect="rappor-v1"), NAMES))
    assert failed(found)["cohorts"].startswith("1 of 8 cohorts do not fit while the others do: 5.")


def test_empty_cohorts_are_counted_and_have_no_residuals():
    found = diagnose(decode(counts(cohort_sizes=[1, 1, 0, 1, 1, 1, 1, 1]), NAMES))
    assert found.balance.empty == 1
    assert np.isnan(found.residuals[2]).all()
    assert not np.isnan(found.residuals[[0, 1, 3]]).any()
    assert failed(found)["balance"].startswith("1 of 8 cohorts have no reports")
    assert all(residual.cohort != 2 for residual in found.largest)


def test_too_few_reports_come_with_the_number_that_would_do():
    decoded = decode(counts(reports=2_000), NAMES)
    found = diagnose(decoded)
    share = decoded.threshold / 2_000
    assert found.reports_for_one_percent == pytest.approx(2_000 * (share / 0.01) ** 2)
    assert failed(found)["reports"].endswith("there are 2,000.")


def test_more_power_needs_a_larger_share(fine):
    found = diagnose(fine).detectable
    assert [reach.power for reach in found] == [0.5, 0.8, 0.95]
    assert found[0].share == pytest.approx(fine.threshold / N)
    assert found[0].share < found[1].share < found[2].share
    step = (found[2].share - found[0].share) / 1.6449
    assert step == pytest.approx(np.sqrt(fine.detail.fit.scale / fine.detail.scores.typical), 1e-4)


def test_no_reports_give_one_sentence():
    found = diagnose(decode(Counts.zero(PARAMS), NAMES, dialect="rappor-v1"))
    assert failed(found) == {"reports": "There are no reports: nothing can be said."}
    assert found.residuals is None
    assert found.missing is None
    assert found.to_dict()["reports_for_one_percent"] == "inf"
    assert found.lines()[0] == "Check: There are no reports: nothing can be said."


def test_a_single_cohort_is_diagnosed():
    found = diagnose(decode(counts(params=Params(64, 2, 1, 0.5, 0.25, 0.75)), NAMES))
    assert "placement" in failed(found)
    assert found.balance == (1, 0, N, N, 1.0)


@pytest.mark.parametrize("kind", ["category", "boolean", "bits", "ordinal"])
def test_kinds_with_a_bit_for_each_value_have_balance_and_reports(kind):
    params = Params(1 if kind == "boolean" else 3, 1, 1, 0.0, 0.25, 0.75)
    made = Counts(params, [10_000], [[4_000, 3_500, 5_000][: params.k]], kind=kind)
    names = ["a", "b", "c"]
    if kind == "ordinal":
        found = diagnose(decode_ordinal(made, [1, 2, 3]).decoded)
    else:
        found = diagnose(decode_basic(made, names if kind == "category" else None))
    assert found.balance.cohorts == 1
    assert found.residuals is None
    assert found.missing is None
    assert 0 < found.detectable[0].share < 0.05
    assert found.lines()


def test_cohort_sizes_of_such_kinds_are_tested():
    made = Counts(Params(2, 1, 2, 0.0, 0.25, 0.75), [900, 100], [[300, 400], [50, 40]], "category")
    found = diagnose(decode_basic(made, ["a", "b"]))
    assert (found.balance.smallest, found.balance.largest) == (100, 900)
    assert failed(found)["balance"].startswith("Cohorts are uneven")


def test_lines_are_plain_text_and_the_dict_is_json(fine, heavy):
    for decoded in (fine, heavy):
        found = diagnose(decoded)
        assert all("\x1b" not in line and "\n" not in line for line in found.lines())
        said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert said["checks"] == [check._asdict() for check in decoded.checks]
        assert said["largest"][0].keys() == {"cohort", "bit", "z"}
        assert said["reports"] == N
