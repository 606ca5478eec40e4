"""The heat map of cohorts and bits: colours of residuals and counts, blank cells, its file."""

import math
import re

import pytest

from rappor.charts.diagnostics import RESIDUALS, heat_panel
from rappor.charts.render import to_png, to_svg
from rappor.charts.theme import THEMES, TOKENS

CELL = re.compile(r'aria-label="bit: (\d+); cohort: (\d+)[^"]*"[^>]*fill="([^"]*)"')
Colours = dict[tuple[int, int], tuple[int, int, int]]


def drawn(table: list[list[float]], theme: str = "light", **how: bool) -> Colours:
    """The colour of each square by cohort and bit."""
    svg = to_svg(heat_panel(table, theme=theme, **how).in_file(theme))
    return {(int(row), int(bit)): rgb(fill) for bit, row, fill in CELL.findall(svg)}


def rgb(code: str) -> tuple[int, int, int]:
    if code.startswith("#"):
        code = ",".join(str(int(code[place : place + 2], 16)) for place in (1, 3, 5))
    red, green, blue = (int(part) for part in re.findall(r"\d+", code))
    return red, green, blue


@pytest.mark.parametrize("theme", THEMES)
def test_noise_is_flat_and_what_lies_beyond_six_is_clamped(theme: str) -> None:
    place = THEMES.index(theme)
    numbers = [-2.0, -1.9, 0.0, 1.9, 9.0, -9.0, *RESIDUALS]
    colours = drawn([numbers], theme, residuals=True)
    row = [colours[0, bit] for bit in range(len(numbers))]
    assert {*row[:4]} == {rgb(TOKENS["d3"][place])}
    assert row[4:6] == [rgb(TOKENS["d6"][place]), rgb(TOKENS["d1"][place])]
    assert row[6:] == [rgb(TOKENS[f"d{number}"][place]) for number in range(1, 7)]


@pytest.mark.parametrize("theme", THEMES)
def test_counts_go_from_the_lightest_to_the_strongest_shade(theme: str) -> None:
    place = THEMES.index(theme)
    colours = drawn([[10.0, 20.0], [15.0, 12.0]], theme, residuals=False)
    assert colours[0, 0] == rgb(TOKENS["s1"][place])
    assert colours[0, 1] == rgb(TOKENS["s5"][place])
    assert colours[1, 0] == rgb(TOKENS["s3"][place])


def test_what_is_not_known_is_left_blank() -> None:
    colours = drawn([[0.0, 6.0], [math.nan, -6.0]], residuals=True)
    assert sorted(colours) == [(0, 0), (0, 1), (1, 1)]


def test_equal_counts_have_a_colour() -> None:
    assert set(drawn([[7.0, 7.0]], residuals=False).values()) == {rgb(TOKENS["s1"][0])}


def test_squares_of_blocks_are_named_by_their_first_cohort_and_bit() -> None:
    panel = heat_panel([[0.0] * 64] * 16, residuals=True, block=(8, 2))
    svg = to_svg(panel.in_file())
    assert "mean of each square" in panel.title
    assert ">120<" in svg  # the first bit of a labelled square: 2 times 60
    assert ">8<" in svg


def test_the_file_is_a_png() -> None:
    panel = heat_panel([[0.0, 6.0], [math.nan, -6.0]], residuals=True)
    assert to_png(panel.in_file("light")).startswith(b"\x89PNG\r\n\x1a\n")
