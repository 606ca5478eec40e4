"""The login page, logging out, and the preferences that cookies keep."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.dashboard.auth import cookies
from rappor.dashboard.auth.cookies import csrf_token
from rappor.dashboard.auth.roles import EVERYONE, PUBLIC, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.forms import back, safe_next
from rappor.dashboard.page_access import Page
from rappor.dashboard.state.accounts import new_secret

_MAX_SECRET = 200  # characters of a token or link; real ones have 36


def login(context: Context, request: Request, visitor: Visitor) -> Response:
    """The form for a token, or the button for a one-time link."""
    wanted = safe_next(request.query_params.get("next", "/"))
    link = request.query_params.get("link", "")[:_MAX_SECRET]
    if visitor.role is not None and not link:
        return RedirectResponse(wanted, 303)
    return _form(context, request, visitor, wanted, link=link)


def _form(
    context: Context,
    request: Request,
    visitor: Visitor,
    wanted: str,
    *,
    link: str = "",
    wrong: str = "",
    status: int = 200,
) -> Response:
    """The login page; a visitor without a cookie gets one, for the form's token."""
    whose = context.state.look_link(link) if link else None
    if link and whose is None:
        wrong, status = "This link was used already, or is older than 15 minutes.", 403
    visit = "" if visitor.csrf else new_secret()
    csrf = visitor.csrf or csrf_token(visit)
    response = context.render(
        "login.html",
        request,
        visitor,
        status,
        wanted=wanted,
        link=link if whose else "",
        whose=whose,
        wrong=wrong,
        csrf=csrf,
    )
    if visit:
        cookies.put(response, cookies.VISIT, visit, context.settings)
    return response


def log_in(context: Context, request: Request, visitor: Visitor) -> Response:
    """Start a session, or say that token or link is not valid."""
    form = request.state.form
    token = str(form.get("token", ""))[:_MAX_SECRET].strip()
    link = str(form.get("link", ""))[:_MAX_SECRET]
    wanted = back(request)
    secret = context.state.log_in(token=token, link=link)
    if secret is None:
        wrong = "This token is not valid: it was revoked, or not copied completely."
        if link:
            wrong = "This link was used already, or is older than 15 minutes."
        return _form(context, request, visitor, wanted, wrong=wrong, status=403)
    response = RedirectResponse(wanted, 303)
    old = request.cookies.get(cookies.cookie_name(cookies.SESSION, context.settings))
    if old:
        context.state.log_out(old)
    cookies.put(response, cookies.SESSION, secret, context.settings)
    cookies.drop(response, cookies.VISIT, context.settings)
    return response


def log_out(context: Context, request: Request, _: Visitor) -> Response:
    """End the session."""
    secret = request.cookies.get(cookies.cookie_name(cookies.SESSION, context.settings), "")
    context.state.log_out(secret)
    response = RedirectResponse("/login", 303)
    cookies.drop(response, cookies.SESSION, context.settings)
    return response


def taste(context: Context, request: Request, _: Visitor) -> Response:
    """Remember the theme, and whether keys are on."""
    form = request.state.form
    response = RedirectResponse(back(request), 303)
    theme = form.get("theme")
    if theme is not None:
        known = str(theme) if theme in cookies.THEMES else ""
        cookies.put_taste(response, cookies.THEME, known, context.settings)
    keys = form.get("keys")
    if keys is not None:
        cookies.put_taste(response, cookies.KEYS, "off" if keys == "off" else "", context.settings)
    return response


PAGES = (
    Page(path="/login", endpoint=login, roles=PUBLIC, name="login"),
    Page(path="/login", endpoint=log_in, roles=PUBLIC, name="log_in", methods=("POST",)),
    Page(path="/logout", endpoint=log_out, roles=EVERYONE, name="logout", methods=("POST",)),
    Page(path="/taste", endpoint=taste, roles=EVERYONE, name="taste", methods=("POST",)),
)
