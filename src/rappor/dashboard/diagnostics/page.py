"""Diagnostics: verdicts, a heat map of cohorts and bits, balance, and what cannot be told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.balance import balance_panel
from rappor.charts.panel import both
from rappor.charts.render import to_png, to_svg
from rappor.collection import Collection
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.choices import choices
from rappor.dashboard.context import Context
from rappor.dashboard.diagnostics.heat_map import (
    block_means,
    block_of,
    cells_document,
    extreme_cells,
    heat_png,
)
from rappor.dashboard.diagnostics.serialization import StoredDiagnosis, lit_cells, unpack
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import (
    DECODERS,
    EMPTY,
    NO_LIST,
    TOO_FEW,
    arguments_of,
    candidates_of,
)
from rappor.dashboard.problems import problem
from rappor.dashboard.reach import reach_of
from rappor.dashboard.routing import Page
from rappor.dashboard.stage import Needed, Reader, Stage, begin, stage
from rappor.dashboard.stage_messages import careful, said
from rappor.dashboard.state.records import SavedResult
from rappor.dashboard.tables import csv_response, json_response
from rappor.decoding.checkup import FALSE_ALARMS
from rappor.errors import ParamsError

MODES = {"residuals": "Residuals", "counts": "Counts", "fitted": "Fitted"}
_LONGEST = 400  # letters of a string to light up
_read = Reader(unpack)
_USUAL = ("map", "residuals")
_PATH = "/collections/{name}/diagnostics"


class _Seen(NamedTuple):
    query: PageQuery
    collection: Collection
    stage: Stage
    looked: StoredDiagnosis | None


def page(context: Context, request: Request, visitor: Visitor) -> Response:
    """The page."""
    seen = _look(context, request, visitor)
    query, looked = seen.query, seen.looked
    stored = [each.period for each in context.catalogue.periods(query.collection, query.version)]
    mode, light = _mode(request, looked), _light(request)
    lit = set(lit_cells(light, seen.collection)) if light else set()
    extremes = [] if looked is None else extreme_cells(*_tables(looked))
    return context.render(
        "diagnostics.html",
        request,
        visitor,
        section="collections",
        query=query,
        entry=context.catalogue.entry(query.collection),
        collection=seen.collection,
        stage=seen.stage,
        said=said(seen.stage, query.side.words, visitor, seen.collection),
        choices=choices(context, query, stored, "/diagnostics"),
        looked=looked,
        false_alarms=round(1 / FALSE_ALARMS),
        modes={name: word for name, word in MODES.items() if looked and _has(looked, name)},
        mode=mode,
        light=light,
        block=None if looked is None else block_of(*looked.counts.shape),
        extremes=[(cell, (cell.cohort, cell.bit) in lit) for cell in extremes],
        balance=_balance(looked),
        link=lambda **more: _link(query, {"map": mode, "light": light} | more),
        may_decode=visitor.may(DECODERS),
    )


def again(context: Context, request: Request, visitor: Visitor) -> Response:
    """Look it over anew."""
    query = _view(context, request)
    if query.periods:
        begin(context, _needed(context, query), visitor)
    return RedirectResponse(query.path("/diagnostics"), 303)


def as_json(context: Context, request: Request, visitor: Visitor) -> Response:
    """Verdicts, figures and groups; the cells are in the CSV file."""
    seen = _look(context, request, visitor)
    document: dict[str, Any] = {"collection": seen.query.collection, "state": seen.stage.state}
    if seen.looked is not None:
        document |= dict(seen.looked.meta)
    return json_response(document, 202 if seen.looked is None and seen.stage.job else 200)


def as_csv(context: Context, request: Request, visitor: Visitor) -> Response:
    """Every cell: what was counted, what was fitted, and the residual."""
    looked = _look(context, request, visitor).looked
    if looked is None:
        return _nothing(context, request, visitor)
    counts, fitted, residuals = _tables(looked)
    header = ["cohort", "bit", "count", *(["fitted", "residual"] if fitted is not None else [])]

    def rows() -> Any:
        for cohort in range(counts.shape[0]):
            for bit in range(counts.shape[1]):
                row: list[float] = [cohort, bit, int(counts[cohort, bit])]
                if fitted is not None and residuals is not None:
                    row += [float(fitted[cohort, bit]), float(residuals[cohort, bit])]
                yield row

    return csv_response(header, rows(), f"{request.path_params['name']}-cells.csv")


def cells(context: Context, request: Request, visitor: Visitor) -> Response:
    """What the heat map draws."""
    seen = _look(context, request, visitor)
    if seen.looked is None:
        return _nothing(context, request, visitor)
    counts, fitted, residuals = _tables(seen.looked)
    document = cells_document(
        {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}
    )
    document["lit"] = lit_cells(_light(request), seen.collection) if _light(request) else []
    return json_response(document)


def bits(context: Context, request: Request, _visitor: Visitor) -> Response:
    """The cells that a string sets."""
    query, light = _view(context, request), _light(request)
    collection = context.catalogue.get(query.collection, query.version)
    found = lit_cells(light, collection) if light else []
    return json_response({"string": light, "cells": found})


def picture(context: Context, request: Request, visitor: Visitor) -> Response:
    """The heat map as a PNG file, also for browsers without scripts."""
    looked = _look(context, request, visitor).looked
    if looked is None:
        return _nothing(context, request, visitor)
    mode = _mode(request, looked)
    counts, fitted, residuals = _tables(looked)
    table = {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}[mode]
    if table is None:
        return _nothing(context, request, visitor)
    block = block_of(*table.shape)
    body = heat_png(block_means(table, block), mode == "residuals", _theme(request))
    return Response(body, media_type="image/png")


def balance(context: Context, request: Request, visitor: Visitor) -> Response:
    """The balance of cohorts as an SVG or PNG file."""
    looked = _look(context, request, visitor).looked
    if looked is None or not looked.reports:
        return _nothing(context, request, visitor)
    theme = _theme(request)
    spec = balance_panel(looked.meta["totals"], theme=theme).in_file(theme)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def _view(context: Context, request: Request) -> PageQuery:
    name = request.path_params["name"]
    query = PageQuery.of(request.query_params, context.catalogue, context.state, name)
    return replace(query, vs="", against=None)


def _needed(context: Context, query: PageQuery) -> Needed:
    return Needed(
        "diagnose",
        f"diagnose-{query.key}",
        "Looking over the fit",
        query.collection,
        lambda: arguments_of(context, query),
    )


def _look(context: Context, request: Request, visitor: Visitor) -> _Seen:
    query = _view(context, request)
    collection = context.catalogue.get(query.collection, query.version)
    asked = dict(query.dimensions)
    reports = context.catalogue.reports(query.collection, query.version, query.periods, asked)
    if not reports:
        return _Seen(query, collection, Stage(EMPTY), None)
    if collection.kind == "string" and query.candidates is None:
        return _Seen(query, collection, Stage(NO_LIST, reports), None)
    size = candidates_of(context, query, collection)
    can = reach_of(collection, query.periods[-1], reports, size, query.alpha)
    if can.too_few and not query.anyway:
        return _Seen(query, collection, Stage(TOO_FEW, reports, reach=can), None)

    def needs(saved: SavedResult) -> tuple[bool, int]:
        return False, reports - int(saved.meta["reports"])

    found = replace(stage(context, _needed(context, query), visitor, reports, needs), reach=can)
    looked = None if found.saved is None else _read(found.saved)
    return _Seen(query, collection, found, looked)


def _tables(looked: StoredDiagnosis) -> tuple[Any, Any, Any]:
    return looked.counts, looked.fitted, looked.residuals


def _has(looked: StoredDiagnosis, mode: str) -> bool:
    return getattr(looked, mode) is not None


def _mode(request: Request, looked: StoredDiagnosis | None) -> str:
    """Which table is drawn: residuals, unless something else is asked for or there are none."""
    wanted = request.query_params.get("map", "") or "residuals"
    if wanted not in MODES:
        raise ParamsError(f"map must be one of {', '.join(MODES)}; got {wanted!r}")
    return wanted if looked is None or _has(looked, wanted) else "counts"


def _light(request: Request) -> str:
    return request.query_params.get("light", "")[:_LONGEST]


def _theme(request: Request) -> str:
    return "dark" if request.query_params.get("theme") == "dark" else "light"


def _link(query: PageQuery, more: dict[str, str]) -> str:
    """The rest of an address: the view, and what only this page has."""
    from urllib.parse import urlencode

    own = {key: value for key, value in more.items() if value and (key, value) != _USUAL}
    return "&".join(part for part in (query.query_string(), urlencode(own)) if part)


def _balance(looked: StoredDiagnosis | None) -> dict[str, Any] | None:
    if looked is None or not looked.reports or looked.meta["cohorts"] == 1:
        return None
    totals = looked.meta["totals"]
    panel = balance_panel(totals)
    return {
        "spec": both(lambda theme: balance_panel(totals, theme=theme).in_page(theme)),
        "sentence": panel.sentence,
        "height": panel.height,
    }


def _nothing(context: Context, request: Request, visitor: Visitor) -> Response:
    text = "Nothing is decoded yet. Open the page first."
    return problem(context, request, visitor, 409, "There is no result", text)


def _page(path: str, endpoint: Any, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=careful(endpoint), roles=EVERYONE, name=name)


PAGES = (
    _page("", page, "diagnostics"),
    Page(
        path=_PATH,
        endpoint=careful(again),
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
