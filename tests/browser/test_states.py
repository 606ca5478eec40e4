"""Every state that a decode can be in, on every page that decodes: each has its own screenshot."""

import itertools
import os
import re
import signal

import pytest

from rappor.dashboard.auth.roles import Role
from support.dashboard import (
    HIJACKER,
    INSTALLS,
    PAGES,
    RARE,
    sample_folder,
    serving,
    tuple_of_installs,
    week,
)

HOME = "/collections/homepage"
PATHS = {
    "results": HOME,
    "trends": f"{HOME}/trends",
    "diagnostics": f"{HOME}/diagnostics",
    "associations": "/collections/install/associations",
}
LONG = 100_000  # candidates: such a decode can be stopped in the middle
LONG_TUPLE = 1_000  # homepages of a joint table


@pytest.mark.long
def test_a_decode_that_waits_can_be_cancelled_and_one_whose_worker_is_killed_tried_again(analyst):
    """The worker is stopped before it is given work: one view waits for it, one for its turn."""
    page = analyst.page
    worker = analyst.stop_worker(f"{HOME}?alpha=0.013")
    analyst.goto(f"{HOME}?alpha=0.014")
    analyst.until("loading")
    analyst.goto(f"{HOME}?alpha=0.015")
    analyst.until("loading")
    page.get_by_role("button", name="Cancel").click()
    analyst.until("cancelled")
    assert "There is no earlier result." in page.locator("#state .box").inner_text()
    analyst.goto(f"{HOME}?alpha=0.014")
    analyst.until("loading")
    os.kill(worker, signal.SIGKILL)
    analyst.until("error")
    said = page.locator("#state .box").inner_text()
    assert "it was killed, perhaps because memory ran out." in said
    page.get_by_role("button", name="Try again").click()
    analyst.until("ready")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A dashboard whose data and worker a test may disturb; version 2 of its list is a long one."""
    sample = sample_folder(tmp_path_factory.mktemp("disturbed"))
    install = tuple_of_installs(k=256, m=32)
    sample.define(install)
    sample.add(install, week(0), INSTALLS, 200_000)
    sample.store()
    sample.candidates("install", PAGES[:6])
    with serving(sample) as running:
        more = [f"site{number}.example" for number in range(LONG_TUPLE)]
        running.state.save_candidates("install", more, "test")
        running.state.save_candidates("install", PAGES[:6], "test")
        short = [*PAGES, HIJACKER, *RARE]
        more = [f"site{number}.example" for number in range(LONG - len(short))]
        running.state.save_candidates("homepage", [*short, *more], "test")
        running.state.save_candidates("homepage", short, "test")
        yield running


@pytest.fixture(params=PATHS)
def where(request):
    """(name, path) of each page that decodes."""
    return request.param, PATHS[request.param]


_NUMBERS = itertools.count(1)  # for views that nobody has decoded yet


def held(tab, path):
    """Open a view whose decode takes long, and stop the worker in the middle of it."""
    for _ in range(20):
        number = next(_NUMBERS)
        worker = tab.stop_worker(f"{HOME}?alpha=0.012{number:03}")
        tab.goto(f"{path}?alpha=0.011{number:03}&candidates=2&anyway=1")
        page = tab.until("loading")
        job = (
            f"{tab.dashboard.url}/jobs/{page.locator('[data-job]').get_attribute('data-job')}.json"
        )
        os.kill(worker, signal.SIGCONT)
        tab.wait_for(lambda job=job: is_under_way(looked_up(tab, job)))
        os.kill(worker, signal.SIGSTOP)
        if looked_up(tab, job)["state"] == "running":
            page.wait_for_function(SHOWS_PROGRESS)
            return page
        os.kill(worker, signal.SIGCONT)  # it ended before it could be stopped: once more
    raise AssertionError("no decode could be stopped in the middle")


# A fit of a joint table does not say how far it is.
SHOWS_PROGRESS = """() => document.querySelector("#state progress").value > 0
  || document.querySelector("[data-doing]").textContent.startsWith("fitting the table")"""


def is_under_way(job):
    return job["share"] or job["doing"].startswith("fitting the table")


def looked_up(tab, job):
    """A job as it is now; the share of one that is over counts as 1."""
    found = tab.context.request.get(job).json()
    return found if found["state"] in ("waiting", "running") else found | {"share": 1}


@pytest.mark.long
def test_loading_shows_how_far_it_is_and_cancel_stops_at_once(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    page = held(tab, path)
    title = {
        "results": "Decoding 100,000 candidates",
        "trends": "Decoding 8 periods",
        "associations": "Associating homepage and channel",
    }
    heading = page.get_by_role("heading", name=title.get(name, "Checking the fit"))
    assert heading.is_visible()
    doing = page.locator("[data-doing]").inner_text()
    assert re.fullmatch(r"(\d+\u00a0%, .+|fitting the table), \d+\u00a0s", doing)
    assert page.locator("#state").get_attribute("aria-live") == "polite"
    tab.screenshot(f"{name}-state-loading")
    assert tab.violations() == []
    other = open_as(Role.VIEWER, at=own)
    assert other.goto(path).status == 200  # pages stay usable: the worker is still stopped
    page.get_by_role("button", name="Cancel").click()
    tab.until("cancelled")  # although a process that is stopped ends by nothing but a kill
    box = page.locator("#state .box")
    said = r"Cancelled" if name == "associations" else r"Cancelled at \d+\u00a0%"
    assert re.fullmatch(said, box.locator("h2").inner_text())
    assert "There is no earlier result." in box.inner_text()
    assert box.get_by_role("button", name="Start again").is_visible()
    tab.screenshot(f"{name}-state-cancelled")
    assert tab.violations() == []


@pytest.mark.long
def test_a_killed_worker_is_an_error_that_trying_again_mends(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    page = held(tab, path)
    os.kill(tab.worker(), signal.SIGKILL)
    tab.until("error")
    said = page.locator("#state .box").inner_text()
    assert "This decode stopped" in said
    assert "it was killed, perhaps because memory ran out." in said
    assert "Nothing changed" in said
    tab.screenshot(f"{name}-state-error")
    assert tab.violations() == []
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#state:is([data-state=loading], [data-state=ready])", state="attached")
    tab.page.evaluate(  # it works again; this decode is long, and nobody waits for it
        """() => document.querySelector("[data-job] form")?.requestSubmit()"""
    )


@pytest.mark.long
def test_new_reports_make_a_result_stale_until_it_is_decoded_again(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    page = tab.ready(path)
    seen = {
        "results": "#summary",
        "trends": "section[aria-label^=Periods] tbody tr >> nth=0",
        "associations": "section[aria-label='Joint shares'] .note",
    }
    shown = page.locator(seen.get(name, "section[aria-label=Verdicts] .note"))
    before = shown.inner_text()
    homepage = own.sample.collections["homepage-1"]
    own.sample.add(homepage, week(0), {HIJACKER: 1.0}, 3210, [("country", "NZ")], seed=9)
    own.sample.add(own.sample.collections["install-1"], week(0), INSTALLS, 3210, seed=9)
    own.sample.store()
    tab.reload_until("stale")  # a dashboard looks at its store now and then
    said = page.locator("#state .box").inner_text()
    assert "Out of date" in said
    assert "ago; 3,210 reports since." in said
    assert shown.inner_text() == before  # the old result stays below
    tab.screenshot(f"{name}-state-stale")
    page.get_by_role("button", name="Decode again").click()
    tab.until("ready")
    assert shown.inner_text() != before
