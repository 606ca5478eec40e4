"""Candidates: the strings that are looked for. Paste or upload, see what it explains, save."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.dashboard.auth.roles import EVERYONE
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.candidates.candidate_lists import (
    ADD,
    REPLACE,
    KeptDraft,
    explained,
    keep_draft,
    read_kept,
    versions_of,
)
from rappor.dashboard.candidates.candidate_upload import FORMS, MOST_BYTES, MOST_STRINGS
from rappor.dashboard.candidates.upload import read_upload
from rappor.dashboard.context import Desk
from rappor.dashboard.forms import FORM_BYTES, LIST_BYTES
from rappor.dashboard.page_query import View
from rappor.dashboard.page_state import DECODERS, EMPTY, arguments_of
from rappor.dashboard.problems import problem, refusal
from rappor.dashboard.routing import Page
from rappor.dashboard.stage import Needed, Stage, begin, stage
from rappor.dashboard.stage_messages import careful, said
from rappor.dashboard.state.records import SavedResult
from rappor.dashboard.tables import csv_response, json_response
from rappor.errors import ParamsError

_SHOWN_BYTES = 60_000  # of a list that is put into the field, to be edited
_DIGEST = frozenset("0123456789abcdef")


def page(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """The page."""
    return _show(desk, request, visitor)


def check(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Read what was pasted or uploaded, and show what it would explain."""
    view = _view(desk, request)
    form = request.state.form
    try:
        if desk.catalogue.get(view.collection, view.version).kind != "string":
            raise ParamsError("only collections of strings have candidates")
        draft = read_upload(_data(form), _text(form, "form", "lines"))
        digest = keep_draft(desk, view.collection, draft, _text(form, "how", ADD))
    except ParamsError as error:
        return _show(desk, request, visitor, wrong=str(error), typed=_text(form, "text", ""))
    return RedirectResponse(f"{view.path('/candidates')}{_joint(view)}draft={digest}", 303)


