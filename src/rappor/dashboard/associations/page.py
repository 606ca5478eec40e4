"""The Associations page of a tuple: joint table, independence, conditional shares, downloads."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from rappor.charts.association import association_panel, conditional_panel
from rappor.charts.marks import Panel, both
from rappor.charts.render import to_png, to_svg
from rappor.collection import Collection
from rappor.dashboard.associations.serialization import unpack
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Endpoint, Page
from rappor.dashboard.page_choices import choices
from rappor.dashboard.page_messages import message_of
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import (
    DECODERS,
    Freshness,
    PageState,
    PageWork,
    ResultReader,
    begin,
    page_state,
    task_arguments,
)
from rappor.dashboard.problems import problem
from rappor.dashboard.query_reading import Answer, one_of, with_query
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.decoding.association import Association, JointCell
from rappor.decoding.association_table import document, sentences
from rappor.decoding.field_design import OTHER
from rappor.mechanism.views import Views

CHARTS = ("joint", "given")
_PATH = "/collections/{name}/associations"
_JOIN = ","  # between two names of fields, which have no comma
_SORTS: dict[str, Callable[[JointCell], Any]] = {
    "estimate": lambda cell: cell.share,
    "difference": lambda cell: cell.departure,
    "p_value": lambda cell: -cell.p_value,
    "adjusted_p_value": lambda cell: -cell.adjusted_p_value,
    "detected": lambda cell: (cell.associated, cell.share),
}
_read = ResultReader(unpack)


class _Seen(NamedTuple):
    fields: str
    collection: Collection
    state: PageState
    found: Association | None


def pairs_of(views: Views) -> list[str]:
    """The pairs of fields that some view serves, in both orders, most useful first.

    >>> from rappor.mechanism import Field
    >>> pairs_of(Views((Field("page", "string"), Field("beta", "boolean"))))
    ['page,beta', 'beta,page']
    """
    names = [field.name for field in views.fields]
    return [
        _JOIN.join(pair)
        for pair in sorted(permutations(names, 2), key=lambda pair: _is_turned(pair, names))
        if views.joint_view(*pair) is not None
    ]


def _is_turned(pair: tuple[str, ...], names: list[str]) -> bool:
    return names.index(pair[0]) > names.index(pair[1])


def association_work(context: Context, query: PageQuery, fields: str = "") -> PageWork:
    """The job behind the page; by default for the first two fields."""
    collection = context.catalogue.get(query.collection, query.version)
    views = _views(collection)
    usual = next(iter(pairs_of(views)), "")
    pair = (fields or usual).split(_JOIN) if usual else [field.name for field in views.fields[:2]]
    reports = context.catalogue.reports(query.collection, query.version, *query.selection)
    kinds = {field.name: field.kind for field in views.fields}
    return PageWork(
        kind="associate",
        key=f"associate-{query.key}-{_JOIN.join(pair)}",
        label=f"Associating {pair[0]} and {pair[1]}",
        collection=collection,
        arguments=lambda: {**task_arguments(context, query), "fields": pair},
        reports=reports,
        where=query.selection.words or query.last,
        freshness=lambda saved: Freshness(False, reports - int(saved.meta["reports"])),
        sample=(query.periods[-1], reports) if query.periods else None,
        needs_list=any(kinds[name] == "string" for name in pair),
        has_no_view=not usual,
    )


def page(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page."""
    seen = _look(context, request, visitor, query)
    found, given = seen.found, _given(request, seen.found)
    stored = [period for period, _ in context.catalogue.periods(query.collection, query.version)]
    pairs = pairs_of(_views(seen.collection))
    own = {"fields": "" if seen.fields in pairs[:1] else seen.fields, "given": ""}
    if found is not None and given != _given_first(found):
        own["given"] = given
    return context.render(
        "associations.html",
        request,
        visitor,
        section="collections",
        query=query,
        entry=context.catalogue.entry(query.collection),
        collection=seen.collection,
        state=seen.state,
        message=message_of(seen.state, visitor),
        choices=choices(context, query, stored, "/associations"),
        found=found,
        own=own,
        fields=seen.fields,
        pairs=[(pair, " × ".join(pair.split(_JOIN))) for pair in pairs],
        given=given,
        givens=_givens(found) if found is not None else [],
        said=[] if found is None else [text.replace(" %", "\u00a0%") for text in sentences(found)],
        warnings=[] if found is None else [check for check in found.checks if not check.ok],
        drawings=_drawings(found, given) if found is not None else {},
        sheet=paged(_cells(found, query), query.page) if found is not None else None,
        code=python_code(query, seen.collection, seen.fields) if found and query.periods else "",
        link=lambda ending="", **more: _address(query, own, ending, **more),
        may_decode=visitor.may(DECODERS),
    )


