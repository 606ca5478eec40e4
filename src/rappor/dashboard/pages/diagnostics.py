"""Diagnostics: verdicts, a heat map of cohorts and bits, balance, and what cannot be told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.balance import balance_panel
from rappor.charts.render import to_png, to_svg
from rappor.collection import Collection
from rappor.dashboard.access.roles import EVERYONE
from rappor.dashboard.access.visitor import Visitor
from rappor.dashboard.analysis.boxes import careful, said
from rappor.dashboard.analysis.choices import choices
from rappor.dashboard.analysis.diagnosis import Looked, lit_cells, unpack
from rappor.dashboard.analysis.heat import block_means, block_of, cells_document, extreme_cells
from rappor.dashboard.analysis.picture import heat_png
from rappor.dashboard.analysis.stage import Needed, Reader, Stage, begin, stage
from rappor.dashboard.desk import Desk
from rappor.dashboard.embedding import both
from rappor.dashboard.problems import problem
from rappor.dashboard.results.enough import enough
from rappor.dashboard.results.situation import (
    DECODERS,
    EMPTY,
    NO_LIST,
    TOO_FEW,
    arguments_of,
    candidates_of,
)
from rappor.dashboard.routing import Page
from rappor.dashboard.state.records import SavedResult
from rappor.dashboard.tables import csv_response, json_response
from rappor.dashboard.view import View
from rappor.decoding.quality import FALSE_ALARMS
from rappor.errors import ParamsError

MODES = {"residuals": "Residuals", "counts": "Counts", "fitted": "Fitted"}
_LONGEST = 400  # letters of a string to light up
_read = Reader(unpack)


class _Seen(NamedTuple):
    view: View
    collection: Collection
    stage: Stage
    looked: Looked | None


def page(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """The page."""
    seen = _look(desk, request, visitor)
    view, looked = seen.view, seen.looked
    stored = [each.period for each in desk.catalogue.periods(view.collection, view.version)]
    mode, light = _mode(request, looked), _light(request)
    lit = set(lit_cells(light, seen.collection)) if light else set()
    extremes = [] if looked is None else extreme_cells(*_tables(looked))
    return desk.render(
        "diagnostics.html",
        request,
        visitor,
        section="collections",
        view=view,
        entry=desk.catalogue.entry(view.collection),
        collection=seen.collection,
        stage=seen.stage,
        said=said(seen.stage, view.side.words, visitor, seen.collection),
        choices=choices(desk, view, stored, "/diagnostics"),
        looked=looked,
        false_alarms=round(1 / FALSE_ALARMS),
        modes={name: word for name, word in MODES.items() if looked and _has(looked, name)},
        mode=mode,
        light=light,
        block=None if looked is None else block_of(*looked.counts.shape),
        extremes=[(cell, (cell.cohort, cell.bit) in lit) for cell in extremes],
        balance=_balance(looked),
        link=lambda **more: _link(view, {"map": mode, "light": light} | more),
        may_decode=visitor.may(DECODERS),
    )


def again(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Look it over anew."""
    view = _view(desk, request)
    if view.periods:
        begin(desk, _needed(desk, view), visitor)
    return RedirectResponse(view.path("/diagnostics"), 303)


