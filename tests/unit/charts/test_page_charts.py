"""Charts of pages: the same as in files, as wide as the page, on either scale, in either unit."""

import json
import re
from types import SimpleNamespace

import pytest
import vl_convert

from rappor import Params, Ranges
from rappor.aggregate import Counts
from rappor.charts.comparison import Pair, comparison_panel
from rappor.charts.distribution import cumulative_panel, histogram_panel
from rappor.charts.ingest import rates
from rappor.charts.render import VEGA_LITE, to_svg
from rappor.charts.results import results, strip_panel
from rappor.charts.rows import bars_panel, dots_panel, log_ticks
from rappor.decoding.ordinal import decode_ordinal
from support.drawn import row


def decoded(detected=12, others=100):
    rows = [row(f"d{i}", 0.2 - i / 1000, True) for i in range(detected)]
    rows += [row(f"n{i}", 0.0004 - i / 10_000, False) for i in range(others)]
    return SimpleNamespace(
        rows=rows,
        detected=rows[:detected],
        reports=10**6,
        kind="string",
        undetected_mass=SimpleNamespace(proportion=0.447, prop_low_95=0.42, prop_high_95=0.475),
        threshold_band=(6900.0, 6900.0),
        alpha=0.05,
        correction="fdr",
        warnings=(),
    )


def pairs():
    def gap(different):
        return SimpleNamespace(difference=0.02, low_95=0.01, high_95=0.03, different=different)

    return [
        Pair(row("a", 0.1, True), row("a", 0.08, True), gap(True)),
        Pair(row("b", -0.001, False), row("b", 0.002, False), gap(False)),
    ]


def numbers():
    counts = Counts(
        Params(5, 1, 1, 0.0, 0.25, 0.75), [1000], [[300, 400, 380, 330, 240]], kind="ordinal"
    )
    return decode_ordinal(counts, Ranges((1, 2, 4, 8)))


NAMES = ("2026-W28", "2026-W27")


def compared(theme="light", page=True, **more):
    return comparison_panel(pairs(), NAMES, "One differs", theme=theme, page=page, **more)


