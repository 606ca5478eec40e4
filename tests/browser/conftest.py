"""A real Chromium against real dashboards: one browser and two dashboards for all tests.

`dashboard` serves the sample data, which no test changes. `other` serves what attacks, what is
faulty, and lists that tests change. Whatever a page must never do fails the test that made it: a
violation of the content policy, an error on the console, a request to another machine.

A test waits for conditions, never for moments. PATIENCE ends a test that hangs; it is no budget.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.mechanism import Field
from rappor.simulate import counts as simulated_counts
from rappor.simulate import tuples
from rappor.store import CellKey
from support.chromium import NEEDED, chromium
from support.collecting import Process, collector, write_collections
from support.dashboard import (
    INSTALLS,
    NEXT_YEAR,
    PAGES,
    RARE,
    STRINGS,
    Dashboard,
    Sample,
    collections,
    sample_folder,
    serving,
    truth,
    tuple_of_installs,
    week,
)
from support.payloads import EXPRESSIONS, LISTED, PAYLOADS

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE = 120_000  # milliseconds
DRAWN = """() => [...document.querySelectorAll("figure[data-chart], figure[data-cells]")]
  .every((figure) => figure.dataset.drawn)"""

Open = Callable[..., "Tab"]
Read = Callable[[str], "Tab"]


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium, or a skip that says why."""
    path = chromium()
    if path is None:
        pytest.skip(f"browser tests need {NEEDED}: none here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The sample data folder; tests that change it make their own."""
    return sample_folder(tmp_path_factory.mktemp("dashboard"))


@pytest.fixture(scope="session")
def collecting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A collector, of a folder of its own."""
    folder = tmp_path_factory.mktemp("collecting")
    write_collections(folder)
    with collector(folder) as process:
        yield process


@pytest.fixture(scope="session")
def dashboard(sample: Sample, collecting: Process) -> Iterator[Dashboard]:
    """A dashboard of the sample data, which watches the collector."""
    with serving(sample, "--collector", f"http://127.0.0.1:{collecting.port}") as running:
        yield running


@pytest.fixture(scope="session")
def installs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a collection of kind tuple."""
    sample = Sample(tmp_path_factory.mktemp("installs"))
    install = tuple_of_installs()
    sample.define(install)
    for back in (2, 1):
        sample.add(install, week(back), INSTALLS, 200_000, seed=back)
    sample.store()
    sample.candidates("install", PAGES[:6])
    with serving(sample) as running:
        yield running


# Values of a dimension that look like something else.
ODD = ("javascript:fire(1)", "a/../b", "1+1")


def hostile_folder(folder: Path) -> Sample:
    """DATA whose every text attacks or breaks something, and a collection whose list may change.

    - homepage: lists of candidates are changed here;
    - strings, groups: payloads as detected candidates, as categories; odd values of dimensions;
    - pairs: a tuple, of whose fields both hold payloads;
    - expressions: strings that the chart library could take for its expressions;
    - wide: a cohort that lost a third, a frequent string that is on no list; many cells;
    - c00 to c59: payloads as owners and descriptions; and files that hold no collection.
    """
    sample = Sample(folder)
    common = {"period": "week", "owner": "<b>owner", "expires": NEXT_YEAR}
    home = collections()[0]
    sample.define(home)
    weights = truth(7) | {"elsewhere.example": 0.5, LISTED[0]: 0.6, LISTED[6]: 0.4}
    sample.add(home, week(0), weights, 60_000, [("country", "DE")], seed=9)
    sample.candidates("homepage", [*PAGES, *RARE])

    dimensions = {"from": ODD, "q": ("x",)}
    strings = Collection("strings", 1, STRINGS, dimensions=dimensions, **common)
    one_hash = replace(STRINGS, h=1, m=1)
    groups = Collection(
        "groups", 1, one_hash, kind="category", categories=tuple(PAYLOADS), **common
    )
    weights = dict.fromkeys(PAYLOADS, 0.1) | dict.fromkeys(PAYLOADS[:6], 3.0)
    for collection in (strings, groups):
        sample.define(collection)
        pairs = [("from", ODD[0]), ("q", "x")] if collection.dimensions else []
        for back in (0, 1):
            sample.add(collection, week(back), weights, 300_000, pairs, seed=5 + back)

    fields = Field("word", "string"), Field("group", "category", categories=tuple(PAYLOADS[1::2]))
    params = Params(128, 1, 16, 0.2, 0.2, 0.6)
    pairs = Collection("pairs", 1, params, kind="tuple", fields=fields, **common)
    sample.define(pairs)
    joint = dict.fromkeys(product(PAYLOADS[::2], PAYLOADS[1::2]), 1.0)
    joint |= dict.fromkeys(zip(PAYLOADS[::2], PAYLOADS[1::2], strict=False), 100.0)
    sample.add(pairs, week(0), tuples(fields, joint), 300_000, seed=7)

    drawn = Collection("expressions", 1, STRINGS, **common)
    sample.define(drawn)
    for back in range(3):
        sample.add(drawn, week(back), dict.fromkeys(EXPRESSIONS, 1.0), 60_000, seed=back + 1)

    params = Params(k=512, h=2, m=64, f=0.25, p=0.35, q=0.65)
    wide = Collection("wide", 1, params, **common)
    sample.define(wide)
    sizes = np.full(64, 3_000)
    sizes[7] = 2_000
    weights = {"google.com": 3, "missing.example": 3, **dict.fromkeys(PAGES[1:], 1)}
    counted = simulated_counts(weights, params, int(sizes.sum()), seed=3, cohort_sizes=sizes)
    sample.cells.append((CellKey.of("wide", 1, week(0), ()), counted))
    sample.candidates("wide", [*PAGES, *RARE])

    for number, text in enumerate(PAYLOADS):
        sample.define(
            Collection(f"c{number:02}", 1, STRINGS, owner=text, description=text, expires=NEXT_YEAR)
        )
    sample.store()
    for number, text in enumerate(PAYLOADS):
        name = text.replace("/", "_").replace("\0", "")[:60]
        (sample.definitions / f"{name}{number}.toml").write_text(f"name = '''{text}'''")
    return sample


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of hostile texts, faults, and a collection whose list tests change."""
    with serving(hostile_folder(tmp_path_factory.mktemp("hostile"))) as running:
        running.state.save_candidates("strings", PAYLOADS, "test")
        running.state.save_candidates("pairs", PAYLOADS[::2], "test")
        running.state.save_candidates("expressions", EXPRESSIONS, "test")
        for text in PAYLOADS:
            running.state.audit(text, text, text)
        yield running


_SESSIONS: dict[tuple[str, Role], dict] = {}


def logged_in(dashboard: Dashboard, role: Role) -> dict:
    """The cookies of a session, begun once for each dashboard and role."""
    if (dashboard.url, role) not in _SESSIONS:
        common = {"domain": "127.0.0.1", "path": "/", "httpOnly": True, "sameSite": "Strict"}
        cookies = [
            {"name": name, "value": value, "expires": -1, "secure": False} | common
            for name, value in dashboard.browser(role).cookies.items()
        ]
        _SESSIONS[dashboard.url, role] = {"cookies": cookies, "origins": []}
    return _SESSIONS[dashboard.url, role]


class Tab:
    """A page of the browser that writes down what must not happen."""

    def __init__(self, browser, dashboard: Dashboard, role: Role | None, **options) -> None:
        self.dashboard = dashboard
        known = {} if role is None else {"storage_state": logged_in(dashboard, role)}
        self.context = browser.new_context(
            **{"viewport": WIDE, "reduced_motion": "reduce"} | known | options
        )
        self.context.set_default_timeout(PATIENCE)
        self.problems: list[str] = []
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("request", self._request)
        self.page.on("dialog", self._dialog)
        self.confirms = False  # whether a question of ours is expected, and answered with yes

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            expected = "Failed to load resource" in message.text and "status of 4" in message.text
            if not expected:
                self.problems.append(f"console: {message.text}")

    def _request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.problems.append(f"request: {request.url}")

    def _dialog(self, dialog) -> None:
        if self.confirms and dialog.type == "confirm":
            dialog.accept()
        else:
            self.problems.append(f"dialog: {dialog.message}")
            dialog.dismiss()

    def take_problems(self) -> list[str]:
        """What must not have happened since the last call: each problem fails one test."""
        taken, self.problems = self.problems, []
        return taken

    def goto(self, path: str):
        """Open a page of the dashboard; its response."""
        return self.page.goto(f"{self.dashboard.url}{path}")

    def until(self, state: str, charts: int = 0):
        """Wait until a decode is in this state, and that many charts are drawn; the page."""
        self.page.wait_for_selector(f"#state[data-state='{state}']", state="attached")
        self.page.wait_for_load_state("load")  # its scripts listen to keys and clicks by now
        if charts:
            self.drawn(charts)
        return self.page

    def ready(self, path: str, charts: int = 0):
        """Open a view and wait until it is decoded, and that many charts are drawn; the page."""
        self.goto(path)
        return self.until("ready", charts)

    def whole(self, path: str):
        """Open any page and wait until all of it is there: decoded and drawn; the page."""
        self.goto(path)
        self.settle()
        if self.page.locator("#state[data-state]").count() and not path.endswith("candidates"):
            self.until("ready")
        self.page.wait_for_function(DRAWN)
        return self.page

    def worker(self) -> int:
        """The process id of the dashboard's worker: the child that is spawned to decode."""
        parent = self.dashboard.process.process.pid
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

    def stop_worker(self, path: str) -> int:
        """Stop the worker, so that no decode gets on; its process id.

        It is there after a decode: `path` is the address of a view that is decoded first.
        """
        self.ready(path)
        number = self.worker()
        os.kill(number, signal.SIGSTOP)
        return number

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait for something that happens outside of the page, or in its event handlers."""
        ends = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < ends, "waited in vain"
            self.page.wait_for_timeout(20)

    def settle(self) -> None:
        """Wait until no decode is under way: until then a page may load itself again."""
        self.page.wait_for_function("() => !document.querySelector('#state[data-state=loading]')")

    def reload_until(self, state: str) -> None:
        """Load a page that has no decode under way until it is in this state."""
        ends = time.monotonic() + PATIENCE / 1000
        while not self.page.locator(f"#state[data-state='{state}']").count():
            assert time.monotonic() < ends, f"not {state}"
            self.page.reload()

    def drawn(self, count: int = 1) -> None:
        """Wait until that many charts are drawn."""
        self.page.wait_for_function(
            "count => document.querySelectorAll('figure[data-drawn]').length >= count", arg=count
        )
        failed = self.page.locator("figure[data-drawn=failed]").count()
        assert failed == 0, "a chart could not be drawn"

    def screenshot(self, name: str) -> None:
        """Keep a picture of the whole page in build/screenshots."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def sideways(self) -> int:
        """How many pixels the page itself scrolls to the side: 0 on a sound one."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def violations(self) -> list[str]:
        """What axe finds, of serious or critical impact."""
        from axe_playwright_python.sync_playwright import Axe

        options = {"resultTypes": ["violations"]}  # nothing else is worked out in full
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes']][:3]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]


@pytest.fixture
def open_as(browser, dashboard: Dashboard) -> Iterator[Open]:
    """open_as(Role.ANALYST, **context options): an empty tab, logged in; None: logged out.

    `at=other` is a tab of that dashboard. At the end of the test no tab may have a problem.
    """
    tabs: list[Tab] = []

    def open_tab(role: Role | None, *, at: Dashboard = dashboard, **options) -> Tab:
        tabs.append(Tab(browser, at, role, **options))
        return tabs[-1]

    yield open_tab
    problems = [problem for tab in tabs for problem in tab.take_problems()]
    for tab in tabs:
        tab.context.close()
    assert problems == []


_READ: dict[tuple[str, str], Tab] = {}


@pytest.fixture
def read(browser, dashboard: Dashboard) -> Iterator[Read]:
    """read(path): an analyst's tab with a page decoded and drawn, for tests that only read it.

    It is opened once for all of them. At the end of the test it may have no problem.
    """
    tabs: list[Tab] = []

    def open_once(path: str) -> Tab:
        key = (dashboard.url, path)
        if key not in _READ:
            _READ[key] = Tab(browser, dashboard, Role.ANALYST)
            _READ[key].whole(path)
        tabs.append(_READ[key])
        return tabs[-1]

    yield open_once
    problems = [problem for tab in tabs for problem in tab.take_problems()]
    moved = [key for key, tab in _READ.items() if urlsplit(tab.page.url).path != key[1]]
    for key in moved:  # the next test opens the page again
        _READ.pop(key).context.close()
    assert problems == []
    assert moved == []


@pytest.fixture
def analyst(open_as: Open) -> Tab:
    return open_as(Role.ANALYST)


@pytest.fixture
def viewer(open_as: Open) -> Tab:
    return open_as(Role.VIEWER)


@pytest.fixture
def operator(open_as: Open) -> Tab:
    return open_as(Role.OPERATOR)


@pytest.fixture
def officer(open_as: Open) -> Tab:
    return open_as(Role.OFFICER)


LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "viewport": PHONE, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.long) for name in LOOKS])
def look(request: pytest.FixtureRequest) -> tuple[str, dict]:
    """(name, context options) of light, dark and phone: for screenshots."""
    return request.param, LOOKS[request.param]