def as_json(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Verdicts, figures and groups; the cells are in the CSV file."""
    seen = _look(desk, request, visitor)
    document: dict[str, Any] = {"collection": seen.view.collection, "state": seen.stage.state}
    if seen.looked is not None:
        document |= dict(seen.looked.meta)
    return json_response(document, 202 if seen.looked is None and seen.stage.job else 200)


def as_csv(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Every cell: what was counted, what was fitted, and the residual."""
    looked = _look(desk, request, visitor).looked
    if looked is None:
        return _nothing(desk, request, visitor)
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


def cells(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """What the heat map draws."""
    seen = _look(desk, request, visitor)
    if seen.looked is None:
        return _nothing(desk, request, visitor)
    counts, fitted, residuals = _tables(seen.looked)
    document = cells_document(
        {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}
    )
    document["lit"] = lit_cells(_light(request), seen.collection) if _light(request) else []
    return json_response(document)


def bits(desk: Desk, request: Request, _visitor: Visitor) -> Response:
    """The cells that a string sets."""
    view, light = _view(desk, request), _light(request)
    collection = desk.catalogue.get(view.collection, view.version)
    found = lit_cells(light, collection) if light else []
    return json_response({"string": light, "cells": found})


def picture(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """The heat map as a PNG file, also for browsers without scripts."""
    looked = _look(desk, request, visitor).looked
    if looked is None:
        return _nothing(desk, request, visitor)
    mode = _mode(request, looked)
    counts, fitted, residuals = _tables(looked)
    table = {"counts": counts.astype("float64"), "fitted": fitted, "residuals": residuals}[mode]
    if table is None:
        return _nothing(desk, request, visitor)
    block = block_of(*table.shape)
    body = heat_png(block_means(table, block), mode == "residuals", _theme(request))
    return Response(body, media_type="image/png")


def balance(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """The balance of cohorts as an SVG or PNG file."""
    looked = _look(desk, request, visitor).looked
    if looked is None or not looked.reports:
        return _nothing(desk, request, visitor)
    theme = _theme(request)
    spec = balance_panel(looked.meta["totals"], theme=theme).in_file(theme)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def _view(desk: Desk, request: Request) -> View:
    name = request.path_params["name"]
    view = View.of(request.query_params, desk.catalogue, desk.state, name)
    return replace(view, vs="", against=None)


def _needed(desk: Desk, view: View) -> Needed:
    return Needed(
        "diagnose",
        f"diagnose-{view.key}",
        "Looking over the fit",
        view.collection,
        lambda: arguments_of(desk, view),
    )


def _look(desk: Desk, request: Request, visitor: Visitor) -> _Seen:
    view = _view(desk, request)
    collection = desk.catalogue.get(view.collection, view.version)
    asked = dict(view.dimensions)
    reports = desk.catalogue.reports(view.collection, view.version, view.periods, asked)
    if not reports:
        return _Seen(view, collection, Stage(EMPTY), None)
    if collection.kind == "string" and view.candidates is None:
        return _Seen(view, collection, Stage(NO_LIST, reports), None)
    size = candidates_of(desk, view, collection)
    can = enough(collection, view.periods[-1], reports, size, view.alpha)
    if can.too_few and not view.anyway:
        return _Seen(view, collection, Stage(TOO_FEW, reports, enough=can), None)

    def needs(saved: SavedResult) -> tuple[bool, int]:
        return False, reports - int(saved.meta["reports"])

    found = replace(stage(desk, _needed(desk, view), visitor, reports, needs), enough=can)
    looked = None if found.saved is None else _read(found.saved)
    return _Seen(view, collection, found, looked)


def _tables(looked: Looked) -> tuple[Any, Any, Any]:
    return looked.counts, looked.fitted, looked.residuals


def _has(looked: Looked, mode: str) -> bool:
    return getattr(looked, mode) is not None


def _mode(request: Request, looked: Looked | None) -> str:
    """Which table is drawn: residuals, unless something else is asked for or there are none."""
    wanted = request.query_params.get("map", "") or "residuals"
    if wanted not in MODES:
        raise ParamsError(f"map must be one of {', '.join(MODES)}; got {wanted!r}")
    return wanted if looked is None or _has(looked, wanted) else "counts"


def _light(request: Request) -> str:
    return request.query_params.get("light", "")[:_LONGEST]


def _theme(request: Request) -> str:
    return "dark" if request.query_params.get("theme") == "dark" else "light"


def _link(view: View, more: dict[str, str]) -> str:
    """The rest of an address: the view, and what only this page has."""
    from urllib.parse import urlencode

    own = {key: value for key, value in more.items() if value and (key, value) != _USUAL}
    return "&".join(part for part in (view.query(), urlencode(own)) if part)


def _balance(looked: Looked | None) -> dict[str, Any] | None:
    if looked is None or not looked.reports or looked.meta["cohorts"] == 1:
        return None
    totals = looked.meta["totals"]
    panel = balance_panel(totals)
    return {
        "spec": both(lambda theme: balance_panel(totals, theme=theme).in_page(theme)),
        "sentence": panel.sentence,
        "height": panel.height,
    }


def _nothing(desk: Desk, request: Request, visitor: Visitor) -> Response:
    text = "Nothing is decoded yet. Open the page first."
    return problem(desk, request, visitor, 409, "There is no result", text)


_USUAL = ("map", "residuals")
_PATH = "/collections/{name}/diagnostics"


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
