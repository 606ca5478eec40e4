"""The collector answers browsers: pages of allowed origins may send, others learn nothing new."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.collecting import Answer, Client, Process, batch, client_of, collector, stored
from support.command import rappor

APP, OTHER = "https://app.example.org", "http://localhost:5173"
PAGES = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/v1/report", "/")
CORS = "access-control-"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[Process]:
    """A collector for two origins."""
    with collector(folder, "--allow-origin", APP, "--allow-origin", OTHER) as process:
        yield process


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A collector that no page may send to."""
    with collector(tmp_path_factory.mktemp("closed")) as process:
        yield process


def preflight(
    client: Client, origin: str, method: str = "POST", path: str = "/v1/reports"
) -> Answer:
    return client.send(
        None,
        path,
        "OPTIONS",
        origin=origin,
        access_control_request_method=method,
        access_control_request_headers="authorization,content-type",
    )


def cors_fields(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith(CORS)}


def fixed(answer: Answer) -> dict[str, str]:
    """The header fields that do not depend on the moment."""
    return {name: value for name, value in answer.headers.items() if name != "date"}


@pytest.mark.parametrize("origin", [APP, OTHER])
def test_a_page_of_an_allowed_origin_sends_a_report(
    folder: Path, web: Process, origin: str
) -> None:
    before = sum(stored(folder).values())
    with client_of(web) as client:
        asked = preflight(client, origin)
        assert (asked.status, asked.body) == (204, b"")
        assert cors_fields(asked) == {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "POST",
            "access-control-allow-headers": "authorization, content-type",
            "access-control-max-age": "86400",
        }
        assert asked.headers["vary"] == "origin"
        answer = client.deliver(batch(), origin=origin)
        assert answer.status == 204
        assert cors_fields(answer) == {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "retry-after",
        }
    assert sum(stored(folder).values()) == before + 1


def test_a_page_can_read_why_it_was_refused(web: Process) -> None:
    with client_of(web) as client:
        answer = client.send(batch(collection="nothing"), origin=APP)
    assert answer.code == "unknown-collection"
    assert answer.headers["access-control-allow-origin"] == APP
    assert answer.headers["access-control-expose-headers"] == "retry-after"
    assert int(answer.headers["retry-after"]) > 0


def test_another_origin_gets_the_answer_of_a_collector_without_pages(
    web: Process, closed: Process
) -> None:
    for origin in ("https://evil.example", "null", "https://app.example.org.evil.example", APP):
        with client_of(closed) as client:
            expected = preflight(client, origin)
        assert (expected.code, expected.headers["allow"]) == ("method-not-allowed", "POST")
        assert cors_fields(expected) == {}
        assert "vary" not in expected.headers
        if origin != APP:
            with client_of(web) as client:
                answer = preflight(client, origin)
            assert (answer.status, answer.body) == (expected.status, expected.body)
            assert fixed(answer) == {**fixed(expected), "vary": "origin"}


def test_what_every_page_may_send_without_asking_is_not_a_report(web: Process) -> None:
    """The content types of forms and of `fetch` without CORS, and none at all: a visit to a hostile
    page makes no browser report."""
    with client_of(web) as client:
        for content_type in (
            "text/plain",
            "text/plain;charset=UTF-8",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain; application/vnd.rappor.batch",
        ):
            answer = client.send(batch(), content_type=content_type, origin="https://evil.example")
            assert answer.code == "unsupported-media-type"
            assert cors_fields(answer) == {}
        client.connection.putrequest("POST", "/v1/reports")
        client.connection.putheader("content-length", "3")
        client.connection.endheaders(b"abc")
        assert Answer(client.connection.getresponse()).code == "unsupported-media-type"


def test_a_report_without_a_page_is_counted_as_before(web: Process) -> None:
    """Applications send no origin, and a page on the collector's own origin needs no permission."""
    with client_of(web) as client:
        assert cors_fields(client.deliver(batch())) == {}
        same_origin = client.deliver(batch(), origin="https://reports.example.org")
        assert (same_origin.status, cors_fields(same_origin)) == (204, {})


@pytest.mark.parametrize("path", PAGES)
def test_nothing_but_reports_is_open_to_pages(web: Process, path: str) -> None:
    with client_of(web) as client:
        for answer in (
            client.send(None, path, "GET", origin=APP),
            preflight(client, APP, path=path),
            preflight(client, APP, "GET", path),
        ):
            assert cors_fields(answer) == {}
            assert "vary" not in answer.headers
        assert preflight(client, APP, path=path).status in (404, 405)


def test_credentials_are_never_allowed(web: Process) -> None:
    with client_of(web) as client:
        answers = [
            preflight(client, APP),
            client.deliver(batch(), origin=APP, cookie="session=1"),
            client.send(None, "/v1/reports", "GET", origin=APP),
            client.send(b"x", origin=APP),
        ]
    for answer in answers:
        assert "access-control-allow-credentials" not in answer.headers
        assert "set-cookie" not in answer.headers
        assert answer.headers["access-control-allow-origin"] == APP


def test_an_origin_that_cannot_be_one_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "collections").mkdir()
    given = ("--data", str(tmp_path / "data"), "--collections", str(tmp_path / "collections"))
    for verb in ("collect", "serve"):
        done = rappor(verb, *given, "--allow-origin", "https://app.example.org/")
        assert (done.returncode, done.stdout) == (2, "")
        assert "--allow-origin must be written as browsers write it" in done.stderr
        assert "did you mean https://app.example.org?" in done.stderr
        done = rappor(verb, *given, "--allow-origin", "*")
        assert done.returncode == 2
        assert "name each origin" in done.stderr
