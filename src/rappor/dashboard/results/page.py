"""Results of a collection: strings, categories or numbers, each with its interval (R42)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from rappor.charts.render import to_png, to_svg
from rappor.checks import show
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import DONE, TooManyJobs
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import DECODERS, arguments_of, begin, look
from rappor.dashboard.problems import problem
from rappor.dashboard.results import downloads
from rappor.dashboard.results.downloads import python_code
from rappor.dashboard.results.page_context import drawn, page_context
from rappor.dashboard.results.serialization import StoredDecode
from rappor.dashboard.routing import Endpoint, Page
from rappor.dashboard.tables import json_response
from rappor.errors import ParamsError

_FILES_SECONDS = 300.0  # that a download waits for its files
MAX_DOWNLOADS = 4  # that wait at once: each holds a thread that pages need
_downloads = threading.BoundedSemaphore(MAX_DOWNLOADS)
_PICTURES: dict[str, tuple[Callable[[Any], str | bytes], str]] = {
    "svg": (to_svg, "image/svg+xml"),
    "png": (to_png, "image/png"),
}


def _viewed(answer: Callable[[Context, Request, Visitor, PageQuery], Response]) -> Endpoint:
    """An endpoint that is given the view of its address, or says what is wrong with that."""

    def endpoint(context: Context, request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        context.catalogue.get(name)  # ParamsError: not there
        try:
            query = PageQuery.of(request.query_params, context.catalogue, context.state, name)
        except ParamsError as error:
            text = f"{str(error)[:1].upper()}{str(error)[1:]}."
            return problem(context, request, visitor, 400, "This address cannot be read", text)
        try:
            return answer(context, request, visitor, query)
        except TooManyJobs as error:
            return problem(context, request, visitor, 503, "Too much at once", f"{error}.")

    return endpoint


@_viewed
def results(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page."""
    found = look(context, query, visitor)
    more = page_context(context, query, visitor, found)
    return context.render("results.html", request, visitor, section="collections", **more)


@_viewed
def decode(context: Context, _request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Decode (again), and go to the page."""
    job = begin(context, query, visitor)
    context.state.audit(visitor.actor, "decode", f"{query.collection}: {job.label}")
    return RedirectResponse(query.path(), 303)


def _kept(
    answer: Callable[[Context, Request, PageQuery, StoredDecode], Response],
) -> Callable[[Context, Request, Visitor, PageQuery], Response]:
    """An endpoint of a result that must be there already."""

    def endpoint(
        context: Context, request: Request, visitor: Visitor, query: PageQuery
    ) -> Response:
        found = look(context, query, visitor, start=False)
        if found.kept is None:
            text = f"Nothing is decoded yet ({found.state}). Open the page first."
            return problem(context, request, visitor, 409, "There is no result", text)
        return answer(context, request, query, found.kept)

    return endpoint


@_viewed
@_kept
def as_json(_desk: Context, _request: Request, query: PageQuery, kept: StoredDecode) -> Response:
    """What the command line prints with --json --all."""
    return json_response(downloads.document(kept, query))


@_viewed
@_kept
def as_csv(_desk: Context, _request: Request, query: PageQuery, kept: StoredDecode) -> Response:
    """A results.csv."""
    text = downloads.csv_text(kept, query)
    return _file(text.encode("utf-8", "replace"), "text/csv; charset=utf-8", query, "csv")


@_viewed
@_kept
def as_parquet(_desk: Context, _request: Request, query: PageQuery, kept: StoredDecode) -> Response:
    """A Parquet file."""
    body = downloads.parquet_bytes(kept, query)
    return _file(body, "application/vnd.apache.parquet", query, "parquet")


@_viewed
@_kept
def picture(_desk: Context, request: Request, query: PageQuery, kept: StoredDecode) -> Response:
    """One chart as SVG or PNG; with `theme` in dark colours."""
    name, _, ending = request.path_params["file"].rpartition(".")
    theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    panels = drawn(kept, query, theme, page=False) if kept.decoded.reports else {}
    if name not in panels or ending not in _PICTURES:
        raise ParamsError(f"this query has no chart {show(request.path_params['file'])}")
    convert, kind = _PICTURES[ending]
    body = convert(panels[name].in_file(theme))
    data = body.encode() if isinstance(body, str) else body
    inline = "download" not in request.query_params
    return _file(data, kind, query, f"{name}.{ending}", inline=inline)


@_viewed
def google(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """google/rappor's files in a zip; the worker makes them, so that pages stay quick."""
    found = look(context, query, visitor, start=False)
    if not found.reports:
        text = "Nothing arrived for this time."
        return problem(context, request, visitor, 409, "There are no reports", text)
    key = f"google-{query.key}-{found.reports}"
    if not _downloads.acquire(blocking=False):
        raise TooManyJobs(f"{MAX_DOWNLOADS} downloads are waiting: try again later")
    try:
        job = context.jobs.start(
            "google",
            lambda: arguments_of(context, query),
            key,
            label="Writing google/rappor files",
            actor=visitor.actor,
            collection=query.collection,
        )
        ended = context.jobs.wait(job.id, _FILES_SECONDS)
    finally:
        _downloads.release()
    saved = context.state.result(key)
    if ended is None or ended.state != DONE or saved is None or saved.table is None:
        reason = (ended.error if ended else "") or "It took too long, or was cancelled."
        return problem(context, request, visitor, 503, "The files could not be made", reason)
    context.state.audit(visitor.actor, "export", f"{query.collection}: google/rappor files")
    return _file(saved.table, "application/zip", query, "google.zip")


@_viewed
def as_python(context: Context, _request: Request, _visitor: Visitor, query: PageQuery) -> Response:
    """The code that gives the same numbers."""
    collection = context.catalogue.get(query.collection, query.version)
    return PlainTextResponse(python_code(query, collection))


def _file(
    body: bytes, kind: str, query: PageQuery, ending: str, *, inline: bool = False
) -> Response:
    times = dict.fromkeys((query.periods[:1] + query.periods[-1:]) or ("nothing",))
    parts = [query.collection, *times, *(value for _, value in query.dimensions)]
    name = "-".join(parts)
    safe = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in name
    )
    how = "inline" if inline else "attachment"
    headers = {"content-disposition": f'{how}; filename="{safe}.{ending}"'}
    return Response(body, headers=headers, media_type=kind)


def _page(path: str, endpoint: Endpoint, name: str) -> Page:
    return Page(path=f"/collections/{path}", endpoint=endpoint, roles=EVERYONE, name=name)


# Files first: {name} alone would take a name with its ending.
PAGES = (
    _page("{name}.json", as_json, "results-json"),
    _page("{name}.csv", as_csv, "results-csv"),
    _page("{name}.parquet", as_parquet, "results-parquet"),
    Page(
        path="/collections/{name}.google.zip",
        endpoint=google,
        roles=DECODERS,
        name="results-google",
    ),
    _page("{name}.py", as_python, "results-python"),
    _page("{name}/charts/{file}", picture, "results-chart"),
    _page("{name}", results, "results"),
    Page(
        path="/collections/{name}/decode",
        endpoint=decode,
        roles=DECODERS,
        name="results-decode",
        methods=("POST",),
    ),
)
