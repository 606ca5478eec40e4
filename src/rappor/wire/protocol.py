"""What clients and collectors agree on: paths, content types, limits, windows, problem codes.

docs/protocol.md explains each of them. The problems are a closed list of stable codes (RFC 9457).
They tell a client whether to drop a batch or keep it, and when to try again.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from rappor.checks import show
from rappor.errors import ParamsError

REPORTS_PATH = "/v1/reports"  # where a batch is sent to

BINARY = "application/vnd.rappor.batch"  # a batch in the format RPR1 (`wire.binary`)
JSON = "application/json"  # a batch in JSON (`wire.json_batch`)
PROBLEM_JSON = "application/problem+json"

MAX_BODY = 256 * 1024  # bytes of a message as it is sent
MAX_INFLATED = 1024 * 1024  # bytes of a message after decompression
MAX_REPORTS = 16  # in a client's batch; larger batches need a gateway key (docs/protocol.md)
MAX_VERSION = 0xFFFF  # of a collection
MAX_DIMENSIONS = 8
TOKEN_BYTES = 16

ACCEPTANCE_DAYS = 14  # a period is accepted for this long after its last day (UTC)
SKEW_DAYS = 1  # and this long before its first day: clocks differ


class Problem(NamedTuple):
    """One reason for which a collector refuses a request.

    Attributes:
        code: its stable name.
        status: the HTTP status of the answer.
        title: what went wrong, in one fixed sentence.
        retry: whether the same batch may succeed later, for example after the operator has
            corrected a key, an address or a collection. If not, a client drops the batch.
    """

    code: str
    status: int
    title: str
    retry: bool


_LISTED = (
    Problem("bad-request", 400, "The request is not valid HTTP.", False),
    Problem("malformed-batch", 400, "The body is not a batch.", False),
    Problem("bad-encoding", 400, "The body does not decompress.", False),
    Problem("unauthorized", 401, "The ingest key is missing or unknown.", True),
    Problem("forbidden", 403, "The ingest key is not for this collection.", True),
    Problem("not-found", 404, "There is nothing at this address.", True),
    Problem("unknown-collection", 404, "There is no such collection or version.", True),
    Problem("method-not-allowed", 405, "The address takes another method.", False),
    Problem("request-timeout", 408, "The request did not arrive in time.", True),
    Problem("expired-collection", 410, "The collection has ended.", False),
    Problem("body-too-large", 413, "The body is larger than the limit.", False),
    Problem("too-many-reports", 413, "The batch has more reports than a client may send.", False),
    Problem("uri-too-long", 414, "The address is longer than the limit.", False),
    Problem("unsupported-media-type", 415, "The content type is not that of a batch.", False),
    Problem("unsupported-encoding", 415, "The content encoding is not supported.", False),
    Problem("wrong-params", 422, "The reports do not fit the collection's parameters.", False),
    Problem("wrong-dimensions", 422, "The dimensions are not those of the collection.", False),
    Problem("wrong-period", 422, "The period is not one of the collection's.", False),
    Problem("period-closed", 422, "The period is too old or in the future.", False),
    Problem("rate-limited", 429, "Too many requests: try again later.", True),
    Problem("headers-too-large", 431, "The headers are larger than the limit.", False),
    Problem("internal-error", 500, "The collector failed; nothing was stored.", True),
    Problem("overloaded", 503, "The collector is busy: try again later.", True),
    Problem("shutting-down", 503, "The collector is stopping: try again later.", True),
    Problem("store-failed", 503, "The store failed; nothing was stored.", True),
    Problem(
        "store-unavailable",
        503,
        "The database cannot be reached; the batch may or may not be stored.",
        True,
    ),
    Problem("store-full", 507, "The disk is full; nothing was stored.", True),
)
PROBLEMS: dict[str, Problem] = {problem.code: problem for problem in _LISTED}

# The Retry-After of an answer, in seconds, if the same batch may succeed later.
RETRY_SECONDS = {problem.code: 5 for problem in _LISTED if problem.retry}
RETRY_SECONDS |= {"rate-limited": 10, "overloaded": 2, "store-full": 60} | dict.fromkeys(
    ("unauthorized", "forbidden", "not-found", "unknown-collection"),
    3600,  # an operator has to correct it
)


class BatchRefused(Exception):
    """A batch that no collector accepts.

    Attributes:
        code: one of `PROBLEMS`.
        detail: more for a person to read; it repeats nothing from the request.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        """Refuse with a problem of `PROBLEMS`."""
        super().__init__(code)
        self.code, self.detail = code, detail


def problem_json(code: str, detail: str = "") -> bytes:
    """The body of an answer, as application/problem+json.

    Args:
        code: one of `PROBLEMS`.
        detail: more for a person to read; it must repeat nothing from the request.

    >>> json.loads(problem_json("malformed-batch"))["status"]
    400
    """
    if code not in PROBLEMS:
        raise ParamsError(f"code must be one of the listed problems, got {show(code)}")
    problem = PROBLEMS[code]
    document: dict[str, str | int | bool] = {
        "type": f"urn:rappor:problem:{code}",
        "title": problem.title,
        "status": problem.status,
        "code": code,
        "retry": problem.retry,
    }
    if detail:
        document["detail"] = detail
    return json.dumps(document, separators=(",", ":")).encode("ascii")
