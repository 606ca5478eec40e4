"""The OpenAPI document of the collector, and a page that renders it: no script, no other host."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from typing import Any

from rappor.collector.openapi import document
from rappor.collector.refusal import SAFE, Headers

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
    """The headers of an answer: its type and length, and nothing that a browser may do with it."""
    made = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
    for name, value in SAFE:
        ours = name == b"content-security-policy" and policy is not None
        made.append((name, (policy or "").encode() if ours else value))
    return made


@functools.cache
def openapi() -> Answer:
    """The OpenAPI document."""
    body = json.dumps(document(), indent=1).encode()
    return 200, headers("application/json", body), body


@functools.cache
def docs() -> Answer:
    """The same document for people."""
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
            f"<code>{_text(each)}</code>" for each in operation["requestBody"]["content"]
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
