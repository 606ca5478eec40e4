"""A real Chromium against a real dashboard: one of each for all tests of a process.

Whatever a page must never do fails the test that made it: a violation of the content policy, an
error on the console, a request to another machine.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rappor.dashboard.access.roles import Role
from support.dashboard import Dashboard, Sample, sample_folder, serving

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

Open = Callable[..., "Tab"]


def chromium() -> str | None:
    """The installed browser; CHROMIUM names another one. None is ever downloaded."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium, or a skip that says why."""
    path = chromium()
    if path is None:
        pytest.skip(f"browser tests need one of {', '.join(BROWSERS)}, or CHROMIUM=PATH: none here")
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
def dashboard(sample: Sample) -> Iterator[Dashboard]:
    """A dashboard of the sample data."""
    with serving(sample) as running:
        yield running


_SESSIONS: dict[tuple[str, Role], dict] = {}


def logged_in(browser, dashboard: Dashboard, role: Role) -> dict:
    """The cookies of a session, begun once for each dashboard and role."""
    if (dashboard.url, role) not in _SESSIONS:
        context = browser.new_context()
        page = context.new_page()
        page.goto(dashboard.link(role))
        page.get_by_role("button", name="Log in as").click()
        page.wait_for_url(f"{dashboard.url}/")
        _SESSIONS[dashboard.url, role] = context.storage_state()
        context.close()
    return _SESSIONS[dashboard.url, role]


class Tab:
    """A page of the browser that writes down what must not happen."""

    def __init__(self, browser, dashboard: Dashboard, role: Role | None, **options) -> None:
        self.dashboard = dashboard
        known = {} if role is None else {"storage_state": logged_in(browser, dashboard, role)}
        self.context = browser.new_context(
            **{"viewport": WIDE, "reduced_motion": "reduce"} | known | options
        )
        self.problems: list[str] = []
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("request", self._request)
        self.page.on("dialog", self._dialog)
        self.confirms = False  # whether a question of ours is expected, and answered with yes
        if role is not None:
            self.page.goto(f"{dashboard.url}/")

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

    def goto(self, path: str):
        """Open a page of the dashboard; its response."""
        return self.page.goto(f"{self.dashboard.url}{path}")

    def drawn(self, count: int = 1) -> None:
        """Wait until so many charts are drawn."""
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

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes']][:3]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]


@pytest.fixture
def open_as(browser, dashboard: Dashboard) -> Iterator[Open]:
    """open_as(Role.ANALYST, **context options): a tab that is logged in; None: logged out.

    `at=another dashboard` opens that one. At the end of the test no tab may have a problem.
    """
    tabs: list[Tab] = []

    def open_tab(role: Role | None, *, at: Dashboard = dashboard, **options) -> Tab:
        tabs.append(Tab(browser, at, role, **options))
        return tabs[-1]

    yield open_tab
    problems = [problem for tab in tabs for problem in tab.problems]
    for tab in tabs:
        tab.context.close()
    assert problems == []


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


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> tuple[str, dict]:
    """(name, context options) of light, dark and phone: for screenshots."""
    return request.param, LOOKS[request.param]
