"""Each fault that can be planted is named; data without one are called OK."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rappor import Params, simulate
from rappor.aggregate import Counts
from rappor.decoding import diagnosis
from rappor.decoding.decode import decode
from rappor.decoding.diagnosis import balance_p_value, bit_table, diagnose
from rappor.decoding.ordinal import decode_ordinal
from rappor.decoding.quality import LEVEL, check_balance, ones_z, too_few_reports
from rappor.mechanism import Ranges, bloom_positions
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
    return {check.code: check for check in decode(made, names, **more).checks}


def wrong(made, names=NAMES, **more):
    return {code for code, check in verdicts(made, names, **more).items() if not check.ok}


@pytest.fixture(scope="module")
def fine():
    return counts()


def test_clean_data_are_ok_in_every_respect(fine):
    found = verdicts(fine)
    assert all(check.ok for check in found.values())
    assert set(found) == {
        *("reports", "balance", "ones", "repeats", "missing", "cohorts", "fit", "groups"),
        *("untestable", "placement", "bits"),
    }
    assert decode(fine, NAMES).warnings == ()
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
    found = decode(fine, NAMES[1:]).checks
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
        "1 of 8 cohorts have no reports and were left out."
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
    assert "the counts do not belong to these parameters" in found.text
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
    found = decode(made, NAMES).checks
    assert [(check.code, check.ok) for check in found] == [("reports", False)]


def test_repeated_reports_widen_what_chance_may_do_to_cohorts():
    sizes = [25_000, 25_000, 25_000, 26_000]
    assert balance_p_value([sizes]) < LEVEL
    assert balance_p_value([sizes], 4) > LEVEL
    assert not check_balance([sizes]).ok
    assert check_balance([sizes], 4).ok


def test_cohorts_of_tables_with_other_numbers_of_cohorts_are_tested_together():
    even, uneven = [25_000] * 4, [25_000, 24_000]
    assert check_balance([even, even[:2]]).ok
    assert not check_balance([even, uneven]).ok


def test_warnings_are_the_texts_of_failed_checks(fine):
    decoded = decode(fine, NAMES[1:])
    failed = tuple(check.text for check in decoded.checks if not check.ok)
    assert decoded.warnings == failed != ()


def test_repeated_reports_are_a_fact_and_no_failure(fine):
    often, unknown = replaced(fine, reports_per_client=7), replaced(fine, reports_per_client=None)
    assert "up to 7 reports on one value" in verdicts(often)["repeats"].text
    assert "do not say how many reports" in verdicts(unknown)["repeats"].text
    assert wrong(often) == wrong(unknown) == set()


def test_too_few_bits_for_a_list_fail_the_placement(fine):
    made = counts(params=Params(64, 2, 1, 0.5, 0.25, 0.75))
    found = verdicts(made)["placement"]
    assert not found.ok
    assert found.text.startswith("Too few bits speak of each string")


def test_null_reports_and_colliding_hashes_may_have_fewer_ones(fine):
    expected = float(PARAMS.h * channel(PARAMS).q_star + 62 * channel(PARAMS).p_star)
    fewer = np.full((8, 64), int((expected - 0.2) / 64 * 25_000))
    silent = replaced(fine, ones=fewer)
    assert ones_z([silent]) < -4
    assert ones_z([silent], null_reports=True) == 0
    assert ones_z([replaced(fine, ones=fewer, dialect="google")]) == 0


def test_other_kinds_have_balance_ones_and_reports():
    made = Counts(Params(3, 1, 1, 0.0, 0.25, 0.75), [10_000], [[4_000, 4_000, 3_900]], "ordinal")
    found = decode(made).checks
    assert {check.code for check in found} == {
        *("reports", "balance", "ones", "repeats", "estimates", "sum")
    }
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


THEMES = {"light": 0.25, "dark": 0.40, "auto": 0.30, "contrast": 0.05}


def themes(reports, seed, shares=None):
    params = Params(4, 1, 1, 0.5, 0.5, 0.75)
    drawn = simulate.counts(shares or THEMES, params, reports=reports, seed=seed, kind="category")
    return decode(drawn, list(THEMES))


@pytest.mark.parametrize("seed", range(3))
def test_a_few_hundred_reports_of_categories_are_too_few(seed):
    text = too_few_reports(themes(400, seed))
    assert text.startswith("Too few reports: a share of 5 % needs about ")
    assert "there are 400, which show only shares above " in text


def test_the_guide_shows_the_sentence_of_a_real_result():
    guide = Path(__file__).parents[3] / "docs" / "decode.md"
    assert f"\n{too_few_reports(themes(400, 3))}\n" in guide.read_text(encoding="utf-8")


def test_reports_that_show_nothing_are_said_to_show_nothing():
    assert "there are 40, which show no share at all." in too_few_reports(themes(40, 1))


def test_enough_reports_of_categories_are_not_called_too_few():
    decoded = themes(20_000, 1)
    assert too_few_reports(decoded) is None
    assert decoded.warnings == ()


@pytest.mark.slow
def test_the_number_of_reports_said_to_be_needed_detects_the_share_in_half_of_all_cases():
    """16 decodes: at one half, fewer than 3 or more than 13 have a probability of 0.004."""
    decoded = themes(4_000, 1)
    needed = round(diagnosis.reports_for(0.05, decoded))
    assert f"needs about {diagnosis.rounded(needed)};" in too_few_reports(decoded)
    found = sum(themes(needed, seed).row("contrast").detected for seed in range(16))
    assert 3 <= found <= 13


def test_numbers_are_judged_as_categories_are():
    made = Counts(Params(4, 1, 1, 0.5, 0.5, 0.75), [400], [[260, 250, 240, 230]], kind="ordinal")
    decoded = decode(made, Ranges([1, 2, 3]))
    assert too_few_reports(decoded) == decoded.warnings[0]
    assert decoded.histogram is not None
    assert decoded.histogram.warnings[0] == decoded.warnings[0]


def test_a_table_of_strings_has_no_sentence_before_it():
    decoded = decode(simulate.counts({"a": 1.0}, PARAMS, reports=100, seed=1), ["a", "b"])
    assert "reports" in {check.code for check in decoded.checks if not check.ok}
    assert too_few_reports(decoded) is None


@pytest.mark.parametrize(
    ("cohorts", "reports", "says"),
    [(128, 10, "do not hold with 10 reports in a cohort"), (16, 2_000, "a fifth too narrow")],
)
def test_the_robust_fit_says_how_far_its_intervals_can_be_trusted(cohorts, reports, says):
    sharp = Params(64, 2, cohorts, 0.0, 0.1, 0.9)
    listed = [f"listed {number}" for number in range(40)]
    held = {name: 0.8**rank for rank, name in enumerate(listed[:20])} | {"missing": 2.0}
    made = simulate.counts(held, sharp, cohorts * reports, seed=3)
    check = verdicts(made, listed)["fit"]
    assert not check.ok
    assert says in check.text


def found_among_many(reports, shares):
    """A decode against 200 candidates: those that are held, then absent ones."""
    params = Params(128, 2, 8, 0.5, 0.5, 0.75)
    drawn = simulate.counts(shares, params, reports=reports, seed=2)
    return decode(drawn, [*shares, *(f"absent-{number}" for number in range(200))][:200])


def test_a_table_that_shows_strings_is_not_called_one_of_too_few_reports():
    """One day of the demo: 1 % is out of reach, and eight strings are found."""
    found = found_among_many(85_714, {f"site-{rank}": 1 / 8 for rank in range(8)})
    assert len(found.detected) == 8
    assert found.warnings == ()
    (check,) = [check for check in found.checks if check.code == "reports"]
    assert check.ok
    assert re.fullmatch(
        r"85,714 reports show 8 in 10 strings of [\d.]+ %; 1 % needs about [\d,]+\.", check.text
    )


def test_few_reports_that_show_no_string_or_only_half_of_all_are_said_to_be_too_few():
    nothing = found_among_many(85_714, {f"site-{rank}": 0.001 for rank in range(1000)})
    one = found_among_many(5_000, {"site-0": 0.9, "site-1": 0.1})
    assert [len(found.detected) for found in (nothing, one)] == [0, 1]
    for found in (nothing, one):
        assert any(text.startswith("Too few reports: a share of 1 %") for text in found.warnings)


def test_the_threshold_lies_where_detected_and_undetected_rows_separate():
    """Or is the band in which they overlap: tests know more than the size of an estimate."""
    found = found_among_many(85_714, {f"site-{rank}": 1 / 8 for rank in range(8)})
    raw, detected = found.rows.raw_estimate, found.rows.detected
    low, high = found.threshold_band
    assert low == high
    assert raw[~detected].max() <= low <= raw[detected].min()
    swapped = detected.copy()
    border = np.flatnonzero(detected)[-1]
    swapped[[border, border + 1]] = swapped[[border + 1, border]]
    mixed = replace(found, rows=replace(found.rows, detected=swapped))
    assert mixed.threshold_band == (raw[border + 1], raw[border])
    without = replace(mixed, untestable=(mixed.rows.strings[border],))
    assert without.threshold_band[0] == without.threshold_band[1]
    none = replace(found, rows=replace(found.rows, detected=np.zeros_like(detected)))
    assert none.threshold_band[0] >= max(raw.max(), found.threshold)


def test_weights_that_do_not_settle_fail_the_check_of_the_fit(monkeypatch):
    low = Params(64, 2, 8, 0.0, 0.01, 0.99)
    counts = simulate.counts({"a": 0.6, "b": 0.4}, low, 20_000, seed=1)

    def check_fit():
        return next(check for check in decode(counts, ["a", "b"]).checks if check.code == "fit")

    assert check_fit().ok
    monkeypatch.setattr("rappor.decoding.fit._STEPS", 1)
    assert not check_fit().ok
    assert "did not settle" in check_fit().text
