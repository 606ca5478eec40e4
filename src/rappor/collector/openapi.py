"""The OpenAPI 3.1 document of the collector, and the page that shows it to people.

The page needs no script and no other host.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from typing import Any

from rappor._version import __version__
from rappor.collector.cors import ALLOWED_HEADERS, EXPOSED_HEADERS
from rappor.collector.refusal import SAFE, Headers
from rappor.params import MAX_K
from rappor.wire import (
    BINARY,
    JSON,
    MAX_BODY,
    MAX_REPORTS,
    PROBLEM_JSON,
    PROBLEMS,
    REPORTS_PATH,
    Batch,
    encode_batch_json,
)
from rappor.wire.batch import PERIOD
from rappor.wire.dimensions import COLLECTION_NAME
from rappor.wire.protocol import MAX_DIMENSIONS, MAX_VERSION, TOKEN_BYTES

# What each address can answer. The list is complete, so a client can be written from it.
_INGEST = (
    *("bad-request", "malformed-batch", "bad-encoding", "unauthorized", "forbidden"),
    *("unknown-collection", "request-timeout", "expired-collection", "body-too-large"),
    "too-many-reports",
    *("unsupported-media-type", "unsupported-encoding", "wrong-params", "wrong-dimensions"),
    *("wrong-period", "period-closed", "rate-limited", "headers-too-large", "internal-error"),
    *("overloaded", "shutting-down", "store-failed", "store-full", "store-unavailable"),
    "uri-too-long",
)
_ANYWHERE = (
    *("bad-request", "method-not-allowed", "request-timeout", "uri-too-long"),
    *("rate-limited", "headers-too-large", "internal-error", "overloaded"),
)


def document() -> dict[str, Any]:
    """The OpenAPI document as a dict."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rappor collector",
            "version": __version__,
            "summary": "Takes randomized reports. Nothing can be read back.",
            "description": "Takes batches of randomized reports (RAPPOR) and counts them. Nothing "
            "that was sent can be read back here. Nothing about a sender is stored: no address, "
            "no header, no time finer than the period.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            REPORTS_PATH: {"post": _reports(), "options": _preflight()},
            "/healthz": {
                "get": _get(
                    "Can batches be stored?",
                    "503 while the disk is full, and after the store failed.",
                    "application/json",
                    also_503=True,
                )
            },
            "/readyz": {
                "get": _get(
                    "Should a load balancer send batches here?",
                    "503 while unhealthy, busy or stopping.",
                    "application/json",
                    also_503=True,
                )
            },
            "/metrics": {"get": _get("Counters for Prometheus.", "Totals only.", "text/plain")},
            "/openapi.json": {"get": _get("This document.", "", "application/json")},
            "/docs": {"get": _get("This document for people.", "", "text/html")},
        },
        "components": {
            "schemas": {"Batch": _batch(), "Problem": _problem(), "Status": _status()},
            "responses": {
                f"Status{status}": _answer(codes) for status, codes in _by_status().items()
            },
            "securitySchemes": {
                "ingestKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The ingest key of an application, if the operator requires "
                    "one. It ships in every copy of the application and proves nothing.",
                },
                "gatewayKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The secret key of an importer or a relay. With it a batch may "
                    "have any number of reports that fits the body.",
                },
            },
        },
    }


def _reports() -> dict[str, Any]:
    return {
        "operationId": "sendBatch",
        "summary": "Count a batch of reports, exactly once.",
        "description": "204 means that the batch is on disk. The same token sent again is "
        f"acknowledged and not counted again. A body has at most {MAX_BODY} bytes and may be "
        f"compressed with gzip. A batch has at most {MAX_REPORTS} reports; larger ones need a "
        "gateway key. Quotas count reports. A problem says whether to try again (retry) or to drop "
        "the batch.",
        "security": [{}, {"ingestKey": []}, {"gatewayKey": []}],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"$ref": "#/components/schemas/Batch"}},
                BINARY: {
                    "schema": {
                        "type": "string",
                        "format": "binary",
                        "description": "The format RPR1 of docs/protocol.md.",
                    }
                },
            },
        },
        "responses": {
            "204": {"description": "The batch is on disk, now or since an earlier copy of it."},
            **_responses(_INGEST),
        },
    }


def _preflight() -> dict[str, Any]:
    fields = {
        "Access-Control-Allow-Origin": "The origin of the page.",
        "Access-Control-Allow-Methods": "POST.",
        "Access-Control-Allow-Headers": f"{ALLOWED_HEADERS}.",
        "Access-Control-Max-Age": "How many seconds a browser may remember this answer.",
    }
    return {
        "operationId": "askWhetherAPageMaySend",
        "summary": "A browser's question whether a page may send reports (CORS).",
        "description": "Only the origins that the operator has listed may, and never with "
        f"credentials. A page can read {EXPOSED_HEADERS} and the problem in an answer. For every "
        "other origin, and if none is listed, the answer is 405.",
        "responses": {
            "204": {
                "description": "The page may send reports.",
                "headers": {
                    name: {"description": about, "schema": {"type": "string"}}
                    for name, about in fields.items()
                },
            },
            **_responses(_ANYWHERE),
        },
    }


