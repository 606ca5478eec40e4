"""Decoding ahead: the first page has numbers, and nobody who asks for something waits for it."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from rappor.dashboard import prefetch as module
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.collections.overview import rows_of
from rappor.dashboard.context import Desk
from rappor.dashboard.jobs.job import DONE
from rappor.dashboard.page_query import View
from rappor.dashboard.prefetch import ACTOR, PATIENCE, SWITCH, Ahead, wanted
from rappor.dashboard.snapshot import Entry, PeriodCount
from support.dashboard_desk import Browser, made_desk, until_over
from support.waiting import wait_for

DECODED = ["browser", "homepage", "start-time"]
DECODED_OR_NOT = ["browser", "extensions", "homepage", "start-time"]  # one has too few reports


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with made_desk(tmp_path) as made:
        yield made


def all_begun(desk: Desk, ahead: Ahead) -> list[str]:
    """What one look starts, each waited for."""
    found = []
    for name in ahead.due():
        job = ahead.begin(name)
        if job is not None:
            ended = until_over(desk.jobs, job)
            assert ended.state == DONE
            assert ended.actor == ACTOR
            found.append(name)
    return found


@pytest.mark.slow
def test_what_can_be_decoded_is_decoded_once_it_rests(desk: Desk) -> None:
    """Not what is empty, has too few reports or has expired; and nothing twice."""
    ahead = Ahead(desk)
    assert ahead.due() == []  # whether reports still come is not known at the first look
    assert all_begun(desk, ahead) == DECODED
    assert all_begun(desk, ahead) == []
    catalogue = desk.catalogue
    rows = rows_of(catalogue.collections(), desk.state.latest_metas(), catalogue.today())
    found = {row.collection.name: row.decode for row in rows if row.decode}
    assert sorted(found) == DECODED
    assert found["homepage"].detected > 5
    assert found["homepage"].unlisted is not None
    assert found["start-time"].unlisted is None  # numbers are on no list


@pytest.mark.slow
def test_the_page_shows_what_was_decoded_ahead_to_those_who_may_not_decode(desk: Desk) -> None:
    ahead = Ahead(desk)
    ahead.due()
    all_begun(desk, ahead)
    viewer = Browser(desk)
    viewer.log_in(Role.VIEWER)
    assert 'data-state="ready"' in viewer.get("/collections/homepage").text


def growing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the homepage's newest period has a report more at every look."""
    entry, number = desk.catalogue.entry("homepage"), count()

    def entries() -> list[Entry]:
        newest = entry.periods[-1]
        more = PeriodCount(newest.period, newest.reports + next(number))
        return [replace(entry, periods=(*entry.periods[:-1], more))]

    monkeypatch.setattr(desk.catalogue, "collections", entries)


def test_reports_that_keep_coming_are_waited_for_but_not_for_ever(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing(desk, monkeypatch)
    ahead = Ahead(desk)
    seen = [ahead.due() for _ in range(PATIENCE + 2)]
    assert seen == [[]] * PATIENCE + [["homepage"]] * 2


def test_a_job_at_work_is_not_disturbed(desk: Desk) -> None:
    ahead = Ahead(desk)
    ahead.due()
    go = threading.Event()

    def held() -> dict[str, object]:
        assert go.wait(300)
        return {}

    desk.jobs.start("nothing", held, "other")
    assert ahead.due() == DECODED_OR_NOT
    assert ahead.begin("homepage") is None
    assert len(desk.jobs.all()) == 1
    go.set()


def test_what_was_cancelled_or_failed_is_left_alone(desk: Desk) -> None:
    view = View.of({}, desk.catalogue, desk.state, "homepage")
    job = desk.jobs.start("decode", {"data": "/nowhere"}, view.key)
    until_over(desk.jobs, job)
    ahead = Ahead(desk)
    ahead.due()
    assert "homepage" in ahead.due()
    assert ahead.begin("homepage") is None


@pytest.mark.parametrize(("value", "on"), [("", True), ("off", False), ("0", False), ("yes", True)])
def test_the_environment_turns_it_off(
    monkeypatch: pytest.MonkeyPatch, value: str, on: bool
) -> None:
    monkeypatch.setenv(SWITCH, value)
    assert wanted() is on


@pytest.mark.slow
def test_the_thread_decodes_and_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.02)
    ahead = Ahead(desk)
    ahead.start()
    thread = next(each for each in threading.enumerate() if each.name == "ahead")

    def done() -> list[str]:
        return sorted(job.collection for job in desk.jobs.all() if job.state == DONE)

    try:
        wait_for(lambda: done() == DECODED)
    finally:
        ahead.close()
        thread.join(300)
    assert not thread.is_alive()