def again(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Associate again."""
    fields = _fields(request, context.catalogue.get(query.collection, query.version))
    if query.periods and fields:
        begin(context, association_work(context, query, fields), visitor.actor)
    return RedirectResponse(_address(query, {"fields": fields}), 303)


def as_json(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The document of `rappor associate --json`, and what it was made of."""
    seen = _look(context, request, visitor, query)
    said: dict[str, Any] = {
        "collection": query.collection,
        "version": query.version,
        "periods": list(query.periods),
        "dimensions": dict(query.dimensions),
        "candidates_version": query.candidates,
        "state": seen.state.status,
    }
    if seen.found is not None:
        said |= document(seen.found)
    return json_response(said, 202 if seen.found is None and seen.state.job else 200)


def as_csv(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Every cell, with the columns of `rappor associate --output`."""
    found = _look(context, request, visitor, query).found
    if found is None:
        return _nothing(context, request, visitor)
    columns = found.columns()
    rows = zip(*columns.values(), strict=True)
    return csv_response(list(columns), rows, f"{query.collection}-associations.csv")


def as_python(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Python code that gives the same numbers."""
    collection = context.catalogue.get(query.collection, query.version)
    fields = _fields(request, collection)
    if not (fields and query.periods):
        return _nothing(context, request, visitor)
    return PlainTextResponse(python_code(query, collection, fields))


def picture(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """One chart as an SVG or PNG file; theme=dark uses dark colours."""
    found = _look(context, request, visitor, query).found
    wanted = one_of(request.query_params, "chart", CHARTS)
    if found is None:
        return _nothing(context, request, visitor)
    theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    panels = _panels(found, _given(request, found), theme)
    if wanted not in panels:
        return _nothing(context, request, visitor)
    spec = panels[wanted].in_file(theme)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def python_code(query: PageQuery, collection: Collection, fields: str) -> str:
    """A script that prints the table of the page; only the data folder may need a change."""
    pair = tuple(fields.split(_JOIN))
    strings = [field.name for field in _views(collection).fields if field.kind == "string"]
    lines = [
        "import rappor",
        'data = rappor.open("data")  # the data folder: change it if yours is another',
    ]
    listed = ""
    if set(strings) & set(pair):
        lines.append(f"listed = data.candidates({query.collection!r}, {query.candidates})")
        listed = f"{{{strings[0]!r}: listed}}, "
        if len(strings) > 1:
            lines += [
                'split = [line.split("=", 1) for line in listed.strings]',
                f"lists = {{name: [text for field, text in split if field == name] "
                f"for name in {pair!r} if name in {strings!r}}}",
            ]
            listed = "lists, "
    periods = "..".join(dict.fromkeys((query.periods[0], query.periods[-1])))
    about = [f"fields={pair!r}", f"period={periods!r}"]
    if query.dimensions:
        about.append(f"dimensions={dict(query.dimensions)!r}")
    about += [
        f"version={query.version}",
        f"correction={query.correction!r}",
        f"alpha={query.alpha!r}",
    ]
    call = f"print(data.associate({query.collection!r}, {listed}{', '.join(about)}))"
    return "\n".join([*lines, call, ""])


def _views(collection: Collection) -> Views:
    views = collection.tuple_views
    if views is None:
        raise TypeError(f"{collection.name} is of kind {collection.kind}")
    return views


def _fields(request: Request, collection: Collection) -> str:
    """The pair of an address; empty if no view serves any pair."""
    pairs = pairs_of(_views(collection))
    return one_of(request.query_params, "fields", pairs) if pairs else ""


def _look(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> _Seen:
    fields = _fields(request, context.catalogue.get(query.collection, query.version))
    work = association_work(context, query, fields)
    state = page_state(context, work, query, visitor)
    found = None if state.saved is None else _read(state.saved)
    return _Seen(fields, work.collection, state, found)


def _givens(found: Association) -> list[str]:
    """The values of the first field that are frequent enough to divide by, most frequent first."""
    known = {cell.first for cell in found.rows if not math.isnan(cell.share_given_first)}
    margin = sorted(found.margins[0], key=lambda value: (value.value == OTHER, -value.share))
    return [value.value for value in margin if value.value in known]


def _given_first(found: Association) -> str:
    return next(iter(_givens(found)), "")


def _given(request: Request, found: Association | None) -> str:
    """The value whose conditional shares are drawn: the most frequent, unless one is chosen."""
    if found is None:
        return ""
    wanted = request.query_params.get("given", "")
    return wanted if wanted in _givens(found) else _given_first(found)


def _panels(
    found: Association, given: str, theme: str = "light", *, page: bool = False
) -> dict[str, Panel]:
    title, *words = sentences(found)
    title = title.removesuffix(".")
    panels = {"joint": association_panel(found, title, words, theme=theme, page=page)}
    if given:
        panels["given"] = conditional_panel(found, given, theme=theme)
    return panels


def _drawings(found: Association, given: str) -> dict[str, Any]:
    def spec(name: str) -> dict[str, Any]:
        return both(lambda theme: _panels(found, given, theme, page=True)[name].in_page(theme))

    return {
        name: {"spec": spec(name), "sentence": panel.sentence, "height": panel.height}
        for name, panel in _panels(found, given).items()
    }


def _cells(found: Association, query: PageQuery) -> list[JointCell]:
    """The cells that match the search, sorted; those that no cohort tells come last."""
    wanted = query.q.casefold()
    rows = [
        cell
        for cell in found.rows
        if not wanted or wanted in cell.first.casefold() or wanted in cell.second.casefold()
    ]
    key, descends = query.sort.removeprefix("-"), query.sort.startswith("-")
    rows.sort(key=lambda cell: (cell.first, cell.second), reverse=key == "string" and descends)
    order = _SORTS.get(key)
    if order is not None:
        known = [cell for cell in rows if cell.share == cell.share and order(cell) == order(cell)]
        rest = [
            cell for cell in rows if not (cell.share == cell.share and order(cell) == order(cell))
        ]
        rising = key.endswith("p_value")
        known.sort(key=order, reverse=descends != rising)
        rows = known + rest
    return rows


def _address(query: PageQuery, own: dict[str, str], ending: str = "", **more: Any) -> str:
    """An address of this page, with the fields of this page alone; `chart` names a picture."""
    chart = {"chart": more.pop("chart")} if "chart" in more else {}
    base = query.path(f"/associations{ending}", **more)
    rest = urlencode({name: value for name, value in {**own, **chart}.items() if value})
    return f"{base}{'&' if '?' in base else '?'}{rest}" if rest else base


def _nothing(context: Context, request: Request, visitor: Visitor) -> Response:
    text = "Nothing is associated yet. Open the page first."
    return problem(context, request, visitor, 409, "There is no result", text)


def _page(path: str, answer: Answer, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=_endpoint(answer), roles=EVERYONE, name=name)


def _endpoint(answer: Answer) -> Endpoint:
    return with_query(answer, ignored=("vs",), kinds=("tuple",))


PAGES = (
    _page("", page, "associations"),
    Page(
        path=_PATH,
        endpoint=_endpoint(again),
        roles=DECODERS,
        name="associations-again",
        methods=("POST",),
    ),
    _page(".json", as_json, "associations-json"),
    _page(".csv", as_csv, "associations-csv"),
    _page(".py", as_python, "associations-python"),
    _page(".svg", picture, "associations-svg"),
    _page(".png", picture, "associations-png"),
)
