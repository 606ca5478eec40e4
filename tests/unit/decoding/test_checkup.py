"""Each fault that can be planted is named; data without one are called OK."""

import numpy as np
import pytest

from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.bit_table import bit_table
from rappor.decoding.checkup import LEVEL, balance_p_value, check_balance, checkup, ones_z
from rappor.decoding.decode import decode
from rappor.decoding.diagnose import diagnose
from rappor.decoding.ordinal import decode_ordinal
from rappor.mechanism import bloom_positions
from rappor.mechanism.channel import channel
from support.crowd_counts import NAMES, PARAMS, N, counts


def replaced(made, totals=None, ones=None, **more):
    about = {"dialect": "rappor-v1", "reports_per_client": 1} | more
    return Counts(
        made.params,
        made.totals if totals is None else totals,
        made.ones if ones is None else ones,
        **about,
    )


def verdicts(made, names=NAMES, **more):
    found, _ = checkup(decode(made, names), [made], **more)
    return {check.name: check for check in found}


def wrong(made, names=NAMES, **more):
    return {name for name, check in verdicts(made, names, **more).items() if not check.ok}


@pytest.fixture(scope="module")
def fine():
    return counts()


def test_clean_data_are_ok_in_every_respect(fine):
    found = verdicts(fine)
    assert all(check.ok for check in found.values())
    assert set(found) == {"balance", "ones", "reports", "missing", "cohorts", "fit", "groups"}
    assert found["balance"].text == "Cohorts are balanced: 25,000 reports each."
    assert found["groups"].text == "All 40 candidates can be told apart."


@pytest.mark.slow
def test_a_frequent_string_left_out_of_the_list_is_called_missing_with_its_share(fine):
    found = verdicts(fine, NAMES[1:])["missing"]
    assert not found.ok
    assert "far above the fit. A string of about 2" in found.text
    assert found.text.endswith("is probably missing from the list.")


@pytest.mark.slow
def test_checks_come_before_what_is_ok(fine):
    found, _ = checkup(decode(fine, NAMES[1:]), [fine])
    assert [check.ok for check in found] == sorted(check.ok for check in found)
    assert not found[0].ok


def test_a_string_list_of_another_collection_is_suspected(fine):
    text = verdicts(fine, [f"other{i}" for i in range(40)])["missing"].text
    assert "is the dialect (rappor-v1) that of the clients" in text


def test_lost_reports_of_one_cohort_are_seen(fine):
    totals, ones = fine.totals.copy(), fine.ones.copy()
    totals[3], ones[3] = totals[3] * 95 // 100, ones[3] * 95 // 100
    found = verdicts(replaced(fine, totals, ones))
    assert {name for name, check in found.items() if not check.ok} == {"balance"}
    assert "uneven: 23,750 to 25,000 reports" in found["balance"].text


def test_an_empty_cohort_is_counted(fine):
    totals, ones = fine.totals.copy(), fine.ones.copy()
    totals[3], ones[3] = 0, 0
    assert verdicts(replaced(fine, totals, ones))["balance"].text.startswith(
        "1 of 8 cohorts have no reports."
    )


@pytest.mark.parametrize("forged", ["all bits", "bits of one string only"])
def test_crude_forgery_changes_the_share_of_set_bits(fine, forged):
    """1 in 200 reports: flagged, whichever way the forger goes."""
    each = N // 200 // PARAMS.m
    ones = fine.ones.copy()
    for cohort in range(PARAMS.m):
        bits = slice(None) if forged == "all bits" else list(bloom_positions("v39", cohort, PARAMS))
        ones[cohort, bits] += each
    found = verdicts(replaced(fine, fine.totals + each, ones))["ones"]
    assert not found.ok
    assert found.text.startswith("More" if forged == "all bits" else "Fewer")
    assert "forged" in found.text


