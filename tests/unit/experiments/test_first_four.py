"""life-of-a-report, recall-precision, learnable and normal: complete, with the exact figures."""

from __future__ import annotations

import math
import re

import pytest

from rappor.charts.render import to_svg
from rappor.experiments import learnable, life_of_a_report, load, normal, recall_precision
from rappor.experiments.experiment import Comparison, Outcome
from rappor.experiments.replicate import spread
from rappor.experiments.style import darkened
from rappor.experiments.write import check_names
from rappor.privacy import epsilon_one
from support.outcomes import silent

SEEDS = 2


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """Each experiment once; of the grid of recall-precision a part, for time's sake."""
    with pytest.MonkeyPatch.context() as patch:
        part = tuple(shape for shape in recall_precision.GRID if shape[0] == 128 and shape[2] == 16)
        patch.setattr(recall_precision, "GRID", part)
        return {
            name: load(name).run(SEEDS, silent)
            for name in ("life-of-a-report", "recall-precision", "learnable", "normal")
        }


def about(outcome: Outcome, words: str) -> Comparison:
    found = [each for each in outcome.comparisons if words in each.what]
    assert len(found) == 1, f"{words}: {found}"
    return found[0]


@pytest.mark.parametrize("name", ["life-of-a-report", "recall-precision", "learnable", "normal"])
def test_an_outcome_is_complete(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    check_names(outcome)
    assert outcome.figures
    assert outcome.tables
    for each in outcome.comparisons:
        assert each.what
        assert each.published
        assert each.ours
        assert each.why.endswith(".")
    for figure in outcome.figures:
        assert figure.caption
        assert "<svg" in to_svg(figure.spec)
        assert darkened(figure.spec) != figure.spec
    for table in outcome.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_a_report_has_the_published_number_of_ones(outcomes: dict[str, Outcome]) -> None:
    ones = about(outcomes["life-of-a-report"], "Ones in the 256 bits")
    assert ones.ours.startswith("144.5 ± 7.9 expected of one report; means of 250: 14")
    assert ones.published.startswith("145")
    assert ones.agrees


def test_two_seeds_judge_the_published_report_by_its_law_and_not_by_their_own_noise() -> None:
    """Three of four bits stay on average; means of 3.1 are 2.6 standard errors off, with no sd."""
    alike = [life_of_a_report.Seen(144.5, 3.1, 0.75)] * 2
    assert [each.verdict for each in life_of_a_report._compare(alike)] == ["agrees"] * 3


@pytest.mark.parametrize(
    ("planted", "wrong"),
    [((146.5, 3.0, 0.75), 0), ((144.5, 3.25, 0.75), 1), ((144.5, 3.0, 0.8), 2)],
)
def test_a_client_that_is_off_is_seen(planted: tuple[float, float, float], wrong: int) -> None:
    """Over 500 clients the errors are .35, .039 and .011: each planted one is above 4 of them."""
    found = list(life_of_a_report._compare([life_of_a_report.Seen(*planted)] * 2))
    assert [at for at, each in enumerate(found) if not each.agrees] == [wrong]
    assert "our own mean is off" in found[wrong].why


def test_the_report_drawn_fared_as_the_one_in_the_paper() -> None:
    signal, permanent, report = life_of_a_report.like_the_paper()
    assert signal.bit_count() == 4
    assert (signal & permanent).bit_count() == 2
    assert (signal & permanent & report.bits).bit_count() == 2
    assert life_of_a_report.like_the_paper() == (signal, permanent, report)


def test_the_bits_of_the_value_survive_as_often_as_f_says() -> None:
    """|mean - 3| over 5,000 clients: sd √(4·.75·.25/5000) = .012, so 5 sd is .061."""
    kept = spread([life_of_a_report.one_seed(seed).kept for seed in range(20)]).mean
    assert abs(kept - 3) < 0.061
    assert abs(kept - 4 * (1 - 0.25 * 0.75)) > 0.061  # f/2 = .1875 would be noticed


def test_every_setting_of_the_grid_costs_ln_3_and_no_more() -> None:
    for shape in recall_precision.GRID:
        epsilon = epsilon_one(recall_precision.params_of(*shape))
        assert math.log(3) * (1 - 1e-9) < epsilon <= math.log(3) * (1 + 1e-15)


def test_the_noise_is_solved_anew_for_each_number_of_hashes() -> None:
    solved = [recall_precision.params_of(128, h, 16).q for h in (1, 2, 4, 8)]
    assert solved == pytest.approx([3 ** (1 / h) / (1 + 3 ** (1 / h)) for h in (1, 2, 4, 8)])


def test_fewer_hashes_find_more_and_one_finds_most(outcomes: dict[str, Outcome]) -> None:
    (points, _noise) = outcomes["recall-precision"].tables
    recall = {row[1]: row[4] for row in points.rows}
    assert recall[1] > recall[2] > recall[4] > recall[8]


def test_verdicts_on_hashes_follow_the_numbers() -> None:
    falling = {1: [40.0, 41.0], 2: [34.0, 35.0], 4: [27.0, 28.0], 8: [20.0, 21.0]}
    best_of_many, best_of_all = recall_precision._hashes(falling)
    assert best_of_many.agrees
    assert not best_of_all.agrees
    flat = {h: [30.0, 31.0] for h in (1, 2, 4, 8)}
    best_of_many, best_of_all = recall_precision._hashes(flat)
    assert not best_of_many.agrees
    assert best_of_all.agrees


def test_learnable_strings_are_the_exact_ones(outcomes: dict[str, Outcome]) -> None:
    ten_billion = about(outcomes["learnable"], "10,000,000,000 reports")
    assert ten_billion.ours == "11,319 (M = 10,000)"
    assert ten_billion.published == "about 10,000"
    assert about(outcomes["learnable"], "from 100,000,000").ours == "1,285 (M = 1,000)"


def test_the_bound_is_the_formula_of_the_appendix() -> None:
    quantile = 4.417173413467606  # Φ⁻¹(1 - .05/10⁴)
    assert learnable.exact(10**10, 10**4) == pytest.approx(0.5 * 10**5 / quantile)


@pytest.mark.parametrize(
    ("frequency", "published"), [(0.01, 10**6), (0.001, 10**8), (0.0001, 10**10)]
)
def test_frequencies_need_about_the_published_reports(frequency: float, published: int) -> None:
    half = learnable.reports_needed(frequency, 10**4, 0.5)
    assert half == pytest.approx((4.417173413467606 / (0.5 * frequency)) ** 2, rel=1e-6)
    assert half < published < learnable.reports_needed(frequency, 10**4, 0.95)


def test_verdicts_and_the_table_count_strings_alike(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["learnable"]
    simulated = [
        int(each.what.split()[0]) for each in found.comparisons if "equal strings in" in each.what
    ]
    row = next(row for row in found.tables[0].rows if row[1:3] == (10**6, 1000))
    assert simulated == list(row[3:]) == [128, 105, 90]
    assert {each.verdict for each in found.comparisons if "equal strings in" in each.what} == {
        "extra"
    }


def test_the_limit_has_a_power_of_one_half_in_simulation() -> None:
    """128 strings × 8 seeds: sd √(.25/1024) = .016 between runs, so 4 sd is .062."""
    from rappor.experiments.learnable_runs import one_seed

    runs = [one_seed(seed) for seed in range(8)]
    half = spread([each["0.5"] for each in runs]).mean
    assert abs(half - 0.5) < 0.062
    assert spread([each["0.8"] for each in runs]).mean > 0.7
    assert spread([each["with heavy hitters"] for each in runs]).mean < 0.1
    assert spread([each["through a Bloom filter"] for each in runs]).mean < 0.3


def test_the_interval_of_the_mean_covers_50(outcomes: dict[str, Outcome]) -> None:
    covered = about(outcomes["normal"], "interval of the mean")
    found = re.match(r"covers 50 in (\d+) of 100 seeds", covered.ours)
    assert found is not None
    assert int(found[1]) >= 90
    assert covered.verdict == "extra"


def test_an_interval_that_misses_is_noticed() -> None:
    from rappor.decoding.histogram import Estimate

    missed = normal._coverage([Estimate(48.0, 0.6, 46.8, 49.2)] * 100)
    assert missed.verdict == "differs"


def test_the_normal_collection_costs_exactly_ln_3(outcomes: dict[str, Outcome]) -> None:
    assert about(outcomes["normal"], "ε of a report").ours == "ln 3"


def test_more_reports_bring_the_bell_curve_out(outcomes: dict[str, Outcome]) -> None:
    signal = [
        spread([normal.one_seed(size, seed).signal for seed in (1, 2)]).mean
        for size in normal.SIZES
    ]
    assert signal[0] < 0.5 < signal[1] < 0.95 < signal[2]
    for words in ("10,000 reports: the", "100,000 reports: the", "1,000,000 reports: the"):
        matching = [each for each in outcomes["normal"].comparisons if each.what.startswith(words)]
        assert [each.agrees for each in matching] == [True]


def test_smoothing_is_labelled_as_a_prior(outcomes: dict[str, Outcome]) -> None:
    assert "prior" in about(outcomes["normal"], "Smoothing").why
    smoothed = outcomes["normal"].figures[1]
    assert "prior" in smoothed.title
    assert "no interval" in smoothed.caption
