"""Decoding strings: what a table promises, case by case."""

import math

import pytest

import rappor
from rappor import DecodeError, Params
from rappor.decoding import strings
from rappor.simulate import counts, judge, simulate

PARAMS = Params(64, 2, 16, 0.25, 0.35, 0.65)
POPULATION = {f"s{number}": 0.8**number for number in range(1, 21)}
CANDIDATES = [f"s{number}" for number in range(1, 61)]


@pytest.fixture(scope="module")
def drawn():
    return simulate(POPULATION, PARAMS, 500_000, seed=11)


@pytest.fixture(scope="module")
def decoded(drawn):
    return rappor.decode(drawn.counts, CANDIDATES, correction="holm")


def test_heavy_strings_are_found_and_absent_ones_are_not(decoded):
    found = {row.string for row in decoded.detected}
    assert {f"s{number}" for number in range(1, 11)} <= found
    assert not found & set(CANDIDATES[20:])


def test_rows_are_sorted_and_consistent(decoded):
    keys = [(-row.raw_estimate, row.string) for row in decoded.rows]
    assert keys == sorted(keys)
    for row in decoded.rows:
        assert row.proportion == row.estimate / decoded.reports
        assert row.interval == (
            pytest.approx(row.prop_low_95 * decoded.reports),
            pytest.approx(row.prop_high_95 * decoded.reports),
        )
        assert row.snr == row.raw_estimate / row.std_error
        assert row.detected == (row.adjusted_p_value <= 0.05)
        assert row.interval[0] <= row.estimate <= row.interval[1]
        assert row.detected or row.interval[0] == 0
        assert row.presence_only == (row.detected and row.interval[0] == 0)


def test_undetected_mass_is_what_detected_strings_leave(drawn, decoded):
    left = drawn.counts.reports - sum(drawn.truth.get(row.string, 0) for row in decoded.detected)
    assert decoded.undetected_mass.low_95 <= left <= decoded.undetected_mass.high_95


def test_the_order_of_candidates_does_not_matter(drawn, decoded):
    again = rappor.decode(drawn.counts, CANDIDATES[::-1], correction="holm")
    for name in ("estimate", "std_error", "low", "high", "p_value", "adjusted_p_value"):
        assert getattr(again.rows, name).tobytes() == getattr(decoded.rows, name).tobytes()
    assert list(again.rows.strings) == list(decoded.rows.strings)


def failed(decoded):
    return {check.code for check in decoded.checks if not check.ok}


def test_duplicates_are_merged_with_a_note(drawn, decoded):
    again = rappor.decode(drawn.counts, [*CANDIDATES, "s1", "s1"], correction="holm")
    assert again.candidates == 60
    assert any("s1" in line for line in again.notes)
    assert again.rows.estimate.tobytes() == decoded.rows.estimate.tobytes()


@pytest.mark.slow
def test_a_missing_heavy_string_starts_the_robust_path_and_finds_nothing_false(drawn):
    without = [name for name in CANDIDATES if name != "s1"]
    decoded = rappor.decode(drawn.counts, without, correction="holm")
    assert decoded.robust
    assert {"missing", "fit"} <= failed(decoded)
    found = {row.string for row in decoded.detected}
    assert {f"s{number}" for number in range(2, 9)} <= found
    assert not found & set(CANDIDATES[20:])
    assert decoded.undetected_mass.proportion > 0.15
    assert decoded.unlisted == decoded.undetected_mass  # its former name


def test_repeated_reports_are_not_mistaken_for_missing_strings():
    """Each client reports its value ten times: counts vary more, and the table says so."""
    params = Params(128, 2, 16, 0.5, 0.5, 0.75)
    drawn = simulate(POPULATION, params, 10**6, seed=2, reports_per_client=10)
    decoded = rappor.decode(drawn.counts, CANDIDATES)
    assert not decoded.robust
    assert decoded.design_effect == pytest.approx(1 + 9 * 0.0476, abs=0.001)
    assert decoded.scale == pytest.approx(decoded.design_effect, abs=0.15)
    assert decoded.reports_per_client == 10
    assert any("up to 10 reports" in check.text for check in decoded.checks)
    assert failed(decoded) == set()


