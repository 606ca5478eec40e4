"""The date that retention goes by."""

import datetime

import pytest

from rappor.collector.clock_check import ClockCheck

MONDAY = datetime.date(2026, 11, 16)


@pytest.mark.parametrize(
    ("hours", "days", "leaps"),
    [(0, 2, False), (0, 3, True), (24, 3, False), (24 * 30, 30, False), (24 * 30, 33, True)],
)
def test_a_date_may_be_two_days_ahead_of_the_time_that_passed(hours, days, leaps):
    clock = iter([1000.0, 1000.0 + 3600 * hours])
    calendar = ClockCheck(MONDAY, lambda: next(clock))
    assert calendar.leaps(MONDAY + datetime.timedelta(days=days)) is leaps


def test_a_clock_that_is_set_back_is_no_leap():
    assert not ClockCheck(MONDAY).leaps(MONDAY - datetime.timedelta(days=400))
