"""The Diagnostics page: checks, heat map, cohort sizes, and candidates that look the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.diagnostics import balance_panel, heat_panel
from rappor.charts.marks import both
from rappor.charts.render import to_png, to_svg
from rappor.collection import Collection
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.diagnostics.heat_map import (
    block_means,
    block_of,
    cells_document,
    extreme_cells,
)
from rappor.dashboard.diagnostics.serialization import StoredDiagnosis, lit_cells, unpack
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
from rappor.dashboard.tables import csv_response, json_response
from rappor.decoding.quality import FALSE_ALARMS

MODES = {"residuals": "Residuals", "counts": "Counts", "fitted": "Fitted"}
_LONGEST = 400  # characters of a string to light up
_read = ResultReader(unpack)
_USUAL = ("map", "residuals")
_PATH = "/collections/{name}/diagnostics"


class _Seen(NamedTuple):
    query: PageQuery
    collection: Collection
    state: PageState
    diagnosis: StoredDiagnosis | None


def page(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page."""
    seen = _look(context, visitor, query)
    diagnosis = seen.diagnosis
    stored = [
        period.period for period in context.catalogue.periods(query.collection, query.version)
    ]
    mode, light = _mode(request, diagnosis), _light(request)
    lit = set(lit_cells(light, seen.collection)) if light else set()
    extremes = [] if diagnosis is None else extreme_cells(*_tables(diagnosis))
    return context.render(
        "diagnostics.html",
        request,
        visitor,
        section="collections",
        query=query,
        entry=context.catalogue.entry(query.collection),
        collection=seen.collection,
        state=seen.state,
        message=message_of(seen.state, visitor),
        choices=choices(context, query, stored, "/diagnostics"),
        diagnosis=diagnosis,
        false_alarms=round(1 / FALSE_ALARMS),
        modes={name: word for name, word in MODES.items() if diagnosis and _has(diagnosis, name)},
        mode=mode,
        light=light,
        block=None if diagnosis is None else block_of(*diagnosis.counts.shape),
        extremes=[(cell, (cell.cohort, cell.bit) in lit) for cell in extremes],
        balance=_balance(diagnosis),
        link=lambda **more: _link(query, {"map": mode, "light": light} | more),
        may_decode=visitor.may(DECODERS),
    )


