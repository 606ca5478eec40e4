"""Every state that a decode can be in, on every page that decodes: each has its own screenshot."""

import os
import re
import signal
import time

import pytest

from rappor.dashboard.access.roles import Role
from support.dashboard import HIJACKER, PAGES, RARE, sample_folder, serving, week

HOME = "/collections/homepage"
PATHS = {"results": HOME, "trends": f"{HOME}/trends", "diagnostics": f"{HOME}/diagnostics"}
LONG = 100_000  # candidates: such a decode can be stopped in the middle


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A dashboard whose data and worker a test may disturb; version 2 of its list is a long one."""
    with serving(sample_folder(tmp_path_factory.mktemp("disturbed"))) as running:
        short = [*PAGES, HIJACKER, *RARE]
        more = [f"site{number}.example" for number in range(LONG - len(short))]
        running.state.save_candidates("homepage", [*short, *more], "test")
        running.state.save_candidates("homepage", short, "test")
        yield running


@pytest.fixture(params=PATHS)
def where(request):
    """(name, path) of each page that decodes."""
    return request.param, PATHS[request.param]


def until(tab, state):
    tab.page.wait_for_selector(f"#state[data-state='{state}']", state="attached", timeout=30_000)
    return tab.page


def worker_of(dashboard):
    """The process id of the worker: the child that spawns and decodes."""
    parent = dashboard.process.process.pid
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat", encoding="ascii") as file:
                above = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{number}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue
        if above == parent and b"spawn_main" in command:
            return int(number)
    raise AssertionError("there is no worker")


def held(tab, own, path, alpha):
    """Open a view whose decode takes long, and stop the worker in the middle of it."""
    tab.goto(f"{path}?alpha={alpha}&candidates=2&anyway=1")
    page = until(tab, "loading")
    number = page.locator("[data-job]").get_attribute("data-job")
    ends = time.monotonic() + 60
    while True:
        job = tab.context.request.get(f"{own.url}/jobs/{number}.json").json()
        assert job["state"] in ("waiting", "running")
        assert time.monotonic() < ends
        if job["share"]:
            break
    os.kill(worker_of(own), signal.SIGSTOP)
    page.wait_for_function("() => document.querySelector('#state progress').value > 0")
    return page


def test_loading_shows_how_far_it_is_and_cancel_stops_at_once(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    page = held(tab, own, path, 0.011)
    title = {"results": "Decoding 100,000 candidates", "trends": "Decoding 8 periods"}
    heading = page.get_by_role("heading", name=title.get(name, "Looking over the fit"))
    assert heading.is_visible()
    assert re.fullmatch(r"\d+\u00a0%, .+, \d+\u00a0s", page.locator("[data-doing]").inner_text())
    assert page.locator("#state").get_attribute("aria-live") == "polite"
    tab.screenshot(f"{name}-state-loading")
    assert tab.violations() == []
    other = open_as(Role.VIEWER, at=own)  # pages stay usable meanwhile
    began = time.monotonic()
    assert other.goto(path).status == 200
    assert time.monotonic() - began < 2
    page.get_by_role("button", name="Cancel").click()
    until(tab, "cancelled")
    box = page.locator("#state .box")
    assert box.locator("h2").inner_text().startswith("Cancelled at ")
    assert "There is no earlier result." in box.inner_text()
    assert box.get_by_role("button", name="Start again").is_visible()
    tab.screenshot(f"{name}-state-cancelled")
    assert tab.violations() == []


def test_a_killed_worker_is_an_error_that_trying_again_mends(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    page = held(tab, own, path, 0.012)
    os.kill(worker_of(own), signal.SIGKILL)
    until(tab, "error")
    said = page.locator("#state .box").inner_text()
    assert "This decode stopped" in said
    assert "it was killed, perhaps because memory ran out." in said
    assert "Nothing changed" in said
    tab.screenshot(f"{name}-state-error")
    assert tab.violations() == []
    page.get_by_role("button", name="Try again").click()
    until(tab, "loading")
    page.get_by_role("button", name="Cancel").click()
    until(tab, "cancelled")


def test_new_reports_make_a_result_stale_until_it_is_decoded_again(open_as, own, where):
    name, path = where
    tab = open_as(Role.ANALYST, at=own)
    tab.goto(path)
    page = until(tab, "ready")
    seen = {"results": "#summary", "trends": "section[aria-label^=Periods] tbody tr >> nth=0"}
    shown = page.locator(seen.get(name, "section[aria-label=Verdicts] .note"))
    before = shown.inner_text()
    homepage = own.sample.collections["homepage-1"]
    own.sample.add(homepage, week(0), {HIJACKER: 1.0}, 3210, [("country", "NZ")], seed=9)
    own.sample.store()
    ends = (
        time.monotonic() + 30
    )  # a busy dashboard takes a moment until it looks at the store again
    while page.locator("#state").get_attribute("data-state") != "stale":
        assert time.monotonic() < ends
        tab.goto(path)
    said = page.locator("#state .box").inner_text()
    assert "Out of date" in said
    assert "ago; 3,210 reports since." in said
    assert shown.inner_text() == before  # the old result stays below
    tab.screenshot(f"{name}-state-stale")
    page.get_by_role("button", name="Decode again").click()
    until(tab, "ready")
    assert shown.inner_text() != before
