"""Refusal: a request that is not accepted, and the answer to it (problem+json)."""

from __future__ import annotations

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

    def answer(self) -> tuple[int, Headers, bytes]:
        """Status, headers and body."""
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
        if self.close:
            headers.append((b"connection", b"close"))
        return problem.status, headers, body

    def raw(self) -> bytes:
        """The whole answer as HTTP/1.1, for a connection without a complete request; it closes."""
        self.close = True
        status, headers, body = self.answer()
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        return b"HTTP/1.1 %d \r\n%s\r\n%s" % (status, lines, body)