def again(context: Context, _request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Check the fit again."""
    if query.periods:
        begin(context, _work(context, query), visitor.actor)
    return RedirectResponse(query.path("/diagnostics"), 303)


def as_json(context: Context, _request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Checks, figures and groups; the CSV file has the cells."""
    seen = _look(context, visitor, query)
    document: dict[str, Any] = {"collection": seen.query.collection, "state": seen.state.status}
    if seen.diagnosis is not None:
        document |= dict(seen.diagnosis.meta)
    return json_response(document, 202 if seen.diagnosis is None and seen.state.job else 200)


def as_csv(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Every cell: its count, its fitted value and its residual."""
    diagnosis = _look(context, visitor, query).diagnosis
    if diagnosis is None:
        return _nothing(context, request, visitor)
    counts, fitted, residuals = _tables(diagnosis)
    header = ["cohort", "bit", "count", *(["fitted", "residual"] if fitted is not None else [])]

    def rows() -> Any:
        for cohort in range(counts.shape[0]):
            for bit in range(counts.shape[1]):
                row: list[float] = [cohort, bit, int(counts[cohort, bit])]
                if fitted is not None and residuals is not None:
                    row += [float(fitted[cohort, bit]), float(residuals[cohort, bit])]
                yield row

    return csv_response(header, rows(), f"{request.path_params['name']}-cells.csv")


def cells(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The cells of the heat map."""
    seen = _look(context, visitor, query)
    if seen.diagnosis is None:
        return _nothing(context, request, visitor)
    counts, fitted, residuals = _tables(seen.diagnosis)
    document = cells_document(
        {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}
    )
    document["lit"] = lit_cells(_light(request), seen.collection) if _light(request) else []
    return json_response(document)


def bits(context: Context, request: Request, _visitor: Visitor, query: PageQuery) -> Response:
    """The cells that a string sets."""
    light = _light(request)
    collection = context.catalogue.get(query.collection, query.version)
    found = lit_cells(light, collection) if light else []
    return json_response({"string": light, "cells": found})


def picture(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The heat map as a PNG file, also for browsers without scripts."""
    diagnosis = _look(context, visitor, query).diagnosis
    if diagnosis is None:
        return _nothing(context, request, visitor)
    mode = _mode(request, diagnosis)
    counts, fitted, residuals = _tables(diagnosis)
    table = {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}[mode]
    if table is None:
        return _nothing(context, request, visitor)
    block = block_of(*table.shape)
    theme = _theme(request)
    means = block_means(table, block).tolist()
    panel = heat_panel(means, residuals=mode == "residuals", block=block, theme=theme)
    return Response(to_png(panel.in_file(theme)), media_type="image/png")


def balance(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The balance of cohorts as an SVG or PNG file."""
    diagnosis = _look(context, visitor, query).diagnosis
    if diagnosis is None or not diagnosis.reports:
        return _nothing(context, request, visitor)
    theme = _theme(request)
    spec = balance_panel(diagnosis.meta["totals"], theme=theme).in_file(theme)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def _work(context: Context, query: PageQuery) -> PageWork:
    collection = context.catalogue.get(query.collection, query.version)
    reports = context.catalogue.reports(query.collection, query.version, *query.selection)
    return PageWork(
        kind="diagnose",
        key=f"diagnose-{query.key}",
        label="Checking the fit",
        collection=collection,
        arguments=lambda: task_arguments(context, query),
        reports=reports,
        where=query.selection.words,
        freshness=lambda saved: Freshness(False, reports - int(saved.meta["reports"])),
        sample=(query.periods[-1], reports) if query.periods else None,
        needs_list=True,
    )


def _look(context: Context, visitor: Visitor, query: PageQuery) -> _Seen:
    work = _work(context, query)
    state = page_state(context, work, query, visitor)
    diagnosis = None if state.saved is None else _read(state.saved)
    return _Seen(query, work.collection, state, diagnosis)


def _tables(diagnosis: StoredDiagnosis) -> tuple[Any, Any, Any]:
    return diagnosis.counts, diagnosis.fitted, diagnosis.residuals


def _has(diagnosis: StoredDiagnosis, mode: str) -> bool:
    return getattr(diagnosis, mode) is not None


def _mode(request: Request, diagnosis: StoredDiagnosis | None) -> str:
    """Which table is drawn: residuals by default, counts if there are none."""
    wanted = one_of(request.query_params, "map", MODES)
    return wanted if diagnosis is None or _has(diagnosis, wanted) else "counts"


def _light(request: Request) -> str:
    return request.query_params.get("light", "")[:_LONGEST]


def _theme(request: Request) -> str:
    return "dark" if request.query_params.get("theme") == "dark" else "light"


def _link(query: PageQuery, more: dict[str, str]) -> str:
    """The query string of an address, with the fields of this page alone."""
    from urllib.parse import urlencode

    own = {key: value for key, value in more.items() if value and (key, value) != _USUAL}
    return "&".join(part for part in (query.query_string(), urlencode(own)) if part)


def _balance(diagnosis: StoredDiagnosis | None) -> dict[str, Any] | None:
    if diagnosis is None or not diagnosis.reports or diagnosis.meta["cohorts"] == 1:
        return None
    totals = diagnosis.meta["totals"]
    panel = balance_panel(totals)
    return {
        "spec": both(lambda theme: balance_panel(totals, theme=theme).in_page(theme)),
        "sentence": panel.sentence,
        "height": panel.height,
    }


def _nothing(context: Context, request: Request, visitor: Visitor) -> Response:
    text = "Nothing is decoded yet. Open the page first."
    return problem(context, request, visitor, 409, "There is no result", text)


def _page(path: str, answer: Answer, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=_endpoint(answer), roles=EVERYONE, name=name)


def _endpoint(answer: Answer) -> Endpoint:
    return with_query(answer, ignored=("vs",))


PAGES = (
    _page("", page, "diagnostics"),
    Page(
        path=_PATH,
        endpoint=_endpoint(again),
        roles=DECODERS,
        name="diagnostics-again",
        methods=("POST",),
    ),
    _page(".json", as_json, "diagnostics-json"),
    _page(".csv", as_csv, "diagnostics-csv"),
    _page("/cells.json", cells, "diagnostics-cells"),
    _page("/bits.json", bits, "diagnostics-bits"),
    _page("/map.png", picture, "diagnostics-map"),
    _page("/balance.svg", balance, "diagnostics-balance-svg"),
    _page("/balance.png", balance, "diagnostics-balance-png"),
)
