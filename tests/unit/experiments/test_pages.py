"""Pages of experiments: escaping, verdicts in words, labels, both themes."""

from __future__ import annotations

import json
import re

import pytest

from rappor.charts.theme import TOKENS
from rappor.experiments import load
from rappor.experiments.experiment import Comparison, Outcome
from rappor.experiments.pages import darkened, experiment_page, index_page, style_sheet
from rappor.experiments.summary import RunRecord, document, entry, verdict_words
from support.fake_experiments import SPEC, an_experiment, an_outcome, done

HOSTILE = "<script>alert(\"1\")</script> & 'x'"


def test_every_word_of_an_outcome_is_escaped() -> None:
    page = experiment_page(done(an_outcome(HOSTILE), HOSTILE))
    index = index_page(document({"fdr": entry(done(an_outcome(HOSTILE), HOSTILE))}))
    failed = experiment_page(done(None, HOSTILE, ValueError(HOSTILE)))
    for html in (page, index, failed):
        assert "<script" not in html
        assert "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#x27;x&#x27;" in html


def test_a_page_puts_published_ours_verdict_and_reason_side_by_side() -> None:
    outcome = Outcome((Comparison("what", "2806", "2807 ± 3", False, "because"),), (), ())
    page = experiment_page(done(outcome))
    cells = re.search(r"<tbody><tr>(.*?)</tr>", page)
    assert cells is not None
    words = re.sub(r"<[^>]+>", "|", cells[1])
    assert [word.strip() for word in words.split("|") if word.strip()] == [
        "what",
        "2806",
        "2807 ± 3",
        "≠ differs",
        "because",
    ]


def test_what_the_paper_does_not_have_is_counted_apart() -> None:
    rows = tuple(Comparison("what", "no figure", "3", each, "") for each in (True, False, None))
    item = entry(done(Outcome(rows, (), ())))
    assert [each["verdict"] for each in item["comparisons"]] == ["agrees", "differs", "extra"]
    page = index_page(document({"fdr": item}))
    assert "2 published figures and statements are compared with ours: 1 agree and 1 differ" in page
    assert "1 more are not in the paper" in page
    assert '<span class="verdict extra">+ extra</span>' in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fdr", "20 seeds"),
        ("exponential", "60 seeds (3 times 20)"),
        ("windows", "100 seeds (5 times 20)"),
        ("normal", "20 seeds, 100 for the interval of the mean"),
    ],
)
def test_the_number_of_seeds_is_the_real_one(name: str, words: str) -> None:
    item = entry(RunRecord(name, load(name), an_outcome(), None, 20, 1.0))
    assert f"· {words}, 1 s" in index_page(document({name: item}))
    old = {key: value for key, value in item.items() if key != "replicates"}
    assert "· 20 seeds, 1 s" in index_page(document({name: old}))


def test_widths_of_columns_do_not_reach_the_cards_of_a_phone() -> None:
    """There a row's title is a block: a rule for the first cell of any row would squeeze it."""
    assert re.findall(r"\.verdicts ([a-z ]*)th:nth-child", style_sheet()) == ["thead "] * 4


def test_a_stand_in_is_labelled_on_both_pages() -> None:
    page = experiment_page(done(an_outcome(), "synthetic data"))
    index = index_page(document({"fdr": entry(done(an_outcome(), "synthetic data"))}))
    for html in (page, index):
        assert "<strong>Stand-in data.</strong> synthetic data" in html


def test_a_run_with_few_seeds_says_so() -> None:
    few = RunRecord("fdr", an_experiment(an_outcome()), an_outcome(), None, 5, 1.0)
    assert "a quick look: 20 are usual" in experiment_page(few)
    assert "a quick look" not in experiment_page(done(an_outcome()))


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([True], "1 agrees"),
        ([True, True, False], "2 agree, 1 differs"),
        ([False, False], "2 differ"),
        ([None, True, False, None], "1 agrees, 1 differs, 2 not in the paper"),
        ([], "nothing to compare"),
    ],
)
def test_verdicts_are_counted_in_words(verdicts: list[bool | None], words: str) -> None:
    outcome = Outcome(tuple(Comparison("", "", "", each, "") for each in verdicts), (), ())
    assert verdict_words(entry(done(outcome))) == words


def test_dark_charts_have_no_light_colour_left() -> None:
    lights = {light.lower() for light, _ in TOKENS.values()}
    text = json.dumps(darkened(SPEC)).lower()
    assert not [colour for colour in lights if f'"{colour}"' in text]
    assert darkened(SPEC)["data"] == SPEC["data"]


def test_the_style_sheet_has_both_themes_and_paper_and_loads_nothing() -> None:
    sheet = style_sheet()
    assert "prefers-color-scheme: dark" in sheet
    assert "@media print" in sheet
    assert TOKENS["bg"][0] in sheet
    assert TOKENS["bg"][1] in sheet
    assert "url(" not in sheet
    assert "@import" not in sheet


def test_the_index_shows_the_first_picture_of_each_experiment() -> None:
    item = entry(done(an_outcome("caption")))
    page = index_page(document({"fdr": item}))
    name = item["figures"][0]["name"]
    assert f'<img src="fdr/{name}.svg" alt="' in page
    assert f'srcset="fdr/{name}-dark.svg"' in page
    old = {key: value for key, value in item.items() if key != "figures"}  # of an early version
    assert "<img" not in index_page(document({"fdr": old}))
