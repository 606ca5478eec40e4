"""Figure 6 (R54), on its stand-ins, with two seeds."""

import pytest

from rappor.charts.render import to_svg
from rappor.experiments.chrome import experiment as module
from rappor.experiments.chrome.runs import (
    CANDIDATES,
    HEAD,
    PARAMS,
    REPORTS,
    ZIPF,
    best_possible,
    head_shares,
    populations,
    zipf_shares,
)
from rappor.experiments.reproduce import check_names
from rappor.privacy.limits import standard_error
from support.outcomes import by_what


@pytest.mark.long
def test_the_stand_ins_are_labelled_everywhere(outcome):
    assert module.EXPERIMENT.stand_in.startswith("Synthetic")
    top, concentration, detection = outcome.figures
    for figure in (top, detection):
        assert "synthetic stand-in" in figure.spec["description"]
    assert "Zipf population" in concentration.spec["description"]
    assert "synthetic" in outcome.tables[0].title


def test_populations_have_four_thousand_homepages():
    assert {HEAD, ZIPF} < set(populations())
    for shares in populations().values():
        assert shares.shape == (4000,)
        assert shares.sum() == pytest.approx(1)
    assert head_shares()[:37].sum() == pytest.approx(0.85)


@pytest.mark.long
def test_a_tenth_of_a_percent_is_two_thirds_of_a_standard_error(outcome):
    assert 0.001 * REPORTS / standard_error(PARAMS, REPORTS) == pytest.approx(0.673, abs=5e-4)
    found = by_what(outcome, "smallest share")
    assert found.ours.startswith("0.67 standard errors")
    assert not found.agrees
    assert not by_what(outcome, "clients that must report").agrees


@pytest.mark.long
def test_what_can_be_found_depends_on_the_population(outcome):
    mass = {each: float(best_possible(s) @ s) for each, s in populations().items()}
    assert mass[ZIPF] == pytest.approx(0.78, abs=0.005)
    assert mass[HEAD] == pytest.approx(0.85, abs=0.01)
    flat = zipf_shares(1.0)
    assert float(best_possible(flat) @ flat) < 0.45
    assert module._exponent_for(0.85) == pytest.approx(1.55, abs=0.01)
    held = "share of all reports that the significant ones hold, if"
    assert by_what(outcome, f"{held} 37").verdict == "extra"  # chosen for it
    assert by_what(outcome, f"{held} f").verdict == "differs"


@pytest.mark.long
def test_fewer_than_half_a_percent_of_candidates_are_significant(outcome):
    assert by_what(outcome, "share of the candidates").agrees
    assert by_what(outcome, "domains detected").verdict == "extra"
    assert best_possible(head_shares()).sum() < 0.005 * CANDIDATES


@pytest.mark.long
def test_the_outcome_is_complete_and_can_be_drawn(outcome):
    check_names(outcome)
    assert len(outcome.figures[0].spec["data"]["values"]) == 31
    assert all(len(row) == len(each.columns) for each in outcome.tables for row in each.rows)
    for figure in outcome.figures:
        assert "<svg" in to_svg(figure.spec)
