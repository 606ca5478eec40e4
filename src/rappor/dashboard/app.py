"""The application: find the visitor of a request, check the route's rules, then answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rappor.dashboard.auth import cookies
from rappor.dashboard.auth.cookies import visitor_of
from rappor.dashboard.auth.roles import PUBLIC, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.forms import BadForm, TooLarge, read_form
from rappor.dashboard.page_access import Page
from rappor.dashboard.problems import (
    forbidden,
    log_in_first,
    not_found,
    problem,
    without_paths,
)
from rappor.dashboard.routes import PAGES
from rappor.dashboard.templating import bytes_text
from rappor.dashboard.timeouts import BODY_SECONDS
from rappor.errors import ParamsError, RapporError, StoreError

_LOG = logging.getLogger("rappor.dashboard")
Handler = Callable[[Request], Awaitable[Response]]
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
ALWAYS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class _App(Starlette):
    """Starlette with the safe headers on every answer, also on those it makes itself."""

    def build_middleware_stack(self) -> ASGIApp:
        return SafeHeaders(super().build_middleware_stack())


def build(context: Context, pages: tuple[Page, ...] = PAGES) -> ASGIApp:
    """The application that serves one context."""
    routes = [
        Route(page.path, _guarded(context, page), methods=list(page.methods), name=page.name)
        for page in pages
    ]

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return await run_in_threadpool(_missing, context, request, status)

    app = _App(routes=routes, exception_handlers={HTTPException: missing})
    app.router.redirect_slashes = (
        False  # it would answer before the host and the visitor are checked
    )
    return app


def _missing(context: Context, request: Request, status: int) -> Response:
    if not _right_host(context, request):
        return _wrong_host()
    visitor = _visitor(context, request)
    if isinstance(visitor, Response):
        return visitor
    if visitor.role is None:  # visitors who are not logged in do not learn which pages exist
        return log_in_first(request)
    if status == 405:
        text = "This address takes another kind of request."
        return problem(context, request, visitor, 405, "This cannot be done here", text)
    return not_found(context, request, visitor)


def _guarded(context: Context, page: Page) -> Handler:
    """The route's endpoint, behind all checks in their order."""

    async def answer(request: Request) -> Response:
        if not _right_host(context, request):
            return _wrong_host()
        visitor = await run_in_threadpool(_visitor, context, request)
        if isinstance(visitor, Response):
            return visitor
        if page.roles is not PUBLIC and visitor.role is None:
            return log_in_first(request)
        if not visitor.may(page.roles):
            return await run_in_threadpool(forbidden, context, request, visitor, page.roles)
        if request.method == "POST":
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    request.state.form = await read_form(request, page.max_bytes)
            except TimeoutError:
                text = f"It did not arrive within {BODY_SECONDS:.0f} seconds."
                return problem(context, request, visitor, 408, "This took too long", text)
            except TooLarge:
                text = f"It may have at most {bytes_text(page.max_bytes)}."
                return problem(context, request, visitor, 413, "This is too much at once", text)
            except BadForm:
                text = "It did not arrive complete, or no page of this dashboard sent it."
                return problem(context, request, visitor, 400, "This form cannot be read", text)
            if not cookies.form_is_ours(
                request, visitor.csrf, request.state.form.get(cookies.CSRF_FIELD)
            ):
                text = "No page of yours sent it, or the page is too old. Reload it."
                return problem(context, request, visitor, 403, "This form was not accepted", text)
        return await run_in_threadpool(_answer, context, page, request, visitor)

    return answer


def _visitor(context: Context, request: Request) -> Visitor | Response:
    """The visitor of a request, or an error page if the state cannot be read."""
    try:
        return visitor_of(request, context.state, context.settings)
    except StoreError as error:
        _LOG.error("visitor: %s", error)
        title = "The dashboard's own file cannot be read"
        text = _sentence(without_paths(str(error), context.settings))
        return problem(context, request, Visitor(), 503, title, text)
    except Exception:
        return _fault(context, request, Visitor(), "visitor")


def _answer(context: Context, page: Page, request: Request, visitor: Visitor) -> Response:
    """The page, or an error page; never a traceback."""

    def said(error: Exception) -> str:
        return _sentence(without_paths(str(error), context.settings))

    try:
        return page.endpoint(context, request, visitor)
    except ParamsError as error:
        return problem(context, request, visitor, 404, "This is not there", said(error))
    except StoreError as error:
        _LOG.error("%s: %s", page.name, error)
        return problem(context, request, visitor, 503, "The store cannot be read", said(error))
    except RapporError as error:
        return problem(context, request, visitor, 400, "This cannot be done", said(error))
    except Exception:
        return _fault(context, request, visitor, page.name)


def _fault(context: Context, request: Request, visitor: Visitor, where: str) -> Response:
    _LOG.exception("%s failed", where)
    text = "The log of the dashboard says why. Nothing was changed."
    return problem(context, request, visitor, 500, "Something went wrong here", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _right_host(context: Context, request: Request) -> bool:
    """Whether a request names this dashboard, and no other host."""
    hosts = request.headers.getlist("host")
    return len(hosts) == 1 and context.settings.knows_host(hosts[0])


def _wrong_host() -> Response:
    return PlainTextResponse("This dashboard has another name.\n", 421)


class SafeHeaders:
    """Puts the safe headers on every answer, errors included; no cache may keep a page."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)
