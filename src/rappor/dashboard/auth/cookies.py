"""Cookies and the tokens of forms: sessions, visitors who are not logged in, preferences.

A form's token is an HMAC with the secret in the visitor's cookie, which no other site can read.
Cookies are SameSite=Strict too, so that a form of another site comes without them.
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.settings import DashboardSettings
from rappor.dashboard.state import DashboardState

SESSION, VISIT, THEME, KEYS = "rappor-session", "rappor-visit", "rappor-theme", "rappor-keys"
THEMES = ("light", "dark")
_YEAR = int(timedelta(days=365).total_seconds())
_STRICT: Literal["strict"] = "strict"
CSRF_FIELD = "csrf"


def cookie_name(name: str, settings: DashboardSettings) -> str:
    """The cookie's name; with HTTPS, one that only this host can have set.

    Browsers share cookies between ports, so the name tells two dashboards on one machine apart.
    """
    return f"__Host-{name}" if settings.secure else f"{name}-{settings.port}"


def visitor_of(request: Request, state: DashboardState, settings: DashboardSettings) -> Visitor:
    """The visitor, read from the cookies of a request."""
    cookies = request.cookies
    theme = cookies.get(THEME, "")
    theme, keys = theme if theme in THEMES else "", cookies.get(KEYS) != "off"
    secret = cookies.get(cookie_name(SESSION, settings), "")
    found = state.session(secret) if secret else None
    if found is not None:
        return Visitor(*found, csrf=csrf_token(secret), theme=theme, keys=keys)
    visit = cookies.get(cookie_name(VISIT, settings), "")
    return Visitor(csrf=csrf_token(visit) if visit else "", theme=theme, keys=keys)


def put(response: Response, name: str, secret: str, settings: DashboardSettings) -> None:
    """Set a cookie that no script reads and no other site sends; it ends with the browser."""
    response.set_cookie(
        cookie_name(name, settings), secret, httponly=True, samesite=_STRICT, secure=settings.secure
    )


def drop(response: Response, name: str, settings: DashboardSettings) -> None:
    """Delete a cookie."""
    response.delete_cookie(
        cookie_name(name, settings), httponly=True, samesite=_STRICT, secure=settings.secure
    )


def put_taste(response: Response, name: str, value: str, settings: DashboardSettings) -> None:
    """Remember the theme, or whether keys are on; an empty value forgets it."""
    if value:
        response.set_cookie(
            name, value, _YEAR, httponly=True, samesite=_STRICT, secure=settings.secure
        )
    else:
        response.delete_cookie(name, httponly=True, samesite=_STRICT, secure=settings.secure)


def csrf_token(secret: str) -> str:
    """The token that a form sends back, made from the secret in the cookie.

    >>> len(csrf_token("abc")), csrf_token("abc") == csrf_token("abd")
    (64, False)
    """
    return hmac.digest(secret.encode(), b"rappor dashboard form", "sha256").hex()


def same_origin(request: Request) -> bool:
    """Whether the browser says that a request came from a page of this origin.

    If the browser does not say, the token decides. Under this referrer policy a browser sends
    "null" as the origin of a form, together with same-origin.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def form_is_ours(request: Request, expected: str, given: object) -> bool:
    """Whether a form has the right token and comes from this origin."""
    if not expected or not isinstance(given, str) or not given.isascii():
        return False
    return same_origin(request) and hmac.compare_digest(expected, given)