def test_candidates_that_set_the_same_bits_are_named_together():
    params = Params(4, 1, 2, 0.25, 0.35, 0.65)
    decoded = rappor.decode(simulate({"s1": 1}, params, 10_000, seed=1).counts, CANDIDATES)
    grouped = [name for group in decoded.groups for name in group]
    assert len(grouped) > 40
    assert "groups" in failed(decoded)


def test_counts_of_other_parameters_are_noticed(drawn):
    for p, q in ((0.1, 0.65), (0.6, 0.9)):
        other = Params(64, 2, 16, 0.25, p, q)
        counts = rappor.Counts(other, drawn.counts.totals, drawn.counts.ones, dialect="rappor-v1")
        lines = rappor.decode(counts, CANDIDATES).warnings
        assert any("do not belong to these parameters" in line for line in lines)


def test_too_few_reports_say_how_many_it_takes():
    decoded = rappor.decode(simulate(POPULATION, PARAMS, 2000, seed=1).counts, CANDIDATES)
    assert any("1 % needs about" in line and "2,000" in line for line in decoded.warnings)


def test_several_p_and_q_are_decoded_together(drawn):
    other = simulate(POPULATION, Params(64, 2, 16, 0.25, 0.4, 0.6), 500_000, seed=12)
    both = rappor.decode([drawn.counts, other.counts], CANDIDATES)
    alone = rappor.decode(drawn.counts, CANDIDATES)
    assert both.reports == 1_000_000
    assert both.row("s3").prop_std_error < alone.row("s3").prop_std_error
    with pytest.raises(DecodeError, match="k is 64 and 32"):
        rappor.decode([drawn.counts, simulate({"a": 1}, Params(32, 2, 16, 0.25, 0.4, 0.6), 10)
                       .counts], CANDIDATES)  # fmt: skip


def test_an_empty_list_a_wrong_name_and_a_wrong_map_are_clear_errors(drawn):
    with pytest.raises(DecodeError, match="no candidates"):
        rappor.decode(drawn.counts, [])
    with pytest.raises(DecodeError, match="against candidates"):
        rappor.decode(drawn.counts)
    with pytest.raises(DecodeError, match="correction must be one of"):
        rappor.decode(drawn.counts, ["a"], correction="storey")
    with pytest.raises(DecodeError, match="method must be one of"):
        rappor.decode(drawn.counts, ["a"], method="ridge")
    with pytest.raises(rappor.ParamsError, match="alpha"):
        rappor.decode(drawn.counts, ["a"], alpha=1.5)
    design = rappor.decoding.design.build_design(["a"], Params(32, 2, 16, 0, 0.5, 0.75), "google")
    with pytest.raises(DecodeError, match="k = 32"):
        rappor.decode(drawn.counts, design)


@pytest.mark.long
def test_a_search_among_very_many_candidates_ends_where_the_full_one_does(monkeypatch):
    """The shortcut for long lists, forced on a short one, fits the same strings. It does without
    the last test, which takes other candidates off, so that p-values are not quite the same."""
    drawn = simulate(POPULATION, PARAMS, 200_000, seed=4)
    many = [*CANDIDATES, *(f"absent {number}" for number in range(2000))]
    full = rappor.decode(drawn.counts, many)
    for module in ("search", "shrinkage"):
        monkeypatch.setattr(f"rappor.decoding.{module}.ALL_AT_ONCE", 100)
    short = rappor.decode(drawn.counts, many)
    assert short.detail.fit.active == full.detail.fit.active
    for row in full.rows:
        assert short.row(row.string).raw_estimate == pytest.approx(row.raw_estimate, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [23, 25])
