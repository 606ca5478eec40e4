"""Pages of experiments: escaping, verdicts in words, labels, both themes."""

from __future__ import annotations

import json
import re

import pytest

from rappor.charts.theme import TOKENS
from rappor.experiments.experiment import Comparison, Outcome
from rappor.experiments.page import experiment_page, index_page
from rappor.experiments.style import darkened, style_sheet
from rappor.experiments.summary import Done, document, entry, verdict_words
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


def test_a_stand_in_is_labelled_on_both_pages() -> None:
    page = experiment_page(done(an_outcome(), "synthetic data"))
    index = index_page(document({"fdr": entry(done(an_outcome(), "synthetic data"))}))
    for html in (page, index):
        assert "<strong>Stand-in data.</strong> synthetic data" in html


def test_a_run_with_few_seeds_says_so() -> None:
    few = Done("fdr", an_experiment(an_outcome()), an_outcome(), None, 5, 1.0)
    assert "a quick look: 20 are usual" in experiment_page(few)
    assert "a quick look" not in experiment_page(done(an_outcome()))


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([True], "1 agrees"),
        ([True, True, False], "2 agree, 1 differs"),
        ([False, False], "2 differ"),
        ([], "nothing to compare"),
    ],
)
def test_verdicts_are_counted_in_words(verdicts: list[bool], words: str) -> None:
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
