"""The date that retention goes by, and what is said at the start."""

import datetime
import json

import pytest

from rappor import Params
from rappor.collection import Collection, Registry
from rappor.collector import log, process
from rappor.collector.calendar import Calendar

MONDAY = datetime.date(2026, 11, 16)


@pytest.mark.parametrize(
    ("hours", "days", "leaps"),
    [(0, 2, False), (0, 3, True), (24, 3, False), (24 * 30, 30, False), (24 * 30, 33, True)],
)
def test_a_date_may_be_two_days_ahead_of_the_time_that_passed(hours, days, leaps):
    clock = iter([1000.0, 1000.0 + 3600 * hours])
    calendar = Calendar(MONDAY, lambda: next(clock))
    assert calendar.leaps(MONDAY + datetime.timedelta(days=days)) is leaps


def test_a_clock_that_is_set_back_is_no_leap():
    assert not Calendar(MONDAY).leaps(MONDAY - datetime.timedelta(days=400))


def test_what_lint_calls_an_error_is_logged_at_the_start(capsys):
    log.set_up("info")
    bad = Collection("homepage", 1, Params.preset("windows"))
    process.warn_of(Registry([bad]), MONDAY)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["event"] for line in lines} == {"lint"}
    assert {line["level"] for line in lines} == {"warning"}
    assert "no-expiry" in {line["code"] for line in lines}


def test_an_empty_folder_of_collections_is_said(capsys):
    log.set_up("info")
    process.warn_of(Registry([]), MONDAY)
    assert json.loads(capsys.readouterr().err)["event"] == "no-collections"
