"""The Candidates page: paste or upload a list, see what it explains, and save it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.candidates.candidate_lists import (
    ADD,
    REPLACE,
    PendingList,
    explained,
    read_pending,
    save_pending,
    versions_of,
)
from rappor.dashboard.candidates.candidate_upload import (
    FORMS,
    MAX_BYTES,
    MAX_STRINGS,
    read_upload,
)
from rappor.dashboard.context import Context
from rappor.dashboard.forms import FORM_BYTES, LIST_BYTES
from rappor.dashboard.page_access import Endpoint, Page
from rappor.dashboard.page_messages import message_of
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import (
    DECODERS,
    Freshness,
    PageWork,
    begin,
    page_state,
    task_arguments,
)
from rappor.dashboard.problems import problem, refusal
from rappor.dashboard.query_reading import Answer, with_query
from rappor.dashboard.tables import csv_response, json_response
from rappor.decoding.field_lists import field_lists
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.kinds import HASHED, KINDS
from rappor.mechanism.views import Views

_SHOWN_BYTES = 60_000  # of a list that is put into the text field
_DIGEST = frozenset("0123456789abcdef")
_PATH = "/collections/{name}/candidates"


def page(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page."""
    return _show(context, request, visitor, query)


def check(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Read a pasted or uploaded list, and show what it would explain."""
    form = request.state.form
    try:
        collection = context.catalogue.get(query.collection, query.version)
        if collection.kind not in HASHED:
            raise ParamsError("only collections of strings have candidates")
        draft = read_upload(_data(form), _text(form, "form", "lines"))
        if collection.tuple_views is not None:
            _check_lines(collection.tuple_views, draft.strings)
        digest = save_pending(context, query.collection, draft, _text(form, "how", ADD))
    except ParamsError as error:
        return _show(
            context, request, visitor, query, wrong=str(error), typed=_text(form, "text", "")
        )
    return RedirectResponse(f"{query.path('/candidates')}{_joint(query)}draft={digest}", 303)


def save(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Save a pending list as the next version; then stay, or decode with it."""
    form = request.state.form
    draft = _draft(context, query.collection, _text(form, "draft", ""))
    if draft is None:
        text = "It was checked too long ago. Paste or upload it again."
        return problem(context, request, visitor, 404, "This list is forgotten", text)
    context.state.save_candidates(query.collection, draft.strings, visitor.actor)
    page = "" if _text(form, "then", "") == "decode" else "/candidates"
    return RedirectResponse(query.path(page, candidates=None), 303)  # None: the newest


def again(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Decode with a pending list again."""
    digest = request.query_params.get("draft", "")
    draft = _draft(context, query.collection, digest)
    kind = context.catalogue.get(query.collection, query.version).kind
    if draft is not None and query.periods and kind == "string":
        begin(context, _work(context, query, draft), visitor.actor)
    return RedirectResponse(f"{query.path('/candidates')}{_joint(query)}draft={digest}", 303)


def as_json(context: Context, _request: Request, _visitor: Visitor, query: PageQuery) -> Response:
    """All versions, and their differences."""
    document = {
        "collection": query.collection,
        "versions": [
            {
                "version": version.about.version,
                "size": version.about.size,
                "made": version.about.made,
                "actor": version.about.actor,
                **version.change._asdict(),
            }
            for version in versions_of(context, query.collection)
        ],
    }
    return json_response(document)


def as_csv(context: Context, _request: Request, _visitor: Visitor, query: PageQuery) -> Response:
    """One version of the list, the newest unless `candidates` names another."""
    found = context.state.candidates(query.collection, query.candidates)
    rows = () if found is None else ((text,) for text in found.strings)
    name = f"{query.collection}-candidates-v{query.candidates or 0}.csv"
    return csv_response(("string",), rows, name)


def _show(
    context: Context,
    request: Request,
    visitor: Visitor,
    query: PageQuery,
    wrong: str = "",
    typed: str = "",
) -> Response:
    collection = context.catalogue.get(query.collection, query.version)
    draft = _draft(context, query.collection, request.query_params.get("draft", ""))
    state = None
    if draft is not None and collection.kind == "string":
        state = page_state(context, _work(context, query, draft), query, visitor)
    versions = versions_of(context, query.collection) if collection.kind in HASHED else []
    saved = context.state.result(query.key)
    result = None if state is None or state.saved is None else state.saved.meta
    return context.render(
        "candidates.html",
        request,
        visitor,
        status=400 if wrong else 200,
        section="collections",
        query=query,
        entry=context.catalogue.entry(query.collection),
        collection=collection,
        versions=versions,
        newest=versions[0].about.version if versions else 0,
        draft=draft,
        state=state,
        message=None if state is None else message_of(state, visitor),
        result=result,
        present=None if saved is None else explained(saved.meta),
        wrong=wrong,
        typed=typed or _typed(context, query.collection, draft),
        how=draft.how if draft else (ADD if versions else REPLACE),
        forms=FORMS,
        most=MAX_STRINGS,
        max_bytes=MAX_BYTES,
        may_save=visitor.may(DECODERS),
        may_decode=visitor.may(DECODERS),
        refused=refusal(visitor, DECODERS, collection.owner),
        joint=_joint(query),
        string_fields=[field.name for field in collection.fields or () if field.kind == "string"],
    )


def _work(context: Context, query: PageQuery, draft: PendingList) -> PageWork:
    """The job that decodes with a list that is not saved yet."""
    digest = draft.digest
    reports = context.catalogue.reports(query.collection, query.version, *query.selection)

    def arguments() -> dict[str, Any]:
        pending = read_pending(context, query.collection, digest)  # not held while it waits
        if pending is None:
            raise ParamsError("this list is forgotten: paste or upload it again")
        given = task_arguments(context, query)
        strings = list(pending.strings)
        return {**given, "before": given["strings"], "strings": strings, "list": None}

    return PageWork(
        kind="explain",
        key=f"explain-{query.key}-{digest}",
        label=f"Decoding {len(draft.strings):,} candidates",
        collection=context.catalogue.get(query.collection, query.version),
        arguments=arguments,
        reports=reports,
        where=query.selection.words,
        freshness=lambda saved: Freshness(False, reports - int(saved.meta["after"]["reports"])),
    )


def _check_lines(views: Views, lines: Sequence[str]) -> None:
    """ParamsError if a line does not say of which field it is a candidate."""
    try:
        field_lists(views, lines)
    except DecodeError as error:
        raise ParamsError(str(error)) from None


def _draft(context: Context, collection: str, digest: str) -> PendingList | None:
    if len(digest) != 32 or not _DIGEST.issuperset(digest):
        return None
    return read_pending(context, collection, digest)


def _joint(query: PageQuery) -> str:
    """The sign that joins one more field to an address of this query."""
    return "&" if query.query_string() else "?"


def _text(form: Any, name: str, usual: str) -> str:
    value = form.get(name, usual)
    return value if isinstance(value, str) else usual


def _data(form: Any) -> bytes:
    """The uploaded file, or else the pasted text."""
    file = form.get("file", b"")
    if isinstance(file, bytes) and file:
        return file
    return _text(form, "text", "").encode("utf-8", "surrogatepass")


def _typed(context: Context, collection: str, draft: PendingList | None) -> str:
    """The strings of a pending list for the text field, if they are few enough to edit there."""
    if draft is None:
        return ""
    present = context.state.candidates(collection) if draft.how == ADD else None
    known = set() if present is None else set(present.strings)
    text = "\n".join(string for string in draft.strings if string not in known)
    return text if len(text) <= _SHOWN_BYTES else ""


def _page(path: str, answer: Answer, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=_endpoint(answer), roles=EVERYONE, name=name)


def _change(path: str, answer: Answer, name: str, max_bytes: int = FORM_BYTES) -> Page:
    return Page(
        path=_PATH + path,
        endpoint=_endpoint(answer),
        roles=DECODERS,
        name=name,
        methods=("POST",),
        max_bytes=max_bytes,
    )


def _endpoint(answer: Answer) -> Endpoint:
    return with_query(answer, ignored=("vs",), kinds=KINDS)


PAGES = (
    _page("", page, "candidates"),
    _change("", check, "candidates-check", LIST_BYTES),
    _change("/save", save, "candidates-save"),
    _change("/decode", again, "candidates-again"),
    _page(".json", as_json, "candidates-json"),
    _page(".csv", as_csv, "candidates-csv"),
)
