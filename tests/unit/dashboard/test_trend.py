"""Trends: every number is that of decoding a period, and what is known is not decoded again."""

import datetime
import math

import numpy as np
import pytest

from rappor import Params
from rappor.charts.trends import TrendLine, TrendPoint
from rappor.collection import Collection
from rappor.collection.definition import Phase
from rappor.dashboard.jobs import tasks
from rappor.dashboard.trends import period_results as kept
from rappor.dashboard.trends.trend import StoredPeriod, axis_of, headline, marks_of, stored_periods
from rappor.decoding.decode import decode
from rappor.simulate import counts as simulated
from rappor.store import CellKey
from support.dashboard import Sample

PARAMS = Params(64, 2, 8, 0.5, 0.25, 0.75)
NAMES = [f"v{i:02}" for i in range(30)]
PERIODS = ["2026-W40", "2026-W41", "2026-W42", "2026-W43"]


def population(number):
    shares = dict(zip(NAMES, (0.8 ** np.arange(10)).tolist(), strict=False))
    return shares | {"v20": 2.0 if number == 3 else 1e-9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    sample = Sample(tmp_path_factory.mktemp("trend"))
    sample.define(Collection("homepage", 1, PARAMS, period="week"))
    for number, period in enumerate(PERIODS):
        made = simulated(population(number), PARAMS, 60_000, seed=number)
        sample.cells.append((CellKey.of("homepage", 1, period, ()), made))
    sample.store()
    return sample.data


def arguments(folder, periods=PERIODS, known=None, strings=NAMES, **more):
    return {
        "data": str(folder),
        "collection": "homepage",
        "spans": [[period, 1] for period in periods],
        "dimensions": [],
        "list": 1,
        "list_digest": "a",
        "strings": list(strings),
        "correction": "fdr",
        "alpha": 0.05,
        "method": "auto",
        "known": known,
    } | more


class Told(list):
    """Progress, written down."""

    def __call__(self, text, share=None):
        self.append((text, share))


@pytest.mark.slow
def test_each_period_has_the_numbers_of_its_own_decoding(folder):
    told = Told()
    result = tasks.trend(arguments(folder), told)
    found = kept.unpack(*result)
    assert list(found) == PERIODS
    for number, period in enumerate(PERIODS):
        made = simulated(population(number), PARAMS, 60_000, seed=number)
        expected = decode(made, NAMES)
        mass = expected.undetected_mass
        assert found[period].undetected_mass == (
            mass.proportion,
            mass.prop_low_95,
            mass.prop_high_95,
        )
        assert found[period].reports == 60_000
        assert found[period].detected == len(expected.detected)
        assert len(found[period].rows) == 30
        for row in expected.rows:
            cell = found[period].rows[row.string]
            assert cell == (row.proportion, row.prop_low_95, row.prop_high_95, row.detected)
    assert told == [(f"{period}, {n + 1} of 4", n / 4) for n, period in enumerate(PERIODS)]


@pytest.mark.slow
def test_a_new_period_costs_one_decode_and_gives_the_same_result(folder, monkeypatch):
    whole = tasks.trend(arguments(folder), Told())
    first = tasks.trend(arguments(folder, PERIODS[:3]), Told())
    decoded = []
    honest = tasks._TrendTask.decode

    def counted(self, counts, version):
        decoded.append(counts)
        return honest(self, counts, version)

    monkeypatch.setattr(tasks._TrendTask, "decode", counted)
    then = tasks.trend(arguments(folder, known=first), Told())
    assert len(decoded) == 1
    assert then.meta["decoded"] == 1
    assert kept.unpack(*then) == kept.unpack(*whole)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"alpha": 0.01}, {"list_digest": "b"}, {"correction": "holm"}])
def test_another_way_of_decoding_decodes_everything_again(folder, change):
    first = tasks.trend(arguments(folder), Told())
    assert tasks.trend(arguments(folder, known=first, **change), Told()).meta["decoded"] == 4


