"""New collections: commented, complete, and read back as what they are."""

import dataclasses
import datetime

import pytest

from rappor.collection import Collection
from rappor.collection.summary import summary
from rappor.collection.template import ABOUT, commented, draft
from rappor.errors import ParamsError
from rappor.mechanism import Ranges
from rappor.params import Params

TODAY = datetime.date(2026, 11, 16)


def test_every_field_has_a_comment() -> None:
    assert set(ABOUT) == {field.name for field in dataclasses.fields(Collection)}


def test_a_commented_definition_reads_back_and_names_every_field() -> None:
    made = draft(
        "age",
        kind="ordinal",
        ranges=Ranges.magnitudes(10, -2, 1),
        today=TODAY,
        description='Quotes "and" lines\nand # signs',
        owner="[owner]",
        reviews=("[x]", "# no comment"),
        dimensions={"os": ("mac",)},
        schedule=[("2026-12-01", 0.5, 0.7)],
    )
    text = commented(made)
    assert Collection.from_toml(text) == made
    for name in ABOUT:
        assert f"# {ABOUT[name]}" in text or f"#   {name}: {ABOUT[name]}" in text, name


def test_a_draft_ends_after_a_year_and_expects_enough_for_its_cells() -> None:
    made = draft("homepage", today=TODAY, dimensions={"os": ("mac", "linux")})
    assert made.expires == datetime.date(2027, 11, 16)
    assert made.expected_reports == 1000 * 8 * 3
    assert made.params == Params.preset("windows")
    with pytest.raises(ParamsError, match="kind 'bits' needs params"):
        draft("flags", kind="bits")
    with pytest.raises(ParamsError, match="kind must be one of"):
        draft("flags", kind="flag")


def test_the_summary_of_the_papers_parameters_has_the_papers_numbers() -> None:
    told = summary(Collection("c", 1, Params.preset("windows"), reports_per_period=5, max_values=2))
    assert told.epsilon_report == pytest.approx(1.074, abs=1e-3)
    assert told.epsilon_period == pytest.approx(3.656, abs=1e-3)
    assert told.epsilon_value == pytest.approx(4.394, abs=1e-3)
    assert told.epsilon_cap == pytest.approx(8.789, abs=1e-3)
    once = summary(Collection("c", 1, Params(8, 1, 1, 0.5, 0.0, 1.0), one_time=True))
    assert once.epsilon_report == once.epsilon_period == once.epsilon_value == once.epsilon_cap