def test_a_string_that_shares_bits_with_a_missing_one_is_not_taken_for_certain(seed):
    """Low noise, half of all reports unlisted: an absent string may meet four of its bits.

    Fitted with its own residuals such a string has a p-value of 1e-15; left out, it is as likely as
    hashes make it, 1e-5 at the least (four of 16 bits in a filter of 128).
    """
    params = Params(128, 2, 8, 0.01, 0.01, 0.99)
    population = {f"x{seed}_0": 5, **{f"t{number}": 0.05 for number in range(100)}}
    counts = simulate(population, params, 10**6, seed=seed).counts
    decoded = rappor.decode(counts, [f"a{seed}_{number}" for number in range(1000)])
    assert decoded.robust
    assert decoded.rows.p_value.min() > 1e-5


def test_a_heavy_listed_string_is_found_though_a_heavier_one_is_missing():
    params = Params.preset("windows")
    population = {"missing": 0.5, "heavy": 0.3, **{f"t{i}": 0.2 / 50 for i in range(50)}}
    counts = simulate(population, params, 10**6, seed=1).counts
    decoded = rappor.decode(counts, ["heavy", *CANDIDATES], correction="holm")
    assert [row.string for row in decoded.detected] == ["heavy"]
    assert decoded.detected[0].p_value < 1e-12
    assert decoded.detected[0].interval[0] < 300_000 < decoded.detected[0].interval[1]


def test_ranges_are_not_candidates_for_strings(drawn):
    with pytest.raises(DecodeError, match="ranges are for kind ordinal"):
        rappor.decode(drawn.counts, rappor.Ranges((1, 2)))


def covered(decoded, truth):
    judged = judge(decoded, truth)
    return judged.covered / judged.detected


@pytest.mark.long
def test_many_rare_strings_are_not_taken_for_missing_ones(monkeypatch):
    """A thousand faint strings on 8 bits: the robust path's intervals would miss the truth."""
    dense = Params(8, 2, 128, 0.0, 0.225, 0.775)
    names = [f"s{number}" for number in range(1000)]
    shares = {name: math.exp(-(((rank - 500) / 212) ** 2)) for rank, name in enumerate(names)}
    drawn = simulate(shares, dense, 3 * 10**6, seed=0, dialect="google")
    decoded = rappor.decode(drawn.counts, names, dialect="google")
    assert decoded.chi2_dof > 5
    assert not decoded.robust
    fit = next(check for check in decoded.checks if check.code == "fit")
    assert fit.ok
    assert "too rare to detect add up" in fit.text
    monkeypatch.setattr(strings, "_heavy_tails", lambda _: True)
    robust = rappor.decode(drawn.counts, names, dialect="google")
    assert robust.robust
    assert covered(decoded, drawn.truth) > 0.75 > covered(robust, drawn.truth) + 0.1


@pytest.mark.slow
def test_a_heavy_missing_string_is_taken_out():
    heavy = {**POPULATION, "nobody listed me": 1.0}
    decoded = rappor.decode(counts(heavy, PARAMS, 10**6, seed=5), CANDIDATES)
    assert decoded.robust
    assert "missing from the candidates" in " ".join(decoded.warnings)


class OnlyTheFirst:
    """A finder that fits one candidate, whatever the counts say."""

    name = "only the first"

    def find(self, search, alpha, design_effect):
        assert (alpha, design_effect) == (0.05, 1.0)
        fit = search.least_squares((0,))
        return fit, search.score(fit)


def test_a_finder_of_ones_own_is_used(drawn):
    decoded = rappor.decode(drawn.counts, CANDIDATES, method=OnlyTheFirst())
    assert decoded.method == "only the first"
    assert decoded.detail.fit.active == (0,)
    assert len(decoded.rows) == len(CANDIDATES)


def test_a_method_that_is_no_finder_is_refused(drawn):
    for method in ("best", object(), None):
        with pytest.raises(DecodeError, match="method must be one of auto, lasso, or a Finder"):
            rappor.decode(drawn.counts, CANDIDATES, method=method)
