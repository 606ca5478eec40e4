"""Charts: everything a reader needs is in them, and they render without a network."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import vl_convert

from rappor import Params, Ranges, charts
from rappor.aggregate import Counts
from rappor.charts.render import VEGA_LITE, to_svg
from rappor.charts.theme import TOKENS, colours
from rappor.decoding.categories import decode_basic
from rappor.decoding.options import CORRECTIONS
from rappor.decoding.ordinal import decode_ordinal
from rappor.errors import MissingExtraError, ParamsError
from support.drawn import row

HOSTILE = ["<b>&'\"", "x" * 300, "", "datum.evil", "日本語", "a\nb"]


def strings(detected, others=100, **more):
    """A result for strings, by its attributes only."""
    rows = [row(f"d{i}", 0.2 - i / 1000, True) for i in range(detected)]
    rows += [row(f"n{i}", 0.003 - i / 10_000, False) for i in range(others)]
    mass = SimpleNamespace(proportion=0.447, prop_low_95=0.42, prop_high_95=0.475)
    fields = {
        "rows": rows,
        "detected": rows[:detected],
        "reports": 10**6,
        "kind": "string",
        "undetected_mass": mass,
        "threshold_band": (6900.0, 6900.0),
        "alpha": 0.05,
        "correction": "fdr",
        "warnings": (),
    }
    return SimpleNamespace(**fields | more)


def text_of(svg):
    return re.sub(r"<[^>]+>", " ", svg)


def values(spec):
    return spec["vconcat"][0]["data"]["values"]


def categories(names=HOSTILE):
    params = Params(len(names), 1, 1, 0.5, 0.25, 0.75)
    ones = [40 + 5 * bit for bit in range(len(names))]
    return decode_basic(Counts(params, [100], [ones], kind="category"), names)


def a_histogram(k=5):
    params = Params(k, 1, 1, 0.0, 0.25, 0.75)
    ones = [300 + (20 * bit) % 90 for bit in range(k)]
    ranges = Ranges((1, 2, 4, 8)) if k == 5 else range(k)
    return decode_ordinal(Counts(params, [1000], [ones], kind="ordinal"), ranges)


EVERY = {
    "strings": lambda theme: charts.results(strings(12), theme=theme),
    "categories": lambda theme: charts.results(categories(), theme=theme),
    "bits": lambda theme: charts.results(
        decode_basic(Counts(Params(2, 1, 1, 0, 0.25, 0.75), [9], [[4, 5]], kind="bits")),
        theme=theme,
    ),
    "truth": lambda theme: charts.results(strings(12), truth={"d0": 10**5}, theme=theme),
    "nothing detected": lambda theme: charts.results(strings(0), theme=theme),
    "no reports": lambda theme: charts.results(strings(0, reports=0), theme=theme),
    "no candidates": lambda theme: charts.results(strings(0, 0), theme=theme),
    "histogram": lambda theme: charts.histogram(a_histogram(), theme=theme),
    "cumulative": lambda theme: charts.cumulative(a_histogram(), theme=theme),
    "many ranges": lambda theme: charts.histogram(a_histogram(100), theme=theme),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_chart_is_plain_json_with_words_and_renders_in_both_themes(name):
    for theme in ("light", "dark"):
        spec = EVERY[name](theme)
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert spec["description"].startswith(spec["title"]["text"])
        svg = to_svg(spec)
        assert colours(theme)["bg"].lower() in svg.lower()
        assert spec["title"]["text"].split()[0] in text_of(svg)


@pytest.mark.parametrize("name", EVERY)
def test_no_chart_makes_the_compiler_complain(name, capfd):
    vl_convert.vegalite_to_vega(EVERY[name]("light"), VEGA_LITE, show_warnings=True)
    assert "WARN" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("name", EVERY)
def test_no_chart_loads_anything(name):
    text = json.dumps(EVERY[name]("light"))
    assert re.findall(r"https?://[^\"]+", text) == [
        "https://vega.github.io/schema/vega-lite/v5.json"
    ]
    assert '"url"' not in text


def test_results_show_interval_threshold_and_undetected_mass():
    spec = charts.results(strings(12))
    first = values(spec)[0]
    assert (first["string"], first["share"]) == ("d0", 0.2)
    assert (first["low"], first["high"]) == (pytest.approx(0.19), pytest.approx(0.21))
    shown = text_of(to_svg(spec))
    assert "20.0\u00a0% (19.0 – 21.0)" in shown
    assert "detection threshold ≈ 0.69\u00a0%" in shown
    assert "44.7\u00a0% (42.0 – 47.5) undetected mass" in shown
    assert "55.3\u00a0% (52.5 – 58.0) detected" in shown
    assert "On average at most 5\u00a0%" in shown
    assert "12 of 112 candidates detected in 1,000,000 reports" in shown


def test_undetected_mass_has_its_own_colour_and_place():
    strip = charts.results(strings(12))["vconcat"][1]
    explained, undetected_mass = strip["data"]["values"]
    assert (explained["from"], explained["to"]) == (0, undetected_mass["from"])
    assert undetected_mass["to"] == 1
    assert (undetected_mass["low"], undetected_mass["high"]) == (
        pytest.approx(0.525),
        pytest.approx(0.58),
    )
    fill = strip["layer"][0]["encoding"]["fill"]
    assert fill["condition"]["value"] != fill["value"]


def test_results_show_detected_first_and_at_most_thirty():
    assert [len(values(charts.results(strings(n)))) for n in (0, 5, 25, 90)] == [10, 15, 30, 30]
    shown = values(charts.results(strings(25)))
    assert sum(each["detected"] for each in shown) == 25
    assert all(each["detected"] for each in values(charts.results(strings(90))))
    assert "Showing 30 of 190, largest first." in charts.results(strings(90))["title"]["subtitle"]
    assert not any("Showing" in line for line in charts.results(strings(3, 2))["title"]["subtitle"])


@pytest.mark.slow
def test_detected_rows_are_found_in_long_tables_wherever_they_are():
    found = strings(0, 5000)
    late = row("late", -0.5, True)
    found.rows.append(late)
    found.detected = [late]
    assert "late" in [each["string"] for each in values(charts.results(found))]


def test_every_short_category_list_is_shown_whole():
    assert len(values(charts.results(categories()))) == len(HOSTILE)


def test_nothing_detected_and_nothing_there_are_said():
    assert "None of 100 candidates detected" in text_of(to_svg(charts.results(strings(0))))
    assert "No reports yet" in text_of(to_svg(charts.results(strings(0, reports=0))))
    assert "no candidates" in text_of(to_svg(charts.results(strings(0, 0))))
    empty = decode_ordinal(Counts.zero(Params(5, 1, 1, 0, 0.25, 0.75), kind="ordinal"))
    for chart in (charts.histogram, charts.cumulative):
        assert "No reports yet" in text_of(to_svg(chart(empty)))


def test_warnings_stand_below_the_title():
    spec = charts.results(strings(3, warnings=("Mind the gap.",)))
    assert "Check: Mind the gap." in spec["title"]["subtitle"]


@pytest.mark.slow
def test_hostile_strings_are_shown_as_they_are():
    svg = to_svg(charts.results(categories()))
    shown = text_of(svg)
    assert "<b>" not in svg
    assert "&lt;b&gt;&amp;" in shown
    assert "日本語" in shown
    assert "(empty)" in shown
    assert "x" * 60 not in shown  # long labels are cut


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_every_correction_has_a_sentence(correction):
    assert charts.results(strings(3, correction=correction))["title"]["subtitle"][0]


def test_the_two_ways_to_keep_a_false_discovery_rate_are_told_apart():
    words = [charts.results(strings(3, correction=each))["title"]["subtitle"][0]
             for each in ("fdr", "bh")]  # fmt: skip
    assert "(adaptive FDR)" in words[0]
    assert "(Benjamini-Hochberg)" in words[1]


@pytest.mark.slow
def test_presence_and_upper_limits_are_written_next_to_their_bars():
    found = strings(2, 3)
    present = row("p", 0.01, True, half=0.02)
    found.rows.append(present)
    found.detected.append(present)
    shown = text_of(to_svg(charts.results(found)))
    assert "present, at most 3.0\u00a0%" in shown
    assert "at most 1.3\u00a0%" in shown
    assert "Hollow bars end at an upper limit." in shown


def test_thresholds_off_the_chart_are_left_out():
    for threshold in (float("inf"), 5e6):
        found = strings(3, threshold_band=(threshold, threshold))
        assert "threshold" not in json.dumps(charts.results(found))


def test_a_threshold_is_a_band_where_detected_and_undetected_rows_overlap():
    found = strings(3, threshold_band=(5900.0, 6900.0))
    spec = charts.results(found)
    marks = [layer["mark"] for layer in spec["vconcat"][0]["layer"]]
    assert [mark["type"] for mark in marks if mark.get("opacity") == 0.12] == ["rect"]
    assert "detection threshold: 0.59 – 0.69\u00a0%" in text_of(to_svg(spec))
    plain = json.dumps(charts.results(strings(3)))
    assert '"rect"' not in plain


def test_a_boolean_says_its_larger_share():
    params = Params(1, 1, 1, 0.0, 0.25, 0.75)
    found = decode_basic(Counts(params, [10_000], [[4000]], kind="boolean"))
    assert charts.results(found)["title"]["text"] == (
        "70.0\u00a0% (68.3 – 71.7) false in 10,000 reports"
    )


def test_histograms_keep_the_order_of_their_ranges():
    spec = charts.histogram(a_histogram())
    labels = ["< 1", "1 to < 2", "2 to < 4", "4 to < 8", ">= 8"]
    assert [each["range"] for each in spec["data"]["values"]] == labels
    assert "median" in spec["title"]["subtitle"][0]
    ends = [each["share"] for each in charts.cumulative(a_histogram())["data"]["values"]]
    assert ends[-1] == pytest.approx(1)


@pytest.mark.slow
def test_files_are_written_by_their_ending(tmp_path):
    chart = charts.Chart(charts.results(strings(3)))
    assert chart.save(tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    assert chart.save(tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert json.loads(chart.save(str(tmp_path / "a.json")).read_text("utf-8")) == chart.spec
    page = chart.save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert not re.search(r'src="http|cdn\.jsdelivr', page)
    with pytest.raises(ParamsError, match=r"\.svg.*got '\.gif'"):
        chart.save(tmp_path / "a.gif")


def test_notebooks_get_the_specification_and_a_picture():
    chart = charts.Chart(charts.results(strings(3)))
    bundle = chart._repr_mimebundle_(include=None, exclude=None)
    assert bundle["application/vnd.vegalite.v5+json"] == chart.spec
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "3 of 103" in bundle["text/plain"]


def test_without_the_renderer_the_specification_still_works(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    chart = charts.Chart(charts.results(strings(3)))
    assert "image/svg+xml" not in chart._repr_mimebundle_()
    chart.save(tmp_path / "a.json")
    with pytest.raises(MissingExtraError, match=r"rappor\[analysis\]"):
        chart.save(tmp_path / "a.svg")


def test_charts_need_neither_decoding_nor_numpy():
    loaded = "[name for name in sys.modules if 'decoding' in name or name == 'numpy']"
    code = f"import rappor.charts, sys; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_themes_are_two_complete_sets():
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for pair in TOKENS.values() for colour in pair)
    assert colours("light").keys() == colours("dark").keys()
    with pytest.raises(ParamsError, match="theme"):
        colours("sepia")


def test_the_truth_of_a_simulation_is_a_diamond_in_every_row_and_fits_the_axis():
    spec = charts.results(strings(2, 1), truth={"d0": 900_000, "n0": 5})
    layers = spec["vconcat"][0]["layer"]
    points = {value["string"]: value["truth"] for value in layers[-1]["data"]["values"]}
    assert points == {"d0": 0.9, "d1": 0.0, "n0": 5e-6}
    assert layers[0]["encoding"]["x"]["scale"]["domain"][1] == 0.9
    assert "Diamonds are the truth of the simulation." in spec["description"]
    assert "Diamonds" not in charts.results(strings(2, 1))["description"]
