"""The collector and web pages in Chromium: who may send, what a page reads, what is kept."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rappor.wire import BINARY, encode_batch
from support.collecting import Process, batch, collect_command, running, stored
from support.markers import MARK, traces, written

PATIENCE = 120_000  # milliseconds: ends a test that hangs
SEND = """async ([address, type, bytes, options]) => {
  try {
    const body = new Blob([Uint8Array.from(bytes)], { type });
    const headers = type ? { "content-type": type } : {};
    const answer = await fetch(address, { method: "POST", body, headers, ...options });
    const read = [...answer.headers.keys()].sort();
    return [answer.status, await answer.text(), answer.headers.get("retry-after"), read];
  } catch (error) {
    return String(error);
  }
}"""


# How the JavaScript client sends. With `cache: "no-store"` Chromium would ask before every report.
AS_THE_CLIENT = {
    "credentials": "omit",
    "keepalive": True,
    "redirect": "error",
    "referrerPolicy": "no-referrer",
}

# Header fields that browsers let every allowed page read, and the one that a collector adds.
READABLE = {"cache-control", "content-length", "content-type", "retry-after"}


class Pages(http.server.BaseHTTPRequestHandler):
    """An empty page at every address and for every host."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>page</title>")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Pages of any origin on this machine: localhost is allowed, evil.localhost is not."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def collecting(browser, port: int, folder: Path) -> Iterator[Process]:
    command = collect_command(folder, "--allow-origin", f"http://localhost:{port}")
    with running([*command, "--log-level", "debug"]) as process:
        yield process


class Page:
    """A page of an origin, in a browser with markers, and the requests that reach the network."""

    def __init__(self, browser, url: str, collecting: Process) -> None:
        self.address = f"http://localhost:{collecting.port}/v1/reports"
        self.context = browser.new_context(
            user_agent=f"Mozilla/5.0 {MARK}",
            extra_http_headers={"accept-language": f"mi, {MARK};q=0.5"},
        )
        self.context.set_default_timeout(PATIENCE)
        cookie = {"name": "session", "value": MARK, "domain": "localhost", "path": "/"}
        self.context.add_cookies([cookie])
        self.page = self.context.new_page()
        self.preflights = 0
        self.uploads: list = []
        self.page.on("request", self._request)
        watched = self.context.new_cdp_session(self.page)
        watched.send("Network.enable")
        watched.on("Network.requestWillBeSent", self._sent)
        self.page.goto(url)

    def _request(self, request) -> None:
        if urlsplit(request.url).path == "/v1/reports":
            self.uploads.append(request)

    def _sent(self, event) -> None:
        self.preflights += event["request"]["method"] == "OPTIONS"

    def send(self, content_type: str = BINARY, collection: str = "homepage", **options):
        body = list(encode_batch(batch(collection=collection)))
        return self.page.evaluate(SEND, [self.address, content_type, body, options])


@pytest.fixture
def open_page(browser, collecting: Process, port: int) -> Iterator:
    """open_page(host): a page of http://host:port."""
    pages: list[Page] = []

    def begin(host: str) -> Page:
        pages.append(Page(browser, f"http://{host}:{port}/{MARK}?{MARK}", collecting))
        return pages[-1]

    yield begin
    for page in pages:
        page.context.close()


def reports(folder: Path) -> int:
    return sum(stored(folder).values())


def test_an_allowed_page_sends_without_cookies_after_one_question(
    open_page, folder: Path, collecting: Process
) -> None:
    before, page = reports(folder), open_page("localhost")
    for _ in range(3):
        status, text, _, read = page.send(**AS_THE_CLIENT)
        assert (status, text) == (204, "")
        assert set(read) <= READABLE
    assert reports(folder) == before + 3
    assert page.preflights == 1  # the browser remembers the answer
    for request in page.uploads:
        headers = request.all_headers()
        assert "cookie" not in headers
        assert MARK in headers["user-agent"]
        assert MARK in headers["accept-language"]
    refused = page.send(collection="nothing", **AS_THE_CLIENT)
    assert refused[0] == 404
    assert {"content-type", "retry-after"} <= set(refused[3]) <= READABLE
    assert '"code":"unknown-collection"' in refused[1]
    assert int(refused[2]) > 0


@pytest.mark.long
def test_a_page_cannot_send_with_cookies(open_page, folder: Path) -> None:
    before, page = reports(folder), open_page("localhost")
    assert page.send(credentials="include") == "TypeError: Failed to fetch"
    assert reports(folder) == before


def test_a_hostile_page_makes_no_browser_report(open_page, folder: Path) -> None:
    before, page = reports(folder), open_page("evil.localhost")
    for content_type in (BINARY, "application/json"):
        for credentials in ("omit", "include"):
            assert page.send(content_type, credentials=credentials) == "TypeError: Failed to fetch"
    # What needs no question arrives, is not a report, and cannot be read.
    for content_type in ("text/plain", "", "application/x-www-form-urlencoded"):
        status, text, after, read = page.send(content_type, mode="no-cors")
        assert (status, text, after, read) == (0, "", None, [])
    beacon = "([address, bytes]) => navigator.sendBeacon(address, Uint8Array.from(bytes))"
    page.page.evaluate(beacon, [page.address, list(encode_batch(batch()))])
    page.page.evaluate(
        """(address) => {
          const form = document.createElement("form");
          Object.assign(form, { method: "post", action: address, enctype: "text/plain" });
          document.body.append(form);
          form.submit();
        }""",
        page.address,
    )
    page.page.wait_for_url(page.address)
    assert "unsupported-media-type" in page.page.content()
    assert reports(folder) == before


def test_nothing_of_a_browser_is_written_down(open_page, folder: Path, collecting: Process) -> None:
    """Markers of the requests above and of these: user agent, language, cookie, page, origin."""
    allowed, hostile = open_page("localhost"), open_page(f"{MARK}.localhost")
    assert allowed.send(**AS_THE_CLIENT)[0] == 204
    assert allowed.send(collection="nothing", **AS_THE_CLIENT)[0] == 404
    hostile.send()
    hostile.send("text/plain", mode="no-cors")
    hostile.page.goto(f"http://localhost:{collecting.port}/{MARK}")
    metrics = hostile.page.goto(f"http://localhost:{collecting.port}/metrics")
    said = metrics.body()
    assert b"rappor_reports_total" in said
    everything = [("metrics", said), ("log", "".join(collecting.text).encode()), *written(folder)]
    assert any(name.endswith("store.sqlite") for name, _ in everything)
    assert [(name, found) for name, data in everything if (found := traces(data))] == []
