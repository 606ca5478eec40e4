"""What was decoded beside the truth: counted by hand, and read from files."""

import pytest

from rappor import Params, ParamsError, decode
from rappor.simulate import exponential, judge, judge_shares, read_truth, simulate


def test_figures_of_a_known_case_are_these():
    truth = {"a": 60, "b": 30, "c": 10, "nobody": 0}
    found = {"a": (0.5, 0.4, 0.7), "nobody": (0.2, 0.1, 0.3)}
    judged = judge_shares(found, ["a", "b", "nobody"], truth)
    assert (judged.present, judged.listed, judged.present_listed) == (3, 3, 2)
    assert (judged.detected, judged.true_positives, judged.false_positives) == (2, 1, 1)
    assert (judged.missed, judged.fdr, judged.covered) == (1, 0.5, 1)
    assert judged.l1 == pytest.approx(0.1 + 0.3 + 0.1 + 0.2)
    assert judged.total_variation == pytest.approx(0.35)
    assert (judged.mass_found, judged.mass_estimated) == (0.6, pytest.approx(0.7))
    assert [(row.string, row.truth, row.verdict) for row in judged.rows] == [
        ("a", 60, "found"),
        ("nobody", 0, "false"),
        ("b", 30, "missed"),
    ]
    assert str(judged) == (
        "1 of 2 listed strings found, 1 false, 1 missed; 1 of 2 intervals hold the truth; "
        "60 % of all reports explained"
    )


def test_a_decoded_table_is_judged_by_its_rows():
    population = exponential(50, absent=50)
    drawn = simulate(population, Params.preset("exponential"), 10**6, seed=3)
    decoded = decode(drawn.counts, population.candidates)
    judged = judge(decoded, drawn.truth)
    assert judged.detected == len(decoded.detected)
    assert judged.listed == 100
    assert judged.true_positives + judged.missed == judged.present_listed == 50
    assert [row.estimate for row in judged.rows[:3]] == pytest.approx(
        [row.estimate for row in decoded.detected[:3]]
    )


@pytest.mark.parametrize("truth", [{}, {"a": -1}, {"a": 0.5}, {"a": "1"}])
def test_what_is_no_truth_is_refused(truth):
    with pytest.raises(ParamsError, match="truth must map strings to whole numbers"):
        judge_shares({}, [], truth)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be string,count"),
        ("name,count\n", "must be string,count"),
        ("string,count\na,1\nb,x\n", "line 3 must be a string and a whole number"),
        ("string,count\na\n", "line 2"),
        ("string,count\na,-1\n", "line 2"),
    ],
)
def test_a_file_that_is_no_truth_is_refused_by_its_line(tmp_path, text, message):
    (tmp_path / "truth.csv").write_text(text)
    with pytest.raises(ParamsError, match=message):
        read_truth(tmp_path / "truth.csv")
