"""The application: each request is given its visitor, checked against its route, then answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rappor.dashboard.access import csrf
from rappor.dashboard.access.cookies import visitor_of
from rappor.dashboard.access.roles import PUBLIC
from rappor.dashboard.access.visitor import Visitor
from rappor.dashboard.desk import Desk
from rappor.dashboard.forms import MOST_BYTES, TooLarge, read_form
from rappor.dashboard.headers import SafeHeaders
from rappor.dashboard.problems import forbidden, log_in_first, not_found, problem
from rappor.dashboard.routes import PAGES
from rappor.dashboard.routing import Page
from rappor.errors import ParamsError, RapporError, StoreError

_LOG = logging.getLogger("rappor.dashboard")
Handler = Callable[[Request], Awaitable[Response]]


def build(desk: Desk, pages: tuple[Page, ...] = PAGES) -> ASGIApp:
    """The application of one desk."""
    routes = [
        Route(page.path, _guarded(desk, page), methods=list(page.methods), name=page.name)
        for page in pages
    ]

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return await run_in_threadpool(_missing, desk, request, status)

    return Starlette(
        routes=routes,
        middleware=[Middleware(SafeHeaders)],
        exception_handlers={HTTPException: missing},
    )


def _missing(desk: Desk, request: Request, status: int) -> Response:
    if not desk.settings.knows_host(request.headers.get("host", "")):
        return _wrong_host()
    visitor = visitor_of(request, desk.state, desk.settings)
    if visitor.role is None:  # nobody learns from outside which pages there are
        return log_in_first(request)
    if status == 405:
        text = "This address takes another kind of request."
        return problem(desk, request, visitor, 405, "This cannot be done here", text)
    return not_found(desk, request, visitor)


def _guarded(desk: Desk, page: Page) -> Handler:
    """The route's endpoint behind all checks, in their order."""

    async def answer(request: Request) -> Response:
        if not desk.settings.knows_host(request.headers.get("host", "")):
            return _wrong_host()
        visitor = await run_in_threadpool(visitor_of, request, desk.state, desk.settings)
        if page.roles is not PUBLIC and visitor.role is None:
            return log_in_first(request)
        if not visitor.may(page.roles):
            return await run_in_threadpool(forbidden, desk, request, visitor, page.roles)
        if request.method == "POST":
            try:
                request.state.form = await read_form(request)
            except TooLarge:
                text = f"A form may have {MOST_BYTES // 2**20} MiB."
                return problem(desk, request, visitor, 413, "This is too much at once", text)
            if not csrf.good(request, visitor.csrf, request.state.form.get(csrf.FIELD)):
                text = "It was not sent from a page of yours, or the page is too old. Load it anew."
                return problem(desk, request, visitor, 403, "This form was not accepted", text)
        return await run_in_threadpool(_answer, desk, page, request, visitor)

    return answer


def _answer(desk: Desk, page: Page, request: Request, visitor: Visitor) -> Response:
    """The page, or a page that says what went wrong; never a traceback."""
    try:
        return page.endpoint(desk, request, visitor)
    except ParamsError as error:
        return problem(desk, request, visitor, 404, "This is not there", _sentence(error))
    except StoreError as error:
        _LOG.error("%s: %s", page.name, error)
        text = _sentence(error).replace(str(desk.settings.data), "").lstrip("/")
        return problem(desk, request, visitor, 503, "The store cannot be read", text)
    except RapporError as error:
        return problem(desk, request, visitor, 400, "This cannot be done", _sentence(error))
    except Exception:
        _LOG.exception("%s failed", page.name)
        text = "The log of the dashboard says why. Nothing was changed."
        return problem(desk, request, visitor, 500, "Something went wrong here", text)


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _wrong_host() -> Response:
    return PlainTextResponse("This dashboard has another name.\n", 421)