def _get(summary: str, about: str, content: str, *, also_503: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = (
        {"type": "string"} if content.startswith("text/") else {"type": "object"}
    )
    if also_503:
        schema = {"$ref": "#/components/schemas/Status"}
    body = {content: {"schema": schema}}
    responses = {"200": {"description": summary, "content": body}, **_responses(_ANYWHERE)}
    if also_503:
        problem = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses["503"] = {"description": "No.", "content": body | problem}
    return {"summary": summary, "description": about, "responses": dict(sorted(responses.items()))}


def _by_status() -> dict[int, list[str]]:
    statuses: dict[int, list[str]] = {}
    for problem in PROBLEMS.values():
        statuses.setdefault(problem.status, []).append(problem.code)
    return statuses


def _responses(codes: tuple[str, ...]) -> dict[str, Any]:
    statuses = sorted({PROBLEMS[code].status for code in codes})
    return {str(status): {"$ref": f"#/components/responses/Status{status}"} for status in statuses}


def _answer(codes: list[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": "\n".join(f"{code}: {PROBLEMS[code].title}" for code in codes),
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if any(PROBLEMS[code].retry for code in codes):
        answer["headers"] = {
            "Retry-After": {
                "description": "Seconds to wait before the same batch is sent again.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    return answer


def _problem() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "RFC 9457; nothing of the request is repeated in it.",
        "required": ["type", "title", "status", "code", "retry"],
        "properties": {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string", "enum": list(PROBLEMS)},
            "retry": {"type": "boolean"},
            "detail": {"type": "string"},
        },
    }


def _status() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "string"}},
    }


def _batch() -> dict[str, Any]:
    fields: dict[str, tuple[dict[str, Any], str]] = {
        "rappor": ({"type": "integer", "const": 1}, "The format of this message."),
        "token": (
            {"type": "string", "pattern": f"^[0-9a-f]{{{2 * TOKEN_BYTES}}}$"},
            f"{TOKEN_BYTES} random bytes, drawn for this batch and for nothing else.",
        ),
        "collection": (
            {"type": "string", "pattern": f"^{COLLECTION_NAME.pattern}$"},
            "The collection's name.",
        ),
        "version": ({"type": "integer", "minimum": 1, "maximum": MAX_VERSION}, "Its version."),
        "period": (
            {"type": "string", "pattern": f"^{PERIOD.pattern}$"},
            "The UTC day or ISO week that the reports belong to.",
        ),
        "dimensions": (
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "maxProperties": MAX_DIMENSIONS,
            },
            "Each declared dimension and its value; they travel in clear, outside ε.",
        ),
        "k": ({"type": "integer", "minimum": 1, "maximum": MAX_K}, "Bits in a report."),
        "cohorts": (
            {"type": "string", "contentEncoding": "base64"},
            "Each report's cohort in two bytes, the lower one first.",
        ),
        "reports": (
            {"type": "string", "contentEncoding": "base64"},
            "Each report in ceil(k/8) bytes: bit i is bit i % 8 of byte i // 8.",
        ),
    }
    example = Batch(bytes(16), "homepage", 1, "2026-11-16", (), 8, b"\x03\x00", b"\x05")
    return {
        "type": "object",
        "required": list(fields),
        "additionalProperties": False,
        "properties": {
            name: {**schema, "description": about} for name, (schema, about) in fields.items()
        },
        "example": json.loads(encode_batch_json(example)),
    }


Answer = tuple[int, Headers, bytes]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
h2 b { font-family: ui-monospace, monospace; }
code, pre { font-family: ui-monospace, monospace; background: #f3f3f3; padding: 0 .2em; }
pre { padding: .7em; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid #e4e4e4; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'"


def headers(content_type: str, body: bytes, policy: str | None = None) -> Headers:
    """The headers of an answer: type, length, and what a browser may not do with it."""
    made = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
    for name, value in SAFE:
        ours = name == b"content-security-policy" and policy is not None
        made.append((name, (policy or "").encode() if ours else value))
    return made


@functools.cache
def openapi() -> Answer:
    """The answer with the OpenAPI document."""
    body = json.dumps(document(), indent=1).encode()
    return 200, headers("application/json", body), body


@functools.cache
def docs() -> Answer:
    """The answer with the document for people."""
    body = _page(document()).encode()
    return 200, headers("text/html; charset=utf-8", body, _PAGE_POLICY), body


def _page(about: dict[str, Any]) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(about['info']['title'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_text(about['info']['title'])}</h1><p>{_text(about['info']['description'])}</p>",
        '<p>For machines: <a href="openapi.json">openapi.json</a></p>',
    ]
    for path, methods in about["paths"].items():
        for method, operation in methods.items():
            parts += _operation(path, method, operation, about["components"]["responses"])
    parts += ["<h2>A batch in JSON</h2>", _schema(about["components"]["schemas"]["Batch"])]
    return "\n".join([*parts, "</body></html>\n"])


def _operation(
    path: str, method: str, operation: dict[str, Any], shared: dict[str, Any]
) -> list[str]:
    parts = [
        f"<h2><b>{method.upper()} {_text(path)}</b></h2>",
        f"<p><strong>{_text(operation['summary'])}</strong> {_text(operation['description'])}</p>",
    ]
    if "requestBody" in operation:
        types = ", ".join(
            f"<code>{_text(name)}</code>" for name in operation["requestBody"]["content"]
        )
        parts.append(f"<p>Body: {types}</p>")
    parts.append("<table><tr><th>Status</th><th>Meaning</th></tr>")
    for status, answer in operation["responses"].items():
        if "$ref" in answer:
            answer = shared[answer["$ref"].rpartition("/")[2]]
        lines = "<br>".join(_text(line) for line in answer["description"].splitlines())
        parts.append(f"<tr><td>{status}</td><td>{lines}</td></tr>")
    return [*parts, "</table>"]


def _schema(schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code></td><td>{_text(field.get('type', ''))}</td>"
        f"<td>{_text(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    example = _text(json.dumps(schema["example"], indent=2))
    head = "<tr><th>Field</th><th>Type</th><th>Meaning</th></tr>"
    return f"<table>{head}{rows}</table><pre>{example}</pre>"


def _text(value: object) -> str:
    return html.escape(str(value))


if __name__ == "__main__":
    print(json.dumps(document(), indent=2, ensure_ascii=False))
