"""Days and weeks: the only time that a report carries."""

from datetime import date, datetime, timedelta

import pytest

from rappor.collection import check_period, days_of, period_of
from rappor.collection.periods import periods_between
from rappor.errors import ParamsError


@pytest.mark.parametrize(
    ("day", "week"),
    [
        (date(2026, 11, 16), "2026-W47"),
        (date(2026, 11, 22), "2026-W47"),
        (date(2026, 11, 23), "2026-W48"),
        (date(2027, 1, 3), "2026-W53"),  # ISO years begin on a Monday
        (date(2027, 1, 4), "2027-W01"),
        (date(2024, 12, 30), "2025-W01"),
    ],
)
def test_a_day_lies_in_its_iso_week(day: date, week: str) -> None:
    assert period_of("week", day) == week
    first, last = days_of(week)
    assert first <= day <= last
    assert (first.isoweekday(), last.isoweekday(), last - first) == (1, 7, timedelta(days=6))


def test_a_day_is_its_own_period() -> None:
    assert period_of("day", date(2026, 3, 1)) == "2026-03-01"
    assert days_of("2026-03-01") == (date(2026, 3, 1), date(2026, 3, 1))


@pytest.mark.parametrize(
    "bad",
    [
        "", "2026-11-31", "2026-11-1", "2026-1116", "20261116", "2026-W00", "2026-W54", "2025-W53",
        "2026-w47", "2026-W47-1", " 2026-11-16", "2026-11-16\n", "２０２６-11-16", None, 20261116,
        "0000-01-01", "0000-W01", "9999-W53",
    ],
)  # fmt: skip
def test_what_is_not_a_period_is_refused(bad: object) -> None:
    with pytest.raises(ParamsError, match="period"):
        days_of(bad)
    for kind in ("day", "week"):
        with pytest.raises(ParamsError, match="period must be"):
            check_period(kind, bad)


def test_a_period_of_the_other_kind_is_refused() -> None:
    assert check_period("day", "2026-11-16") == "2026-11-16"
    with pytest.raises(ParamsError, match="a UTC day"):
        check_period("day", "2026-W47")
    with pytest.raises(ParamsError, match="an ISO week"):
        check_period("week", "2026-11-16")


def test_a_time_of_day_never_becomes_a_period() -> None:
    with pytest.raises(ParamsError, match="must be a datetime"):
        period_of("day", datetime(2026, 11, 16, 12))
    with pytest.raises(ParamsError, match="must be one of day, week; got 'month'"):
        period_of("month", date(2026, 11, 16))


def test_periods_are_counted_from_one_day_to_another() -> None:
    first = date(2026, 11, 16)
    for days in range(40):
        last = first + timedelta(days=days)
        every = [first + timedelta(days=number) for number in range(days + 1)]
        for kind in ("day", "week"):
            assert periods_between(kind, first, last) == len({period_of(kind, d) for d in every})
    assert periods_between("week", date(2026, 11, 22), date(2026, 11, 23)) == 2
    assert periods_between("day", first, first - timedelta(days=1)) == 0