def save(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Save a draft as the next version; then stay, or decode with it at once."""
    view = _view(desk, request)
    form = request.state.form
    draft = _draft(desk, view.collection, _text(form, "draft", ""))
    if draft is None:
        text = "It was checked too long ago. Paste or upload it again."
        return problem(desk, request, visitor, 404, "This list is forgotten", text)
    desk.state.save_candidates(view.collection, draft.strings, visitor.actor)
    page = "" if _text(form, "then", "") == "decode" else "/candidates"
    return RedirectResponse(view.path(page, candidates=None), 303)  # that is: the newest


def again(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Decode a draft again."""
    view = _view(desk, request)
    digest = request.query_params.get("draft", "")
    draft = _draft(desk, view.collection, digest)
    if draft is not None and view.periods:
        begin(desk, _needed(desk, view, draft), visitor)
    return RedirectResponse(f"{view.path('/candidates')}{_joint(view)}draft={digest}", 303)


def as_json(desk: Desk, request: Request, _visitor: Visitor) -> Response:
    """The versions, and what each changed."""
    view = _view(desk, request)
    document = {
        "collection": view.collection,
        "versions": [
            {
                "version": each.about.version,
                "size": each.about.size,
                "made": each.about.made,
                "actor": each.about.actor,
                **each.change._asdict(),
            }
            for each in versions_of(desk, view.collection)
        ],
    }
    return json_response(document)


def as_csv(desk: Desk, request: Request, _visitor: Visitor) -> Response:
    """One version of the list, the newest unless `candidates` names another."""
    view = _view(desk, request)
    found = desk.state.candidates(view.collection, view.candidates)
    rows = () if found is None else ((text,) for text in found.strings)
    name = f"{view.collection}-candidates-v{view.candidates or 0}.csv"
    return csv_response(("string",), rows, name)


def _show(
    desk: Desk, request: Request, visitor: Visitor, wrong: str = "", typed: str = ""
) -> Response:
    view = _view(desk, request)
    collection = desk.catalogue.get(view.collection, view.version)
    draft = _draft(desk, view.collection, request.query_params.get("draft", ""))
    found = Stage(EMPTY) if draft is None else _look(desk, view, draft, visitor)
    versions = versions_of(desk, view.collection) if collection.kind == "string" else []
    saved = desk.state.result(view.key)
    result = None if found.saved is None else found.saved.meta
    return desk.render(
        "candidates.html",
        request,
        visitor,
        status=400 if wrong else 200,
        section="collections",
        view=view,
        entry=desk.catalogue.entry(view.collection),
        collection=collection,
        versions=versions,
        newest=versions[0].about.version if versions else 0,
        draft=draft,
        stage=found,
        said=None if draft is None else said(found, view.side.words, visitor, collection),
        result=result,
        present=None if saved is None else explained(saved.meta),
        wrong=wrong,
        typed=typed or _typed(desk, view.collection, draft),
        how=draft.how if draft else (ADD if versions else REPLACE),
        forms=FORMS,
        most=MOST_STRINGS,
        most_bytes=MOST_BYTES,
        may_save=visitor.may(DECODERS),
        may_decode=visitor.may(DECODERS),
        refused=refusal(visitor, DECODERS, collection.owner),
        joint=_joint(view),
    )


def _look(desk: Desk, view: View, draft: KeptDraft, visitor: Visitor) -> Stage:
    asked = dict(view.dimensions)
    reports = desk.catalogue.reports(view.collection, view.version, view.periods, asked)
    if not reports:
        return Stage(EMPTY)

    def needs(saved: SavedResult) -> tuple[bool, int]:
        return False, reports - int(saved.meta["after"]["reports"])

    return stage(desk, _needed(desk, view, draft), visitor, reports, needs)


def _needed(desk: Desk, view: View, draft: KeptDraft) -> Needed:
    digest = draft.digest

    def arguments() -> dict[str, Any]:
        kept = read_kept(desk, view.collection, digest)  # not held while it waits
        if kept is None:
            raise ParamsError("this list is forgotten: paste or upload it again")
        given = arguments_of(desk, view)
        return {**given, "before": given["strings"], "strings": list(kept.strings), "list": None}

    label = f"Decoding {len(draft.strings):,} candidates"
    return Needed("explain", f"explain-{view.key}-{digest}", label, view.collection, arguments)


def _view(desk: Desk, request: Request) -> View:
    name = request.path_params["name"]
    view = View.of(request.query_params, desk.catalogue, desk.state, name)
    return replace(view, vs="", against=None)


def _draft(desk: Desk, collection: str, digest: str) -> KeptDraft | None:
    if len(digest) != 32 or not _DIGEST.issuperset(digest):
        return None
    return read_kept(desk, collection, digest)


def _joint(view: View) -> str:
    """What joins one more part to an address of this view."""
    return "&" if view.query() else "?"


def _text(form: Any, name: str, usual: str) -> str:
    value = form.get(name, usual)
    return value if isinstance(value, str) else usual


def _data(form: Any) -> bytes:
    """The uploaded file, or what was pasted where there is none."""
    file = form.get("file", b"")
    if isinstance(file, bytes) and file:
        return file
    return _text(form, "text", "").encode("utf-8", "surrogatepass")


def _typed(desk: Desk, collection: str, draft: KeptDraft | None) -> str:
    """A draft for the field, where it is short enough to be edited there."""
    if draft is None:
        return ""
    present = desk.state.candidates(collection) if draft.how == ADD else None
    known = set() if present is None else set(present.strings)
    text = "\n".join(string for string in draft.strings if string not in known)
    return text if len(text) <= _SHOWN_BYTES else ""


_PATH = "/collections/{name}/candidates"


def _page(path: str, endpoint: Any, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=careful(endpoint), roles=EVERYONE, name=name)


def _change(path: str, endpoint: Any, name: str, most_bytes: int = FORM_BYTES) -> Page:
    return Page(
        path=_PATH + path,
        endpoint=careful(endpoint),
        roles=DECODERS,
        name=name,
        methods=("POST",),
        most_bytes=most_bytes,
    )


PAGES = (
    _page("", page, "candidates"),
    _change("", check, "candidates-check", LIST_BYTES),
    _change("/save", save, "candidates-save"),
    _change("/decode", again, "candidates-again"),
    _page(".json", as_json, "candidates-json"),
    _page(".csv", as_csv, "candidates-csv"),
)
