"""Refusal: a request that is not accepted, and the answer to it (problem+json)."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from rappor.wire import PROBLEM_JSON, PROBLEMS, problem_json
from rappor.wire.protocol import RETRY_SECONDS

Headers = list[tuple[bytes, bytes]]

# Answers are not to be cached, sniffed, framed or run.
SAFE: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Refusal(Exception):
    """Why a request is not accepted; `detail` repeats nothing from the request."""

    def __init__(
        self, code: str, detail: str = "", *, retry_after: int | None = None, close: bool = False
    ) -> None:
        """Refuse with a problem of `rappor.wire.PROBLEMS`; `close` also closes the connection."""
        super().__init__(code)
        self.code, self.detail, self.retry_after, self.close = code, detail, retry_after, close

    def answer(self, added: Iterable[tuple[bytes, bytes]] = ()) -> tuple[int, Headers, bytes]:
        """Status, headers and body; `added` are further header fields."""
        problem = PROBLEMS[self.code]
        body = problem_json(self.code, self.detail)
        headers = [
            (b"content-type", PROBLEM_JSON.encode()),
            (b"content-length", b"%d" % len(body)),
            *SAFE,
        ]
        if problem.retry:
            seconds = self.retry_after or RETRY_SECONDS[self.code]
            headers.append((b"retry-after", b"%d" % seconds))
        if problem.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        headers.extend(added)
        if self.close:
            headers.append((b"connection", b"close"))
        return problem.status, headers, body

    def raw(
        self,
        fields: Iterable[tuple[bytes, bytes]] = (),
        added: Iterable[tuple[bytes, bytes]] = (),
    ) -> bytes:
        """The whole answer as HTTP/1.1; `fields` are those of all answers, `added` of this one."""
        status, headers, body = self.answer(added)
        lines = header_lines([*fields, *headers])
        phrase = HTTPStatus(status).phrase.encode()
        return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, phrase, lines, body)


def header_lines(headers: Headers) -> bytes:
    r"""Header fields as lines of HTTP/1.1.

    >>> header_lines([(b"date", b"Mon"), (b"allow", b"GET")])
    b'date: Mon\r\nallow: GET\r\n'
    """
    return b"".join(b"%s: %s\r\n" % header for header in headers)
