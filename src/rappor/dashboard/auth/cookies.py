"""Cookies: the session's secret, one for visitors who are not logged in, and tastes."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from rappor.dashboard.auth.csrf import token_for
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.settings import DashboardSettings
from rappor.dashboard.state import DashboardState

SESSION, VISIT, THEME, KEYS = "rappor-session", "rappor-visit", "rappor-theme", "rappor-keys"
THEMES = ("light", "dark")
_YEAR = int(timedelta(days=365).total_seconds())
_STRICT: Literal["strict"] = "strict"


def named(name: str, settings: DashboardSettings) -> str:
    """The cookie's name: with HTTPS one that only this host can have set.

    Ports do not keep cookies apart, so two dashboards on one machine are told apart by name.
    """
    return f"__Host-{name}" if settings.secure else f"{name}-{settings.port}"


def visitor_of(request: Request, state: DashboardState, settings: DashboardSettings) -> Visitor:
    """Who asks, by the cookies of a request."""
    cookies = request.cookies
    theme = cookies.get(THEME, "")
    theme, keys = theme if theme in THEMES else "", cookies.get(KEYS) != "off"
    secret = cookies.get(named(SESSION, settings), "")
    found = state.session(secret) if secret else None
    if found is not None:
        return Visitor(*found, csrf=token_for(secret), theme=theme, keys=keys)
    visit = cookies.get(named(VISIT, settings), "")
    return Visitor(csrf=token_for(visit) if visit else "", theme=theme, keys=keys)


def put(response: Response, name: str, secret: str, settings: DashboardSettings) -> None:
    """Set a cookie that no script reads and no other site sends; it ends with the browser."""
    response.set_cookie(
        named(name, settings), secret, httponly=True, samesite=_STRICT, secure=settings.secure
    )


def drop(response: Response, name: str, settings: DashboardSettings) -> None:
    """Take a cookie away."""
    response.delete_cookie(
        named(name, settings), httponly=True, samesite=_STRICT, secure=settings.secure
    )


def put_taste(response: Response, name: str, value: str, settings: DashboardSettings) -> None:
    """Remember light or dark, or the keys; an empty value forgets it."""
    if value:
        response.set_cookie(
            name, value, _YEAR, httponly=True, samesite=_STRICT, secure=settings.secure
        )
    else:
        response.delete_cookie(name, httponly=True, samesite=_STRICT, secure=settings.secure)