@pytest.mark.slow
def test_a_string_detected_later_is_looked_up_in_the_periods_before(folder, monkeypatch):
    """Of a long list only the largest rows are kept; a rising string has its past all the same."""
    monkeypatch.setattr(kept, "KEEP_ALL", 5)
    monkeypatch.setattr(kept, "KEEP_LARGEST", 5)
    first = tasks.trend(arguments(folder, PERIODS[:3]), Told())
    assert all("v20" not in result.rows for result in kept.unpack(*first).values())
    then = kept.unpack(*tasks.trend(arguments(folder, known=first), Told()))
    made = simulated(population(0), PARAMS, 60_000, seed=0)
    row = decode(made, NAMES).row("v20")
    assert then[PERIODS[0]].rows["v20"].share == row.proportion
    assert then[PERIODS[3]].rows["v20"].detected


def test_periods_that_are_gone_are_left_out(folder):
    found = tasks.trend(arguments(folder, [*PERIODS, "2026-W44"]), Told())
    assert "2026-W44" not in kept.unpack(*found)


def test_lines_have_gaps_where_nothing_arrived(folder):
    found = kept.unpack(*tasks.trend(arguments(folder, [PERIODS[0], PERIODS[2]]), Told()))
    axis = axis_of("week", PERIODS[0], PERIODS[2])
    line = kept.line_of("v00", found, axis)
    assert [point.share is None for point in line.points] == [False, True, False]


def test_the_strings_to_draw_are_detected_ones_by_their_largest_share(folder):
    found = kept.unpack(*tasks.trend(arguments(folder), Told()))
    names = kept.largest(found.values())
    assert names[0] == "v20"  # 2 of 6.9 in the last period
    assert names[1] == "v00"
    assert len(names) <= 12
    best = [
        max(cell.share for each in found.values() if (cell := each.rows[name]).detected)
        for name in names
    ]
    assert best == sorted(best, reverse=True)


def test_the_headline_is_the_largest_change_that_intervals_allow(folder):
    found = kept.unpack(*tasks.trend(arguments(folder), Told()))
    lines = [kept.line_of(name, found, PERIODS) for name in kept.largest(found.values())]
    text = headline(lines)
    assert text.startswith("v20 rose from not detected to 3")
    assert text.endswith("since 2026-W40.")
    quiet = [line for line in lines if line.name == "v01"]
    assert headline([TrendLine("x", quiet[0].points[:2])]).startswith("No share changed")
    assert (
        headline([TrendLine("x", quiet[0].points[:1])]) == "One period so far: a trend needs two."
    )


def test_a_fall_is_called_one():
    points = [
        TrendPoint("2026-W01", 0.3, 0.28, 0.32, True),
        TrendPoint("2026-W02", 0.1, 0.08, 0.12, True),
    ]
    text = headline([TrendLine("a", points)]).replace("\u00a0", " ")
    assert text == "a fell from 30.0 % (28.0 – 32.0) to 10.0 % (8.0 – 12.0) since 2026-W01."


def test_a_period_of_two_versions_is_that_of_more_reports():
    spans = stored_periods({1: {"2026-W01": 9, "2026-W02": 5}, 2: {"2026-W02": 6, "2026-W03": 1}})
    assert [(span.period, span.version) for span in spans] == [
        ("2026-W01", 1),
        ("2026-W02", 2),
        ("2026-W03", 2),
    ]
    assert stored_periods({1: {"2026-W01": 0}}) == []


def test_marks_stand_where_version_list_or_schedule_changed():
    spans = [StoredPeriod(f"2026-W0{number}", 1 if number < 3 else 2, 9) for number in range(1, 6)]
    one = Collection("homepage", 1, PARAMS, period="week")
    two = Collection("homepage", 2, PARAMS, period="week", schedule=(Phase("2026-W05", 0.3, 0.7),))
    lists = [(1, datetime.date(2026, 1, 1)), (2, datetime.date(2026, 1, 13))]
    marks = marks_of(spans, {1: one, 2: two}, lists)
    assert [tuple(mark) for mark in marks] == [
        ("2026-W03", "version 2, list v2"),
        ("2026-W05", "p, q"),
    ]
    assert marks_of([], {1: one}, lists) == []


def test_a_result_of_no_reports_is_kept_without_numbers_that_json_cannot_say():
    empty = kept.PeriodResult("2026-W01", 1, "x", 0, 0, math.inf, None, {})
    result = kept.pack([empty], {"collection": "homepage"})
    assert result.meta["periods"][0]["threshold"] is None
    assert kept.unpack(*result) == {"2026-W01": empty}
