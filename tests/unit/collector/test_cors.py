"""Which origins may be allowed, and what a page of each is told."""

import pytest

from rappor.collector.cors import Cors, check_origin
from rappor.collector.settings import CollectorSettings
from rappor.errors import ParamsError

APP = "https://app.example.org"
ASKS = (b"access-control-request-method", b"POST")


@pytest.mark.parametrize(
    "origin",
    [
        APP,
        "https://app.example.org:8443",
        "https://xn--bcher-kva.example",
        "https://192.0.2.7",
        "https://[2001:db8::1]",
        "http://localhost",
        "http://localhost:5173",
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
        "moz-extension://0f6e2b0e-9a3c-4a52-9d0f-0c0e2f1f7a10",
    ],
)
def test_an_origin_as_browsers_write_it_may_be_allowed(origin: str) -> None:
    assert check_origin(origin) == origin


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("*", "name each origin"),
        ("null", "name each origin"),
        ("", "such as https://app.example.org"),
        (None, "such as https://app.example.org"),
        (7, "such as"),
        (b"https://app.example.org", "such as"),
        ("app.example.org", "such as"),
        ("https://", "such as"),
        ("https://*.example.org", "such as"),
        ("https://app.example.org/", "did you mean https://app.example.org?"),
        ("https://app.example.org/x", "did you mean https://app.example.org?"),
        ("https://app.example.org?x", "did you mean"),
        ("https://app.example.org#x", "did you mean"),
        ("https://App.example.org", "did you mean https://app.example.org?"),
        ("HTTPS://app.example.org", "such as"),
        ("https://app.example.org:443", "did you mean https://app.example.org?"),
        ("http://localhost:80", "did you mean http://localhost?"),
        ("https://app.example.org:", "did you mean"),
        ("https://app.example.org:99999", "such as"),
        ("https://me@app.example.org", "did you mean https://app.example.org?"),
        ("https://app.example.org, https://b.example", "such as"),
        ("https://app.example.org https://b.example", "such as"),
        (" https://app.example.org", "such as"),
        ("https://app.example.org\n", "did you mean"),
        ("https://app.example.org\r\nset-cookie: a=b", "such as"),
        ("https://bücher.example", "such as"),
        ("https://a..example", "such as"),
        ("https://.example", "such as"),
        ("https://[2001:DB8::1]", "did you mean https://[2001:db8::1]?"),
        ("https://[::1", "such as"),
        ("http://app.example.org", "must be https"),
        ("http://192.168.0.1", "must be https"),
        ("file:///home", "such as"),
        ("data:text/html,x", "such as"),
        ("chrome-extension://", "such as"),
        ("chrome-extension://abc/def", "such as"),
        ("https://" + "a" * 254, "such as"),
    ],
)
def test_anything_else_is_refused_with_a_way_out(origin: object, words: str) -> None:
    with pytest.raises(ParamsError) as caught:
        check_origin(origin)
    assert words in str(caught.value)
    with pytest.raises(ParamsError, match=r"^allow_origins must be"):
        CollectorSettings("data", "collections", allow_origins=(origin,))  # type: ignore[arg-type]


def test_a_page_of_an_allowed_origin_may_send_and_is_told_no_more() -> None:
    cors = Cors([APP, "http://localhost:5173"])
    asked = [(b"origin", APP.encode()), ASKS]
    assert cors.is_preflight("OPTIONS", asked)
    assert cors.answer("OPTIONS", asked) == [
        (b"access-control-allow-origin", APP.encode()),
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", b"authorization, content-type"),
        (b"access-control-max-age", b"86400"),
        (b"vary", b"origin"),
    ]
    assert cors.answer("POST", [(b"origin", APP.encode())]) == [
        (b"access-control-allow-origin", APP.encode()),
        (b"access-control-expose-headers", b"retry-after"),
        (b"vary", b"origin"),
    ]


HOSTILE = [
    b"",
    b"null",
    b"*",
    b"https://evil.example",
    b"https://app.example.org.evil.example",
    b"https://evil.example/https://app.example.org",
    b"https://evilapp.example.org",
    b"https://app.example.or",
    b"https://app.example.org:443",
    b"https://app.example.org:8443",
    b"https://app.example.org/",
    b"https://APP.example.org",
    b"http://app.example.org",
    b"https://app.example.org\x00",
    b"https://app.example.org, https://evil.example",
    b"https://app.example.org https://evil.example",
    b"\xff\xfe",
    b"https://" + b"a" * 10_000,
]


@pytest.mark.parametrize("origin", HOSTILE, ids=repr)
def test_another_origin_learns_nothing(origin: bytes) -> None:
    cors = Cors([APP])
    request = [(b"origin", origin), ASKS]
    assert not cors.is_preflight("OPTIONS", request)
    for method in ("OPTIONS", "POST", "GET"):
        assert cors.answer(method, request) == [(b"vary", b"origin")]


def test_two_origins_in_one_request_are_none() -> None:
    cors = Cors([APP])
    request = [(b"origin", APP.encode()), (b"origin", b"https://evil.example"), ASKS]
    assert not cors.is_preflight("OPTIONS", request)
    assert cors.answer("POST", request) == [(b"vary", b"origin")]


@pytest.mark.parametrize("method", [b"GET", b"PUT", b"DELETE", b"post", b"POST, GET", b""])
def test_a_preflight_asks_for_post(method: bytes) -> None:
    cors = Cors([APP])
    request = [(b"origin", APP.encode()), (b"access-control-request-method", method)]
    assert not cors.is_preflight("OPTIONS", request)
    assert not cors.is_preflight("POST", [*request, ASKS])
