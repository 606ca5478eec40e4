"""The application: each request is given its visitor, checked against its route, then answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rappor.dashboard.auth import csrf
from rappor.dashboard.auth.cookies import visitor_of
from rappor.dashboard.auth.roles import PUBLIC
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.context import Desk
from rappor.dashboard.forms import BadForm, TooLarge, read_form
from rappor.dashboard.headers import SafeHeaders
from rappor.dashboard.problems import (
    forbidden,
    log_in_first,
    not_found,
    problem,
    without_paths,
)
from rappor.dashboard.routes import PAGES
from rappor.dashboard.routing import Page
from rappor.dashboard.timeouts import BODY_SECONDS
from rappor.dashboard.words import bytes_text
from rappor.errors import ParamsError, RapporError, StoreError

_LOG = logging.getLogger("rappor.dashboard")
Handler = Callable[[Request], Awaitable[Response]]


class _App(Starlette):
    """Starlette with the headers outside of everything: also on what it answers by itself."""

    def build_middleware_stack(self) -> ASGIApp:
        return SafeHeaders(super().build_middleware_stack())


def build(desk: Desk, pages: tuple[Page, ...] = PAGES) -> ASGIApp:
    """The application of one desk."""
    routes = [
        Route(page.path, _guarded(desk, page), methods=list(page.methods), name=page.name)
        for page in pages
    ]

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return await run_in_threadpool(_missing, desk, request, status)

    app = _App(routes=routes, exception_handlers={HTTPException: missing})
    app.router.redirect_slashes = False  # it would answer before a host or a visitor is looked at
    return app


def _missing(desk: Desk, request: Request, status: int) -> Response:
    if not _right_host(desk, request):
        return _wrong_host()
    visitor = _visitor(desk, request)
    if isinstance(visitor, Response):
        return visitor
    if visitor.role is None:  # nobody learns from outside which pages there are
        return log_in_first(request)
    if status == 405:
        text = "This address takes another kind of request."
        return problem(desk, request, visitor, 405, "This cannot be done here", text)
    return not_found(desk, request, visitor)


def _guarded(desk: Desk, page: Page) -> Handler:
    """The route's endpoint behind all checks, in their order."""

    async def answer(request: Request) -> Response:
        if not _right_host(desk, request):
            return _wrong_host()
        visitor = await run_in_threadpool(_visitor, desk, request)
        if isinstance(visitor, Response):
            return visitor
        if page.roles is not PUBLIC and visitor.role is None:
            return log_in_first(request)
        if not visitor.may(page.roles):
            return await run_in_threadpool(forbidden, desk, request, visitor, page.roles)
        if request.method == "POST":
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    request.state.form = await read_form(request, page.most_bytes)
            except TimeoutError:
                text = f"It did not arrive within {BODY_SECONDS:.0f} seconds."
                return problem(desk, request, visitor, 408, "This took too long", text)
            except TooLarge:
                text = f"It may have {bytes_text(page.most_bytes)}."
                return problem(desk, request, visitor, 413, "This is too much at once", text)
            except BadForm:
                text = "It did not arrive whole, or was not sent from a page of ours."
                return problem(desk, request, visitor, 400, "This form cannot be read", text)
            if not csrf.good(request, visitor.csrf, request.state.form.get(csrf.FIELD)):
                text = "It was not sent from a page of yours, or the page is too old. Load it anew."
                return problem(desk, request, visitor, 403, "This form was not accepted", text)
        return await run_in_threadpool(_answer, desk, page, request, visitor)

    return answer


def _visitor(desk: Desk, request: Request) -> Visitor | Response:
    """Who asks; a page that says so where that cannot be found out."""
    try:
        return visitor_of(request, desk.state, desk.settings)
    except StoreError as error:
        _LOG.error("visitor: %s", error)
        title = "The dashboard's own file cannot be read"
        text = _sentence(without_paths(str(error), desk.settings))
        return problem(desk, request, Visitor(), 503, title, text)
    except Exception:
        return _fault(desk, request, Visitor(), "visitor")


def _answer(desk: Desk, page: Page, request: Request, visitor: Visitor) -> Response:
    """The page, or a page that says what went wrong; never a traceback."""

    def said(error: Exception) -> str:
        return _sentence(without_paths(str(error), desk.settings))

    try:
        return page.endpoint(desk, request, visitor)
    except ParamsError as error:
        return problem(desk, request, visitor, 404, "This is not there", said(error))
    except StoreError as error:
        _LOG.error("%s: %s", page.name, error)
        return problem(desk, request, visitor, 503, "The store cannot be read", said(error))
    except RapporError as error:
        return problem(desk, request, visitor, 400, "This cannot be done", said(error))
    except Exception:
        return _fault(desk, request, visitor, page.name)


def _fault(desk: Desk, request: Request, visitor: Visitor, where: str) -> Response:
    _LOG.exception("%s failed", where)
    text = "The log of the dashboard says why. Nothing was changed."
    return problem(desk, request, visitor, 500, "Something went wrong here", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _right_host(desk: Desk, request: Request) -> bool:
    """Whether a request names this dashboard, and nothing else beside it."""
    hosts = request.headers.getlist("host")
    return len(hosts) == 1 and desk.settings.knows_host(hosts[0])


def _wrong_host() -> Response:
    return PlainTextResponse("This dashboard has another name.\n", 421)
