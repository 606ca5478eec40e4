"""Results of a collection: strings, categories or numbers, each with its interval (R42)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from rappor.charts.render import to_png, to_svg
from rappor.checks import show
from rappor.dashboard.auth.roles import EVERYONE
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.context import Desk
from rappor.dashboard.jobs.job import DONE
from rappor.dashboard.jobs.queue import TooManyJobs
from rappor.dashboard.page_query import View
from rappor.dashboard.page_state import DECODERS, arguments_of, begin, look
from rappor.dashboard.problems import problem
from rappor.dashboard.results import downloads
from rappor.dashboard.results.drawing import drawn
from rappor.dashboard.results.page_context import context
from rappor.dashboard.results.python_code import python_code
from rappor.dashboard.results.serialization import Kept
from rappor.dashboard.routing import Endpoint, Page
from rappor.dashboard.tables import json_response
from rappor.errors import ParamsError

_FILES_SECONDS = 300.0  # that a download waits for its files
MOST_DOWNLOADS = 4  # that wait at once: each holds a thread that pages need
_downloads = threading.BoundedSemaphore(MOST_DOWNLOADS)
_PICTURES: dict[str, tuple[Callable[[Any], str | bytes], str]] = {
    "svg": (to_svg, "image/svg+xml"),
    "png": (to_png, "image/png"),
}


def _viewed(answer: Callable[[Desk, Request, Visitor, View], Response]) -> Endpoint:
    """An endpoint that is given the view of its address, or says what is wrong with that."""

    def endpoint(desk: Desk, request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        desk.catalogue.get(name)  # ParamsError: not there
        try:
            view = View.of(request.query_params, desk.catalogue, desk.state, name)
        except ParamsError as error:
            text = f"{str(error)[:1].upper()}{str(error)[1:]}."
            return problem(desk, request, visitor, 400, "This address cannot be read", text)
        try:
            return answer(desk, request, visitor, view)
        except TooManyJobs as error:
            return problem(desk, request, visitor, 503, "Too much at once", f"{error}.")

    return endpoint


@_viewed
def results(desk: Desk, request: Request, visitor: Visitor, view: View) -> Response:
    """The page."""
    found = look(desk, view, visitor)
    more = context(desk, view, visitor, found)
    return desk.render("results.html", request, visitor, section="collections", **more)


@_viewed
def decode(desk: Desk, _request: Request, visitor: Visitor, view: View) -> Response:
    """Decode (again), and go to the page."""
    job = begin(desk, view, visitor)
    desk.state.audit(visitor.actor, "decode", f"{view.collection}: {job.label}")
    return RedirectResponse(view.path(), 303)


def _kept(
    answer: Callable[[Desk, Request, View, Kept], Response],
) -> Callable[[Desk, Request, Visitor, View], Response]:
    """An endpoint of a result that must be there already."""

    def endpoint(desk: Desk, request: Request, visitor: Visitor, view: View) -> Response:
        found = look(desk, view, visitor, start=False)
        if found.kept is None:
            text = f"Nothing is decoded yet ({found.state}). Open the page first."
            return problem(desk, request, visitor, 409, "There is no result", text)
        return answer(desk, request, view, found.kept)

    return endpoint


@_viewed
@_kept
def as_json(_desk: Desk, _request: Request, view: View, kept: Kept) -> Response:
    """What the command line prints with --json --all."""
    return json_response(downloads.document(kept, view))


@_viewed
@_kept
def as_csv(_desk: Desk, _request: Request, view: View, kept: Kept) -> Response:
    """A results.csv."""
    text = downloads.csv_text(kept, view)
    return _file(text.encode("utf-8", "replace"), "text/csv; charset=utf-8", view, "csv")


@_viewed
@_kept
def as_parquet(_desk: Desk, _request: Request, view: View, kept: Kept) -> Response:
    """A Parquet file."""
    body = downloads.parquet_bytes(kept, view)
    return _file(body, "application/vnd.apache.parquet", view, "parquet")


@_viewed
@_kept
def picture(_desk: Desk, request: Request, view: View, kept: Kept) -> Response:
    """One chart as SVG or PNG; with `theme` in dark colours."""
    name, _, ending = request.path_params["file"].rpartition(".")
    theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    panels = drawn(kept, view, theme, page=False) if kept.decoded.reports else {}
    if name not in panels or ending not in _PICTURES:
        raise ParamsError(f"this view has no chart {show(request.path_params['file'])}")
    convert, kind = _PICTURES[ending]
    body = convert(panels[name].in_file(theme))
    data = body.encode() if isinstance(body, str) else body
    inline = "download" not in request.query_params
    return _file(data, kind, view, f"{name}.{ending}", inline=inline)


@_viewed
def google(desk: Desk, request: Request, visitor: Visitor, view: View) -> Response:
    """google/rappor's files in a zip; the worker makes them, so that pages stay quick."""
    found = look(desk, view, visitor, start=False)
    if not found.reports:
        text = "Nothing arrived for this time."
        return problem(desk, request, visitor, 409, "There are no reports", text)
    key = f"google-{view.key}-{found.reports}"
    if not _downloads.acquire(blocking=False):
        raise TooManyJobs(f"{MOST_DOWNLOADS} downloads are waiting: try again later")
    try:
        job = desk.jobs.start(
            "google",
            lambda: arguments_of(desk, view),
            key,
            label="Writing google/rappor files",
            actor=visitor.actor,
            collection=view.collection,
        )
        ended = desk.jobs.wait(job.id, _FILES_SECONDS)
    finally:
        _downloads.release()
    saved = desk.state.result(key)
    if ended is None or ended.state != DONE or saved is None or saved.table is None:
        reason = (ended.error if ended else "") or "It took too long, or was cancelled."
        return problem(desk, request, visitor, 503, "The files could not be made", reason)
    desk.state.audit(visitor.actor, "export", f"{view.collection}: google/rappor files")
    return _file(saved.table, "application/zip", view, "google.zip")


@_viewed
def as_python(desk: Desk, _request: Request, _visitor: Visitor, view: View) -> Response:
    """The code that gives the same numbers."""
    collection = desk.catalogue.get(view.collection, view.version)
    return PlainTextResponse(python_code(view, collection))


def _file(body: bytes, kind: str, view: View, ending: str, *, inline: bool = False) -> Response:
    times = dict.fromkeys((view.periods[:1] + view.periods[-1:]) or ("nothing",))
    parts = [view.collection, *times, *(value for _, value in view.dimensions)]
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