EVERY = {
    "bars": lambda theme, page: bars_panel(decoded(), theme=theme, page=page),
    "counts": lambda theme, page: bars_panel(decoded(), theme=theme, unit="count", page=page),
    "strip": lambda theme, page: strip_panel(decoded(), theme=theme),
    "dots": lambda theme, page: dots_panel(decoded(), theme=theme, page=page),
    "dots of counts": lambda theme, page: dots_panel(
        decoded(), theme=theme, unit="count", page=page
    ),
    "compared": lambda theme, page: compared(theme, page),
    "compared log": lambda theme, page: compared(theme, page, scale="log", unit="count"),
    "histogram": lambda theme, page: histogram_panel(numbers(), theme=theme),
    "histogram of counts": lambda theme, page: histogram_panel(
        numbers(), theme=theme, unit="count"
    ),
    "cumulative": lambda theme, page: cumulative_panel(numbers(), theme=theme),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_panel_is_plain_json_and_makes_no_compiler_complain(name, capfd):
    for theme in ("light", "dark"):
        for page in (True, False):
            panel = EVERY[name](theme, page)
            spec = panel.in_page(theme) if page else panel.in_file(theme)
            assert json.loads(json.dumps(spec, allow_nan=False)) == spec
            vl_convert.vegalite_to_vega(spec, VEGA_LITE, show_warnings=True)
            assert "url" not in json.dumps(spec["data"])
    assert "WARN" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("name", EVERY)
def test_pages_know_the_height_and_write_the_words_themselves(name):
    panel = EVERY[name]("light", True)
    spec = panel.in_page()
    assert "title" not in spec
    assert spec["width"] == "container"
    assert isinstance(spec["height"], int)
    assert 20 < panel.height - spec["height"] < 120
    assert spec["description"] == panel.sentence
    assert panel.title in to_svg(panel.in_file()).replace("&lt;", "<")


def test_themes_share_their_data():
    for make in EVERY.values():
        light, dark = (make(theme, True).in_page(theme) for theme in ("light", "dark"))
        assert light["data"] == dark["data"]
        assert light["layer"] != dark["layer"]


def test_pages_show_forty_rows_and_files_thirty():
    many = decoded(90)
    assert len(bars_panel(many, page=True).parts["data"]["values"]) == 40
    assert len(results(many)["vconcat"][0]["data"]["values"]) == 30


def test_pages_and_files_draw_the_same_bars():
    one = bars_panel(decoded(), page=False).parts
    other = results(decoded())["vconcat"][0]
    assert one["data"] == other["data"]
    assert one["layer"] == other["layer"]


def test_counts_are_drawn_as_counts():
    values = bars_panel(decoded(), unit="count", page=True).parts["data"]["values"]
    assert (values[0]["reports"], values[0]["low"]) == (200_000, 190_000)
    assert values[0]["shown"] == "200,000 (190,000 – 210,000)"


def test_what_reaches_zero_is_open_on_a_logarithmic_scale():
    panel = dots_panel(decoded(2, 8), page=True)
    values = {each["string"]: each for each in panel.parts["data"]["values"]}
    assert not values["d0"]["open"]
    assert values["n0"]["open"]
    assert values["n0"]["share"] is values["n7"]["share"] is None  # only upper limits are drawn
    assert all(each["low"] > 0 for each in values.values())
    assert "◂: no lower limit." in panel.words
    assert "Without a dot: an upper limit." in panel.words


def with_presence():
    """One string with a size, one that is only known to be there, one that was not detected."""
    found = decoded(1, 1)
    present = row("p", 0.01, True, half=0.02)
    found.rows.insert(1, present)
    found.detected.append(present)
    return found


@pytest.mark.parametrize("unit", ["share", "count"])
def test_rows_without_a_size_are_hollow_bars_to_their_upper_limit(unit):
    panel = bars_panel(with_presence(), unit=unit, page=True)
    field, factor = ("share", 1) if unit == "share" else ("reports", 1e6)
    sized, present, absent = panel.parts["data"]["values"]
    assert sized["sized"]
    assert sized["end"] == sized[field] == pytest.approx(0.2 * factor)
    for each, high in ((present, 0.03), (absent, 0.0104)):
        assert not each["sized"]
        assert each[field] is each["low"] is None
        assert each["end"] == each["high"] == pytest.approx(high * factor)
    assert (present["detected"], absent["detected"]) == (True, False)
    assert present["text"] == "present, at most 3.0\u00a0%"
    assert absent["text"] == "at most 1.1\u00a0%"
    assert (present["count"], absent["count"]) == ("present, at most 30,000", "at most 11,000")
    bar, *rest = panel.parts["layer"]
    assert bar["encoding"]["x"]["field"] == "end"
    assert bar["encoding"]["fill"]["condition"]["test"] == "datum.sized"
    whiskers = [layer for layer in rest if layer.get("transform") == [{"filter": "datum.sized"}]]
    assert len(whiskers) == 3  # the rule and its two ends
    assert "Hollow bars end at an upper limit." in panel.words


def test_where_all_have_a_size_no_bar_is_hollow():
    panel = bars_panel(decoded(3, 0), page=True)
    assert all(each["sized"] for each in panel.parts["data"]["values"])
    assert "Hollow" not in panel.sentence


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_comparison_draws_upper_limits_where_there_is_no_size(scale):
    panel = compared(page=False, scale=scale)
    first, _, absent, _ = panel.parts["data"]["values"]
    assert not first["open"]
    assert absent["open"]
    assert absent["share"] is None
    assert absent["text"] == "at most 0.90\u00a0%"
    assert absent["low"] >= 0


def test_a_difference_whose_side_alone_is_known_says_so():
    gap = SimpleNamespace(difference=-0.05, low_95=-0.081, high_95=0.0, different=True)
    one = Pair(row("a", 0.1, True), row("a", 0.15, True), gap)
    panel = comparison_panel([one], NAMES, "One differs", page=False)
    assert {each["gap"] for each in panel.parts["data"]["values"]} == {
        "lower, by at most 8.1 points"
    }


def test_bars_of_a_histogram_keep_the_raw_height_and_say_what_the_rows_say():
    params = Params(5, 1, 1, 0.0, 0.25, 0.75)
    counts = Counts(params, [1000], [[350, 400, 380, 330, 200]], kind="ordinal")
    hist = decode_ordinal(counts, Ranges((1, 2, 4, 8)))
    panel = histogram_panel(hist)
    values = panel.parts["data"]["values"]
    assert [each["share"] for each in values] == hist.share.tolist()
    assert values[-1]["share"] < 0
    for each, found in zip(values, hist.rows, strict=True):
        assert (each["low"], each["high"]) == (found.prop_low_95, found.prop_high_95)
        assert each["detected"] == found.detected
        if not found.detected:
            assert each["text"].startswith("at most ")
            assert each["low"] == 0
    assert "!datum.detected" in json.dumps(panel.parts["layer"][0])
    assert "Hollow bars may be empty: their whiskers end at an upper limit." in panel.words
    assert any(line.startswith("Bars are raw estimates") for line in panel.words)
    counted = histogram_panel(hist, unit="count").parts["data"]["values"]
    assert [each["share"] for each in counted] == pytest.approx((1000 * hist.share).tolist())


@pytest.mark.parametrize("domain", [[0.003, 0.2], [1e-5, 1.0], [0.04, 0.06], [20.0, 4e6]])
def test_ticks_are_never_repeated(domain):
    ticks = log_ticks(domain)
    assert ticks == sorted(set(ticks))
    assert all(domain[0] <= tick <= domain[1] for tick in ticks)
    assert len({f"{100 * tick:.3g}" for tick in ticks}) == len(ticks)


def test_a_comparison_names_both_sides_and_their_difference():
    panel = compared(page=False)
    svg = to_svg(panel.in_file())
    assert "●\u00a02026-W28, ◇\u00a02026-W27." in panel.sentence  # a sign stays with its name
    assert "+2.0 points (1.0 – 3.0)" in svg
    assert {each["side"] for each in panel.parts["data"]["values"]} == {0, 1}


def test_a_collection_without_undetected_mass_has_no_strip():
    found = decoded()
    found.kind = "boolean"
    assert strip_panel(found) is None


def test_ranges_say_where_they_begin_on_a_phone_and_no_label_covers_another():
    for panel in (histogram_panel, cumulative_panel):
        for page in (True, False):
            axis = panel(numbers(), page=page).parts["layer"][0]["encoding"]["x"]["axis"]
            assert ("labelExpr" in axis) == page
            assert axis["labelOverlap"] == "parity"


def test_without_reports_the_line_of_the_ingest_chart_lies_at_its_foot():
    drawn = to_svg(rates([(60.0, 0.0), (120.0, 0.0)]) | {"width": 300})
    assert re.findall(r">([\d.]+)</text>", drawn)[-1] == "1"


@pytest.mark.parametrize("count", [1, 2, 3, 7, 59])
def test_each_tick_of_the_ingest_chart_is_another_minute(count):
    minutes = [(60.0 * (1000 + minute), 12_500.0) for minute in range(count)]
    axis = rates(minutes)["encoding"]["x"]["axis"]
    ticks = axis["values"]
    assert 1 <= len(ticks) <= 6
    assert len({round(tick / 60_000) for tick in ticks}) == len(ticks)
    assert ticks[-1] == 1000 * minutes[-1][0]
    drawn = to_svg(rates(minutes) | {"width": 300})
    assert "10,000" in drawn
    shown = re.findall(r">(\d\d:\d\d)<", drawn)
    assert len(set(shown)) == len(shown) >= min(count, 3)
