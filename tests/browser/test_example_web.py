"""examples/web in Chromium, with a real collector: consent, reports, and each bit that left."""

from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from rappor.wire import BINARY, decode_batch, to_text, unpack
from support.collecting import stored
from support.examples import WebExample, web_example

PATIENCE = 120_000  # milliseconds: ends a test that hangs
LOOKS = {
    "wide": {"viewport": {"width": 1100, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1100, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}
# What Chromium adds to every request by itself; the client adds the content type.
OF_THE_BROWSER = {
    *("accept", "accept-encoding", "accept-language", "connection", "content-length", "host"),
    *("origin", "user-agent", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"),
    *("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-storage-access"),
    *("cache-control", "pragma", "priority"),
}


@pytest.fixture(scope="module")
def example(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebExample]:
    with web_example(tmp_path_factory.mktemp("example")) as running:
        yield running


class Visit:
    """One person: a browser context, with what it sent and what must not happen."""

    def __init__(self, browser, example: WebExample, **options) -> None:
        self.example = example
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.context.set_default_timeout(PATIENCE)
        self.problems: list[str] = []
        self.uploads: list = []
        self.page = self.context.new_page()
        self.page.on("console", lambda said: self.problems.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("request", self._request)

    def _request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.port == self.example.collector.port:
            self.uploads.append(request)
        elif not request.url.startswith(self.example.url):
            self.problems.append(f"request: {request.url}")

    def start(self):
        self.page.goto(self.example.url)
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def agree(self):
        self.page.click("#yes")
        self.page.locator("#cost").wait_for()
        return self.page

    def stored(self, name: str) -> int:
        return sum(stored(self.example.folder, name).values())

    def databases(self) -> list:
        return self.page.evaluate("() => indexedDB.databases()")


@pytest.fixture
def visit(browser, example: WebExample) -> Iterator:
    """visit(**context options): a new person, who may have no problem at the end."""
    visits: list[Visit] = []

    def begin(**options) -> Visit:
        visits.append(Visit(browser, example, **options))
        return visits[-1]

    yield begin
    problems = [problem for made in visits for problem in made.problems]
    for made in visits:
        made.context.close()
    assert problems == []


def test_the_person_agrees_and_sees_each_bit_that_left(visit, example: WebExample) -> None:
    person = visit()
    host = {"domain": "localhost", "path": "/"}
    person.context.add_cookies([{"name": "session", "value": "qZ7xkVw", **host}])
    before = {name: person.stored(name) for name in ("theme", "homepage")}
    page = person.start()
    page.check("input[value=dark]")
    page.fill("#homepage", "https://en.wikipedia.org/wiki/Main_Page")
    page.click("text=Save")
    assert page.locator("#link a").get_attribute("href") == "https://en.wikipedia.org"
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert (person.uploads, person.databases()) == ([], [])  # nothing before the answer

    person.agree()
    page.locator(".report").nth(1).wait_for()
    assert page.locator("#consent").is_hidden()
    page.click("#send")
    page.locator(".badge.sent").nth(1).wait_for()
    assert {name: person.stored(name) for name in before} == {
        name: count + 1 for name, count in before.items()
    }

    sent = {}
    for request in person.uploads:
        assert (request.method, urlsplit(request.url).path) == ("POST", "/v1/reports")
        headers = request.all_headers()
        assert headers["content-type"] == BINARY
        assert set(headers) <= {*OF_THE_BROWSER, "content-type"}, set(headers)
        batch = decode_batch(request.post_data_buffer)
        assert batch.count == 1
        sent[batch.token.hex()] = batch
    assert sorted(batch.collection for batch in sent.values()) == ["homepage", "theme"]
    for item in page.locator(".report").all():
        batch = sent[item.get_attribute("data-token")]
        bits = to_text(unpack(batch.reports, batch.k), batch.k)
        item.locator("summary").click()
        codes = item.locator("code").all_inner_texts()
        assert codes[0] == bits
        assert codes[2] == batch.token.hex()
        marks = "i" if batch.k > 3 else ".named i"
        drawn = item.locator(marks).evaluate_all(
            "(marks) => marks.map((mark) => Number(mark.className === 'one')).reverse().join('')"
        )
        assert drawn == bits
    assert "wikipedia" not in page.locator("#left").inner_text()
    spent = [float(text) for text in page.locator("#ledger td:nth-child(2)").all_inner_texts()]
    assert all(0 < epsilon < 5 for epsilon in spent)


def test_who_says_no_has_the_same_page_and_sends_nothing(visit) -> None:
    person = visit()
    page = person.start()
    page.click("#no")
    page.check("input[value=light]")
    page.fill("#homepage", "example.org")
    page.click("text=Save")
    assert page.locator("#link a").inner_text() == "example.org"
    assert "You said no" in page.locator("#summary").inner_text()
    page = person.start()
    assert page.locator("#consent").is_hidden()
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert (person.uploads, person.databases()) == ([], [])


@pytest.mark.long
def test_nothing_is_sent_after_stop_and_forgetting_says_what_it_costs(visit) -> None:
    person = visit()
    page = person.start()
    person.agree()
    page.locator(".report").wait_for()
    page.click("#stop")
    page.get_by_text("You stopped. Nothing is recorded or sent.").wait_for()
    assert page.locator(".report").count() == 0  # what waited is gone
    page.check("input[value=dark]")
    page = person.start()
    assert "You stopped" in page.locator("#summary").inner_text()
    page.click("#stop")
    page.get_by_text("0 sent, 0 waiting.").wait_for()  # the report of this day was made and deleted
    assert person.uploads == []
    page.click("#forget")
    page.click("dialog >> text=Keep it")
    page.click("#forget")
    page.click("dialog button[value=forget]")
    page.get_by_text("cannot be recalled").wait_for()
    assert person.uploads == []


@pytest.mark.long
def test_a_choice_to_stop_holds_in_every_tab_and_after_a_reload(visit) -> None:
    person = visit()
    page = person.start()
    person.agree()
    page.locator(".report").wait_for()
    other = person.context.new_page()
    other.goto(person.example.url)
    other.wait_for_selector("html[data-ready]")
    # A full storage: the client cannot note the choice, so the page alone has to remember it.
    other.evaluate("""() => {
        const { transaction } = IDBDatabase.prototype;
        IDBDatabase.prototype.transaction = function (store, mode, options) {
            if (mode === "readwrite") throw new DOMException("", "QuotaExceededError");
            return transaction.call(this, store, mode, options);
        };
    }""")
    other.click("#stop")
    other.get_by_text("may still arrive").wait_for()
    page.get_by_text("You stopped").wait_for()
    page = person.start()
    assert "You stopped" in page.locator("#summary").inner_text()
    assert person.uploads == []


@pytest.mark.long
def test_global_privacy_control_is_an_answer(visit) -> None:
    person = visit()
    person.context.add_init_script(
        "Object.defineProperty(navigator, 'globalPrivacyControl', { value: true })"
    )
    page = person.start()
    assert "Your browser says no for you" in page.locator("#summary").inner_text()
    assert page.locator("#consent").is_hidden()
    page.evaluate(
        "() => localStorage.setItem('consent', 'yes')"
    )  # said before that was switched on
    page = person.start()
    assert "Your browser says no for you" in page.locator("#summary").inner_text()
    assert (person.uploads, person.databases()) == ([], [])


@pytest.mark.long
def test_the_policy_of_the_page_forbids_everything_else(example: WebExample) -> None:
    with urlopen(example.url, timeout=PATIENCE / 1000) as response:
        policy = response.headers["content-security-policy"]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["connect-src"] == f"'self' http://localhost:{example.collector.port}"
    assert "unsafe" not in policy


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_the_page_is_accessible_and_fits(visit, look: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    person = visit(bypass_csp=True, **LOOKS[look])  # axe is a script of ours
    page = person.start()
    for step in ("asks", "reports"):
        if step == "reports":
            page.fill("#homepage", "example.org")
            page.click("text=Save")
            person.agree()
            page.locator(".report").nth(1).wait_for()
            page.locator("summary").first.click()
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [f"{each['id']}: {each['nodes'][0]['html'][:90]}" for each in found] == [], step
        assert page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        ) == 0  # fmt: skip


@pytest.mark.long
def test_the_page_works_by_keyboard_alone(visit) -> None:
    person = visit()
    page = person.start()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == "yes":
            break
    page.keyboard.press("Enter")
    page.locator(".report").wait_for()
    page.focus("#forget")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="hidden")
    assert page.locator(".report").count() == 1
