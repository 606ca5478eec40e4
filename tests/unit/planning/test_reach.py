"""Which period is shown by default: the latest with enough reports."""

from dataclasses import replace

import pytest

from rappor.collection import Collection
from rappor.mechanism import Ranges
from rappor.params import Params
from rappor.planning.reach import ALPHA, default_period, reach_of, values_tested

PAPER = Collection("homepage", 1, Params.preset("windows"))
DAYS = [f"2026-11-{day:02}" for day in range(10, 17)]
ENOUGH = 50_000


def counted(*reports: int) -> list[tuple[str, int]]:
    return list(zip(DAYS, reports, strict=False))


@pytest.mark.parametrize(
    ("reports", "place", "enough"),
    [
        ((ENOUGH, ENOUGH, ENOUGH), 2, True),
        ((ENOUGH, ENOUGH, 900), 1, True),
        ((ENOUGH, 0, 0), 0, True),
        ((ENOUGH, 900, 1_100), 0, True),
        ((900, 1_100, 800), 2, False),
        ((900, 1_100, 0), 1, False),
    ],
)
def test_the_latest_with_enough_reports_is_shown_or_the_latest_of_all(
    reports: tuple[int, ...], place: int, enough: bool
) -> None:
    for given in (counted(*reports), counted(*reports)[::-1]):
        assert default_period(PAPER, given, 200) == (DAYS[place], enough)


def test_without_reports_there_is_no_period() -> None:
    assert default_period(PAPER, [], 200) is None
    assert default_period(PAPER, counted(0, 0), 200) is None


def test_enough_is_what_a_page_calls_enough() -> None:
    for reports in (2_000, 20_000, 40_000, 60_000):
        few = reach_of(PAPER, DAYS[1], reports, 200, ALPHA).too_few
        shown = default_period(PAPER, counted(10**6, reports), 200)
        assert shown == (DAYS[0 if few else 1], True)


def test_more_candidates_need_more_reports() -> None:
    few = [n for n in range(10_000, 90_000, 500) if reach_of(PAPER, DAYS[1], n, 2, ALPHA).too_few]
    reports = few[-1] + 500
    assert default_period(PAPER, counted(10**7, reports), 10**4) == (DAYS[0], True)


def test_declared_values_are_tested_all_and_listed_ones_as_many_as_there_are() -> None:
    four = Params(4, 1, 1, 0.5, 0.5, 0.75)
    category = replace(PAPER, params=four, kind="category", categories=("a", "b", "c", "d"))
    ordinal = replace(PAPER, params=four, kind="ordinal", ranges=Ranges((1, 2, 3)))
    bits = replace(PAPER, params=four, kind="bits")
    assert values_tested(PAPER, 200) == 200
    assert [values_tested(each, 200) for each in (category, ordinal, bits)] == [4, 4, 4]
