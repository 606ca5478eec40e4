"""Charts over periods and cohorts: gaps stay gaps, marks are drawn, hostile names stay names."""

import html
import json

import pytest
import vl_convert

from rappor.charts.diagnostics import balance_panel
from rappor.charts.render import VEGA_LITE, to_svg
from rappor.charts.theme import colours
from rappor.charts.trends import (
    Mark,
    TrendLine,
    TrendPoint,
    reports_panel,
    trends,
    undetected_mass_panel,
    values_of,
)

PERIODS = [f"2026-W{week:02}" for week in range(20, 33)]
HOSTILE = ["<b>&'\"", "x" * 300, "", "datum.evil", "日本語", "a\nb", "']);alert(1);//", "${1}"]


def line(name, gap=()):
    points = [
        TrendPoint(period, None, None, None)
        if number in gap
        else TrendPoint(period, 0.03, 0.02, 0.04, number > 3)
        for number, period in enumerate(PERIODS)
    ]
    return TrendLine(name, points)


MARKS = [Mark("2026-W24", "version 2"), Mark("2026-W30", "list v8")]
MASS = [TrendPoint(period, 0.4, 0.35, 0.45, True) for period in PERIODS]
EVERY = {
    "trends": lambda theme: trends([line(f"s{i}") for i in range(12)], MARKS, theme=theme),
    "in page": lambda theme: trends([line("a")], MARKS, theme=theme, in_page=True),
    "hostile": lambda theme: trends([line(name, (2,)) for name in HOSTILE], theme=theme),
    "nothing": lambda theme: trends([], theme=theme),
    "one period": lambda theme: trends([TrendLine("a", line("a").points[:1])], theme=theme),
    "reports": lambda theme: reports_panel([(p, 9) for p in PERIODS], theme=theme).in_file(theme),
    "reports in page": lambda theme: reports_panel([("2026-W20", 9)], theme=theme).in_page(theme),
    "undetected_mass": lambda theme: undetected_mass_panel(MASS, MARKS, theme=theme).in_file(theme),
    "balance": lambda theme: balance_panel([9, 8, 7], theme=theme).in_file(theme),
    "many cohorts": lambda theme: balance_panel([9, 8] * 512, theme=theme).in_page(theme),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_chart_is_plain_json_and_renders_in_both_themes(name):
    for theme in ("light", "dark"):
        spec = EVERY[name](theme)
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert spec["description"]
        drawn = {**spec, "width": 600} if spec.get("width") == "container" else spec
        assert colours(theme)["bg"].lower() in to_svg(drawn).lower()


@pytest.mark.parametrize("name", EVERY)
def test_no_chart_makes_the_compiler_complain(name, capfd):
    vl_convert.vegalite_to_vega(EVERY[name]("light"), VEGA_LITE, show_warnings=True)
    assert "WARN" not in "".join(capfd.readouterr())


def test_there_is_one_specification_for_twelve_multiples_at_most():
    spec = trends([line(f"s{i}") for i in range(20)])
    assert spec["facet"]["field"] == "line"
    assert spec["columns"] == 4
    names = sorted({each["line"] for each in spec["data"]["values"]})
    assert [name.split("\x1f")[1] for name in names] == [f"s{i}" for i in range(12)]
    assert spec["resolve"]["scale"]["y"] == "shared"


def test_a_gap_starts_a_new_run_and_holds_no_number():
    values = trends([line("a", gap=(4, 5))])["data"]["values"]
    assert [each["run"] for each in values] == [0] * 4 + [1, 2] + [2] * 7
    assert [each["share"] is None for each in values].count(True) == 2
    area = trends([line("a", gap=(4, 5))])["spec"]["layer"][0]
    assert area["encoding"]["detail"]["field"] == "run"
    assert "Gaps: no reports." in trends([line("a", gap=(4,))])["description"]


def test_each_multiple_says_its_newest_share_with_its_interval():
    (label,) = {each["line"] for each in trends([line("google.com")])["data"]["values"]}
    assert label.split("\x1f")[1:] == ["google.com", "3.0\u00a0% (2.0 \u2013 4.0)"]


def test_a_period_without_a_size_has_a_hollow_dot_at_its_upper_limit():
    points = [
        TrendPoint("2026-W20", 0.03, 0.02, 0.04, True),
        TrendPoint("2026-W21", 0.01, 0.0, 0.033, True),
        TrendPoint("2026-W22", 0.01, 0.0, 0.022, False),
        TrendPoint("2026-W23", 0.05, 0.04, 0.06, True),
    ]
    spec = trends([TrendLine("a", points)])
    values = spec["data"]["values"]
    assert [each["text"] for each in values] == [
        "3.0\u00a0% (2.0 – 4.0)",
        "present, at most 3.3\u00a0%",
        "at most 2.2\u00a0%",
        "5.0\u00a0% (4.0 – 6.0)",
    ]
    assert [each["sized"] for each in values] == [True, False, False, True]
    assert [each["dot"] for each in values] == [0.03, 0.033, 0.022, 0.05]
    dots = next(layer for layer in spec["spec"]["layer"] if layer["mark"]["type"] == "point")
    assert dots["encoding"]["y"]["field"] == "dot"
    assert dots["encoding"]["fill"]["condition"]["test"] == "datum.sized"
    # No line is drawn through what is not known.
    line_of = next(layer for layer in spec["spec"]["layer"] if layer["mark"]["type"] == "line")
    assert "datum.sized" in line_of["transform"][0]["filter"]
    assert values[0]["stretch"] != values[3]["stretch"]
    assert "Hollow: upper limits." in spec["description"]


def test_a_mass_that_may_be_none_is_a_limit_and_has_no_line():
    points = [
        TrendPoint(PERIODS[0], 0.4, 0.35, 0.45, True, is_mass=True),
        TrendPoint(PERIODS[1], 0.0, 0.0, 0.044, True, is_mass=True),
        TrendPoint(PERIODS[2], 1.0, 1.0, 1.0, True, is_mass=True),
    ]
    values = [values_of(point) for point in points]
    assert [each["text"] for each in values] == [
        "40.0\u00a0% (35.0 – 45.0)",
        "at most 4.4\u00a0%",
        "100\u00a0% (100 – 100)",
    ]
    assert [each["sized"] for each in values] == [True, False, True]
    assert [each["dot"] for each in values] == [0.4, 0.044, 1.0]
    assert undetected_mass_panel(points[:2]).title.endswith("at most 4.4\u00a0% in the last period")


def test_names_are_data_and_never_code():
    plain, hostile = (trends([line(name)]) for name in ("a", "']);alert(1);//"))
    assert hostile["facet"] == plain["facet"]
    assert hostile["spec"] == plain["spec"]
    assert "alert" not in json.dumps({**hostile, "data": None})


def test_marks_outside_of_the_axis_are_not_drawn():
    layers = trends([line("a")], [Mark("2020-W01", "version 2")])["spec"]["layer"]
    assert all("strokeDash" not in layer["mark"] for layer in layers)
    layers = trends([line("a")], MARKS)["spec"]["layer"]
    assert layers[0]["mark"]["type"] == "rule"


def test_bars_of_cohorts_start_at_zero_and_show_where_equal_is():
    panel = balance_panel([90, 110])
    assert panel.title == "90 to 110 reports in each of 2 cohorts"
    assert panel.words == ("Dashed line: 100, the same number in each cohort.",)
    assert panel.parts["layer"][1]["data"]["values"] == [{"equal": 100.0}]


def test_reports_are_added_up_over_periods_that_have_some():
    panel = reports_panel([("2026-W20", 400), ("2026-W21", 0), ("2026-W22", 600)])
    assert panel.title == "1,000 reports in 2 periods"


def test_categories_have_their_own_words_for_what_none_explains():
    panel = undetected_mass_panel(MASS, kind="category")
    assert panel.title.startswith("In no category: 40.0")
    assert panel.words == ("Reports that are in none of the listed categories.",)


def test_a_last_row_that_is_not_full_has_an_axis_for_each_multiple():
    found = {count: trends([line(f"s{i}") for i in range(count)]) for count in (3, 4, 5, 12)}
    axes = {count: spec["resolve"]["axis"]["x"] for count, spec in found.items()}
    assert axes == {3: "shared", 4: "shared", 5: "independent", 12: "shared"}


@pytest.mark.parametrize(
    "name",
    [
        "datum.value",
        "datum.label",
        'datum.value"] + datum.label + ["',
        "datum['value']",
        "parent.line",
        "\\",
        "\\u0022",
        "__proto__",
        "constructor",
        "a.b[0]",
    ],
)
def test_a_string_that_is_an_expression_stays_a_string_above_its_multiple(name: str) -> None:
    points = [TrendPoint("2026-W27", 0.1, 0.05, 0.15), TrendPoint("2026-W28", 0.1, 0.0, 0.2)]
    svg = to_svg(trends([TrendLine(name, points), TrendLine("other", points)]))
    assert f">{name}<" in html.unescape(svg)
