"""The heat map of an association: numbers as in the table, and names that fit."""

import math
import re
from types import SimpleNamespace

import pytest

from rappor.charts.association import association_panel
from rappor.charts.render import to_svg

CHANNELS = ("website", "store", "bundle")
PAGES = ("search.hijack-bar.example", "southern-maps.example")


def margin(value, share=0.3):
    return SimpleNamespace(value=value, share=share, low_95=share - 0.1, high_95=share + 0.1)


def cell(first, second, share=0.0884):
    return SimpleNamespace(
        first=first,
        second=second,
        share=share,
        low_95=share - 0.012,
        high_95=share + 0.013,
        expected=0.0371,
        associated=second == "bundle",
    )


def found(columns=CHANNELS, share=0.0884):
    return SimpleNamespace(
        names=("homepage", "channel"),
        margins=([margin(page) for page in PAGES], [margin(name, math.nan) for name in columns]),
        rows=[cell(page, name, share) for page in PAGES for name in columns],
    )


def panel(of, **more):
    return association_panel(of, "homepage and channel are associated", **more)


def test_a_square_shows_what_the_table_shows():
    row = panel(found()).parts["data"]["values"][0]
    assert (row["text"], row["interval"]) == ("8.8\u00a0%", "8.8\u00a0% (7.6 – 10.1)")
    assert (row["first alone"], row["second alone"]) == ("30\u00a0% (20 – 40)", "–")
    assert row["first"] == PAGES[0]  # without a share: one without its interval misleads


def test_a_share_below_0_is_not_shown_as_0():
    row = panel(found(share=-0.004)).parts["data"]["values"][0]
    assert row["text"] == "−0.4\u00a0%"
    assert row["share"] == 0.0  # its colour is that of 0


@pytest.mark.parametrize(
    ("columns", "angle"), [(CHANNELS, False), ([f"a-long-name-{n}" for n in range(20)], True)]
)
def test_names_of_columns_stand_upright_only_where_they_do_not_fit(columns, angle):
    svg = to_svg(panel(found(columns)).in_file())
    assert bool(re.search(rf"rotate\(-90\)[^<]*>{columns[0]}", svg)) == angle
    assert "search.hijack-bar.example" in svg


def test_a_page_holds_room_for_the_names_of_columns():
    few, many = panel(found()), panel(found([f"a-long-name-{n}" for n in range(20)]))
    assert few.height < many.height
    assert many.height - few.height <= 110
