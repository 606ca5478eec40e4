"""The Results page of a collection, and its downloads."""

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
from rappor.dashboard.page_access import Page
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import DECODERS, begin, page_state, task_arguments
from rappor.dashboard.problems import problem
from rappor.dashboard.query_reading import Answer, current_name, with_query
from rappor.dashboard.results import downloads
from rappor.dashboard.results.downloads import python_code
from rappor.dashboard.results.page_context import decode_work, drawn, page_context, read_result
from rappor.dashboard.results.serialization import StoredDecode
from rappor.dashboard.tables import json_response
from rappor.errors import ParamsError
from rappor.mechanism.kinds import KINDS

_FILES_SECONDS = 300.0  # how long a download waits for its files
MAX_DOWNLOADS = 4  # waiting downloads: each holds a thread that pages need
_downloads = threading.BoundedSemaphore(MAX_DOWNLOADS)
_PICTURES: dict[str, tuple[Callable[[Any], str | bytes], str]] = {
    "svg": (to_svg, "image/svg+xml"),
    "png": (to_png, "image/png"),
}


def results(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page; that of a tuple is Associations."""
    if context.catalogue.get(query.collection, query.version).kind == "tuple":
        return RedirectResponse(query.path("/associations"), 303)
    state = page_state(context, decode_work(context, query), query, visitor)
    values = page_context(context, query, visitor, state)
    return context.render("results.html", request, visitor, section="collections", **values)


def decode(context: Context, _request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Decode (again), and go to the page."""
    job = begin(context, decode_work(context, query), visitor.actor)
    context.state.audit(visitor.actor, "decode", f"{query.collection}: {job.label}")
    return RedirectResponse(query.path(), 303)


def _of_result(answer: Callable[[Context, Request, PageQuery, StoredDecode], Response]) -> Answer:
    """An answer that needs a result; without one it says so and starts nothing."""

    def with_result(
        context: Context, request: Request, visitor: Visitor, query: PageQuery
    ) -> Response:
        state = page_state(context, decode_work(context, query), query, visitor, start=False)
        if state.saved is None:
            text = "Nothing is decoded yet. Open the page first: this address without its ending."
            return problem(context, request, visitor, 409, "There is no result", text)
        return answer(context, request, query, read_result(state.saved))

    return with_result


@_of_result
def as_json(_desk: Context, _request: Request, query: PageQuery, result: StoredDecode) -> Response:
    """The document of `rappor decode --json --all`."""
    return json_response(downloads.document(result, query))


@_of_result
def as_csv(_desk: Context, _request: Request, query: PageQuery, result: StoredDecode) -> Response:
    """A results.csv."""
    text = downloads.csv_text(result, query)
    return _file(text.encode("utf-8", "replace"), "text/csv; charset=utf-8", query, "csv")


@_of_result
def as_parquet(
    _desk: Context, _request: Request, query: PageQuery, result: StoredDecode
) -> Response:
    """A Parquet file."""
    body = downloads.parquet_bytes(result, query)
    return _file(body, "application/vnd.apache.parquet", query, "parquet")


@_of_result
def picture(_desk: Context, request: Request, query: PageQuery, result: StoredDecode) -> Response:
    """One chart as SVG or PNG; theme=dark uses dark colours."""
    name, _, ending = request.path_params["file"].rpartition(".")
    name = current_name(name)
    theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    panels = drawn(result, query, theme, page=False) if result.decoded.reports else {}
    if name not in panels or ending not in _PICTURES:
        raise ParamsError(f"this page has no chart {show(request.path_params['file'])}")
    convert, kind = _PICTURES[ending]
    body = convert(panels[name].in_file(theme))
    data = body.encode() if isinstance(body, str) else body
    inline = "download" not in request.query_params
    return _file(data, kind, query, f"{name}.{ending}", inline=inline)


def google(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """google/rappor's files in a zip file; the worker makes it, so that pages stay fast."""
    reports = context.catalogue.reports(query.collection, query.version, *query.selection)
    if not reports:
        text = "No report arrived in these periods."
        return problem(context, request, visitor, 409, "There are no reports", text)
    key = f"google-{query.key}-{reports}"
    if not _downloads.acquire(blocking=False):
        raise TooManyJobs(f"{MAX_DOWNLOADS} downloads are waiting: try again later")
    try:
        job = context.jobs.start(
            "google",
            lambda: task_arguments(context, query),
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


def as_python(context: Context, _request: Request, _visitor: Visitor, query: PageQuery) -> Response:
    """Python code that gives the same numbers."""
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


def _page(path: str, answer: Answer, name: str) -> Page:
    path = f"/collections/{path}"
    return Page(path=path, endpoint=with_query(answer), roles=EVERYONE, name=name)


# Files first: {name} alone would match a name with its ending.
PAGES = (
    _page("{name}.json", as_json, "results-json"),
    _page("{name}.csv", as_csv, "results-csv"),
    _page("{name}.parquet", as_parquet, "results-parquet"),
    Page(
        path="/collections/{name}.google.zip",
        endpoint=with_query(google),
        roles=DECODERS,
        name="results-google",
    ),
    _page("{name}.py", as_python, "results-python"),
    _page("{name}/charts/{file}", picture, "results-chart"),
    Page(
        path="/collections/{name}",
        endpoint=with_query(results, kinds=KINDS),
        roles=EVERYONE,
        name="results",
    ),
    Page(
        path="/collections/{name}/decode",
        endpoint=with_query(decode),
        roles=DECODERS,
        name="results-decode",
        methods=("POST",),
    ),
)
