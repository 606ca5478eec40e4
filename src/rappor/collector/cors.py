"""Which web pages may send reports: CORS for the address of reports, by exact origin.

A browser asks first, with a preflight request, because a batch is not one of the content types that
every page may send. An origin that is not listed gets the answer that it would get if nothing were
allowed, so its browser sends nothing. Credentials are never allowed: no cookie reaches a collector.
This protects the people whose browsers visit a page. It does not keep forged reports away, which
need no browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address
from typing import Any
from urllib.parse import urlsplit

from rappor.checks import show
from rappor.collector.refusal import Headers
from rappor.errors import ParamsError
from rappor.host import LOOPBACK_HOSTS

PREFLIGHT_SECONDS = 86_400  # how long a browser may remember a preflight; most take two hours
ALLOWED_HEADERS = "authorization, content-type"  # of a request; a client sends no others
EXPOSED_HEADERS = "retry-after"  # of an answer; the body is readable, and all else is not needed
_EXTENSIONS = ("chrome-extension", "moz-extension", "safari-web-extension")
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_PORTS = {"http": 80, "https": 443}


def check_origin(origin: Any, name: str = "allow_origins") -> str:
    """An origin exactly as browsers write it, or ParamsError.

    https on any host, http on this machine, or a browser extension.

    >>> check_origin("https://app.example.org"), check_origin("http://localhost:8080")
    ('https://app.example.org', 'http://localhost:8080')
    """
    wanted = f"{name} must be an origin such as https://app.example.org"
    if not isinstance(origin, str):
        raise ParamsError(f"{wanted}, got {show(origin)}")
    if origin in ("*", "null"):
        raise ParamsError(f"{wanted}, got {origin!r}: name each origin that may report")
    scheme, found, rest = origin.partition("://")
    if scheme in _EXTENSIONS and _ID.fullmatch(rest):
        return origin
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ParamsError(f"{wanted}, got {show(origin)}") from None
    if not found or scheme not in _PORTS or not _is_host(host):
        raise ParamsError(f"{wanted}, got {show(origin)}")
    if scheme == "http" and host not in LOOPBACK_HOSTS:
        raise ParamsError(
            f"{name} must be https, got {show(origin)}: a page without encryption can be "
            "changed on its way"
        )
    shown = f"[{host}]" if ":" in host else host
    exact = f"{scheme}://{shown}" + ("" if port in (None, _PORTS[scheme]) else f":{port}")
    if origin != exact:
        raise ParamsError(
            f"{name} must be written as browsers write it, got {show(origin)}: did you mean "
            f"{exact}?"
        )
    return origin


def _is_host(host: str) -> bool:
    if ":" not in host:
        return len(host) <= 253 and bool(_HOST.fullmatch(host))
    try:
        return str(IPv6Address(host)) == host
    except AddressValueError:
        return False


class Cors:
    """Which requests come from a page of an allowed origin, and what their answers say."""

    def __init__(self, origins: Iterable[str]) -> None:
        """Allow these origins, each checked by `check_origin`."""
        self._allowed = {
            origin.encode("ascii"): (b"access-control-allow-origin", origin.encode("ascii"))
            for origin in origins
        }

    def is_preflight(self, method: str, request: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether an allowed page asks if it may send a batch."""
        return (
            method == "OPTIONS"
            and (b"access-control-request-method", b"POST") in list(request)
            and self._origin(request) is not None
        )

    def answer(self, method: str, request: Iterable[tuple[bytes, bytes]]) -> Headers:
        """What an answer at the address of reports has in addition."""
        allowed = self._origin(request)
        if allowed is None:
            return [_VARY]
        if self.is_preflight(method, request):
            return [allowed, *_PREFLIGHT, _VARY]
        return [allowed, _EXPOSED, _VARY]

    def _origin(self, request: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
        """The field that allows the request's origin; None if it has none, several, or another."""
        found = [value for name, value in request if name == b"origin"]
        return self._allowed.get(found[0]) if len(found) == 1 else None


_VARY = (b"vary", b"origin")
_EXPOSED = (b"access-control-expose-headers", EXPOSED_HEADERS.encode())
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", ALLOWED_HEADERS.encode()),
    (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
]