@pytest.mark.slow
def test_a_damaged_cohort_is_named_and_no_string_is_called_missing_for_it(fine):
    ones = fine.ones.copy()
    ones[5] = np.roll(ones[5], 3)
    found = verdicts(replaced(fine, ones=ones))
    assert "do not fit while the others do: 5." in found["cohorts"].text
    assert found["missing"].ok


def test_candidates_with_the_same_bits_are_counted():
    params = Params(8, 1, 2, 0.5, 0.25, 0.75)
    names = [f"w{i}" for i in range(40)]
    made = counts({"w0": 0.5, "w1": 0.5}, params=params)
    found = verdicts(made, names)["groups"]
    assert not found.ok
    assert "cannot be told apart" in found.text


def test_too_few_reports_come_with_the_number_that_would_do():
    found = verdicts(counts(reports=2_000))["reports"]
    assert not found.ok
    assert found.text.endswith("there are 2,000.")


def test_no_reports_are_one_check():
    made = Counts.zero(PARAMS, dialect="rappor-v1")
    found, _ = checkup(decode(made, NAMES), [made])
    assert [(check.name, check.ok) for check in found] == [("reports", False)]


def test_repeated_reports_widen_what_chance_may_do_to_cohorts():
    sizes = [25_000, 25_000, 25_000, 26_000]
    assert balance_p_value(sizes) < LEVEL
    assert balance_p_value(sizes, 4) > LEVEL
    assert not check_balance(sizes).ok
    assert check_balance(sizes, 4).ok


def test_null_reports_and_colliding_hashes_may_have_fewer_ones(fine):
    expected = float(PARAMS.h * channel(PARAMS).q_star + 62 * channel(PARAMS).p_star)
    fewer = np.full((8, 64), int((expected - 0.2) / 64 * 25_000))
    silent = replaced(fine, ones=fewer)
    assert ones_z([silent]) < -4
    assert ones_z([silent], null_reports=True) == 0
    assert ones_z([replaced(fine, ones=fewer, dialect="google")]) == 0


def test_other_kinds_have_balance_ones_and_reports():
    made = Counts(Params(3, 1, 1, 0.0, 0.25, 0.75), [10_000], [[4_000, 4_000, 3_900]], "ordinal")
    found, _ = checkup(decode_ordinal(made, [1, 2, 3]), [made])
    assert {check.name for check in found} == {"balance", "ones", "reports"}
    assert bit_table(decode_ordinal(made, [1, 2, 3]).decoded, [made]).fitted is None


def test_fitted_counts_and_residuals_belong_together(fine):
    decoded = decode(fine, NAMES)
    table = bit_table(decoded, [fine])
    assert np.array_equal(table.counts, fine.ones)
    assert np.array_equal(table.residuals, diagnose(decoded).residuals)
    gain = float(channel(PARAMS).q_star - channel(PARAMS).p_star)
    variance = decoded.detail.fit.variance.reshape(8, 64)
    shares = (table.counts - table.fitted) / table.totals[:, None] / gain
    assert np.allclose(shares / np.sqrt(variance), table.residuals)
    assert abs((table.counts - table.fitted).sum()) < 1e-6 * table.counts.sum()


def test_fitted_counts_add_up_over_several_p_and_q():
    other = Params(64, 2, 8, 0.5, 0.5, 0.75)
    parts = [counts(), counts(params=other, seed=2)]
    table = bit_table(decode(parts, NAMES), parts)
    assert np.array_equal(table.counts, parts[0].ones + parts[1].ones)
    assert np.array_equal(table.totals, parts[0].totals + parts[1].totals)
    assert abs((table.counts - table.fitted).sum()) < 1e-3 * table.counts.sum()


def test_an_empty_cohort_has_no_residuals(fine):
    totals, ones = fine.totals.copy(), fine.ones.copy()
    totals[3], ones[3] = 0, 0
    made = replaced(fine, totals, ones)
    table = bit_table(decode(made, NAMES), [made])
    assert np.isnan(table.residuals[3]).all()
    assert not np.isnan(table.residuals[[0, 1, 2, 4]]).any()
    assert (table.fitted[3] == 0).all()
