"""Prefetching: the first page has numbers, and no visitor waits for a prefetched job."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from rappor.dashboard import prefetch as module
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.collections.overview import rows_of
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import DONE
from rappor.dashboard.prefetch import ACTOR, PATIENCE, SWITCH, Prefetcher, is_enabled
from rappor.dashboard.query_reading import read_query
from rappor.dashboard.snapshot import Entry, PeriodCount
from support.dashboard import sample_folder, week
from support.dashboard_context import Browser, made_context, until_over
from support.waiting import wait_for

DECODED = ["browser", "homepage", "start-time"]
DECODED_OR_NOT = ["browser", "extensions", "homepage", "start-time"]  # one has too few reports


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with made_context(tmp_path) as made:
        yield made


def all_begun(context: Context, prefetcher: Prefetcher) -> list[str]:
    """What one look starts, each waited for."""
    found = []
    for name in prefetcher.due():
        job = prefetcher.begin(name)
        if job is not None:
            ended = until_over(context.jobs, job)
            assert ended.state == DONE
            assert ended.actor == ACTOR
            found.append(name)
    return found


@pytest.mark.slow
def test_what_can_be_decoded_is_decoded_once_it_rests(context: Context) -> None:
    """Not what is empty, has too few reports or has expired; and nothing twice."""
    prefetcher = Prefetcher(context)
    assert prefetcher.due() == []  # whether reports still come is not known at the first look
    assert all_begun(context, prefetcher) == DECODED
    assert all_begun(context, prefetcher) == []
    catalogue = context.catalogue
    rows = rows_of(catalogue.collections(), context.state.latest_metas(), catalogue.today())
    found = {row.collection.name: row.decode for row in rows if row.decode}
    assert sorted(found) == DECODED
    assert found["homepage"].detected > 5
    assert found["homepage"].undetected_mass is not None
    assert found["start-time"].undetected_mass is None  # numbers are on no list


@pytest.mark.slow
def test_the_page_shows_what_was_decoded_ahead_to_those_who_may_not_decode(
    context: Context,
) -> None:
    prefetcher = Prefetcher(context)
    prefetcher.due()
    all_begun(context, prefetcher)
    viewer = Browser(context)
    viewer.log_in(Role.VIEWER)
    assert 'data-state="ready"' in viewer.get("/collections/homepage").text


def growing(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the homepage's newest period has a report more at every look."""
    entry, number = context.catalogue.entry("homepage"), count()

    def entries() -> list[Entry]:
        newest = entry.periods[-1]
        more = PeriodCount(newest.period, newest.reports + next(number))
        return [replace(entry, periods=(*entry.periods[:-1], more))]

    monkeypatch.setattr(context.catalogue, "collections", entries)


def test_reports_that_keep_coming_are_waited_for_but_not_for_ever(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing(context, monkeypatch)
    prefetcher = Prefetcher(context)
    seen = [prefetcher.due() for _ in range(PATIENCE + 2)]
    assert seen == [[]] * PATIENCE + [["homepage"]] * 2


def test_a_job_at_work_is_not_disturbed(context: Context) -> None:
    prefetcher = Prefetcher(context)
    prefetcher.due()
    go = threading.Event()

    def held() -> dict[str, object]:
        assert go.wait(300)
        return {}

    context.jobs.start("nothing", held, "other")
    assert prefetcher.due() == DECODED_OR_NOT
    assert prefetcher.begin("homepage") is None
    assert len(context.jobs.all()) == 1
    go.set()


def test_what_was_cancelled_or_failed_is_left_alone(context: Context) -> None:
    view = read_query({}, context.catalogue, context.state, "homepage")
    job = context.jobs.start("decode", {"data": "/nowhere"}, view.key)
    until_over(context.jobs, job)
    prefetcher = Prefetcher(context)
    prefetcher.due()
    assert "homepage" in prefetcher.due()
    assert prefetcher.begin("homepage") is None


@pytest.mark.parametrize(("value", "on"), [("", True), ("off", False), ("0", False), ("yes", True)])
def test_the_environment_turns_it_off(
    monkeypatch: pytest.MonkeyPatch, value: str, on: bool
) -> None:
    monkeypatch.setenv(SWITCH, value)
    assert is_enabled() is on


@pytest.mark.slow
def test_the_thread_decodes_and_ends(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.02)
    prefetcher = Prefetcher(context)
    prefetcher.start()
    thread = next(each for each in threading.enumerate() if each.name == "prefetch")

    def done() -> list[str]:
        return sorted(job.collection for job in context.jobs.all() if job.state == DONE)

    try:
        wait_for(lambda: done() == DECODED)
    finally:
        prefetcher.close()
        thread.join(300)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_period_that_got_more_reports_is_decoded_again_when_none_came_for_a_while(
    tmp_path: Path,
) -> None:
    """Else the first page of the demo would show what had arrived when senders paused."""
    sample = sample_folder(tmp_path)
    with made_context(tmp_path, sample=sample) as context:
        prefetcher = Prefetcher(context)
        prefetcher.due()
        assert all_begun(context, prefetcher) == DECODED
        collection = context.catalogue.get("browser")
        sample.add(collection, week(0), {"Chromium": 1.0}, 5_000, [])
        sample.store()
        before = context.catalogue.entry("browser").reports
        assert prefetcher.due() == []  # they may still arrive
        looks = 0
        while all_begun(context, prefetcher) != ["browser"]:
            looks += 1
            assert looks < 10
        assert (looks + 1) * module.TICK_SECONDS >= module.REST_SECONDS
        meta = context.state.latest_metas()["browser"]
        assert meta["reports"] == before
        assert all_begun(context, prefetcher) == []
