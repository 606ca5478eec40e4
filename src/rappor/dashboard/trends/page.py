"""Trends: the largest strings over periods, with reports and unlisted mass below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.panel import both
from rappor.charts.render import to_png, to_svg
from rappor.charts.theme import Spec
from rappor.charts.trends import (
    Mark,
    TrendLine,
    multiples_height,
    reports_panel,
    trend_words,
    trends,
    unlisted_panel,
)
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.choices import choices
from rappor.dashboard.context import Context
from rappor.dashboard.page_state import DECODERS, EMPTY, NO_LIST, TOO_FEW, candidates_of
from rappor.dashboard.problems import problem
from rappor.dashboard.reach import reach_of
from rappor.dashboard.routing import Page
from rappor.dashboard.stage import Reader, Stage, begin, stage
from rappor.dashboard.stage_messages import careful, said
from rappor.dashboard.state.records import SavedResult
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.dashboard.trends import period_results as kept
from rappor.dashboard.trends.trend import (
    TrendQuery,
    headline,
    lines_of,
    needed,
    read_trend,
    reports_of,
    trend_marks,
    unlisted_of,
)
from rappor.errors import ParamsError

_HEADER = (
    "period",
    "version",
    "reports",
    "string",
    "proportion",
    "prop_low_95",
    "prop_high_95",
    "detected",
    "unlisted",
    "unlisted_low_95",
    "unlisted_high_95",
)
_COLUMNS = {"wide": 4, "middle": 3, "narrow": 2}  # by the width of the page, as trends.js does
CHARTS = ("shares", "reports", "unlisted")
_read = Reader(kept.unpack)
_PATH = "/collections/{name}/trends"


def page(context: Context, request: Request, visitor: Visitor) -> Response:
    """The page."""
    trend, found, known = _look(context, request, visitor)
    lines, marks = lines_of(trend, known), trend_marks(context, trend)
    rows = list(_rows(trend, known, lines))
    return context.render(
        "trends.html",
        request,
        visitor,
        section="collections",
        trend=trend,
        query=trend.query,
        entry=context.catalogue.entry(trend.query.collection),
        stage=found,
        said=said(found, _where(trend), visitor, trend.collection),
        choices=choices(context, trend.query, [span.period for span in trend.stored], "/trends"),
        sentence=headline(lines) if lines else "",
        words=trend_words(lines, marks, trend.silent),
        lines=lines,
        charts=_charts(trend, known, lines, marks),
        periods=[known[span.period] for span in reversed(trend.spans) if span.period in known],
        sheet=paged(rows, trend.query.page),
        may_decode=visitor.may(DECODERS),
    )


def again(context: Context, request: Request, visitor: Visitor) -> Response:
    """Decode what is new, at once."""
    trend = read_trend(context, request.query_params, request.path_params["name"])
    if trend.spans:
        begin(context, needed(context, trend, context.state.result(trend.key)), visitor)
    return RedirectResponse(trend.query.path("/trends"), 303)


def as_json(context: Context, request: Request, visitor: Visitor) -> Response:
    """Everything on the page, as JSON."""
    trend, found, known = _look(context, request, visitor)
    lines = lines_of(trend, known)
    document: dict[str, Any] = {
        "collection": trend.query.collection,
        "dimensions": dict(trend.query.dimensions),
        "candidates_version": trend.query.candidates,
        "state": found.state,
        "marks": [mark._asdict() for mark in trend_marks(context, trend)],
        "strings": [line.name for line in lines],
        "periods": [
            {
                "period": result.period,
                "version": result.version,
                "reports": result.reports,
                "detected": result.detected,
                "unlisted": _mass(result),
                "rows": [
                    {"string": line.name, **result.rows[line.name]._asdict()}
                    for line in lines
                    if line.name in result.rows
                ],
            }
            for span in trend.spans
            if (result := known.get(span.period)) is not None
        ],
    }
    return json_response(document, 200 if known or not found.job else 202)


def as_csv(context: Context, request: Request, visitor: Visitor) -> Response:
    """The lines of the page, a row for each period and string."""
    trend, _, known = _look(context, request, visitor)
    rows = [
        (*facts, *(known[facts[0]].unlisted or (None,) * 3))
        for facts in _rows(trend, known, lines_of(trend, known))
    ]
    return csv_response(_HEADER, rows, f"{trend.query.collection}-trends.csv")


def as_picture(context: Context, request: Request, visitor: Visitor) -> Response:
    """One chart of the page as an SVG or PNG file."""
    trend, _, known = _look(context, request, visitor)
    wanted = request.query_params.get("chart", CHARTS[0])
    spec = _file(context, trend, known, wanted)
    if spec is None:
        text = "Nothing is decoded yet that it could show."
        return problem(context, request, visitor, 404, "There is no such chart", text)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def _look(
    context: Context, request: Request, visitor: Visitor
) -> tuple[TrendQuery, Stage, dict[str, kept.PeriodResult]]:
    """The trend, how far it is, and what is known of its periods."""
    trend = read_trend(context, request.query_params, request.path_params["name"])
    if not trend.spans:
        return trend, Stage(EMPTY), {}
    if trend.collection.kind == "string" and trend.query.candidates is None:
        return trend, Stage(NO_LIST, trend.reports), {}
    largest = max(trend.spans, key=lambda span: span.reports)
    size = candidates_of(context, trend.query, trend.collection)
    seen = reach_of(trend.collection, largest.period, largest.reports, size, trend.query.alpha)
    if seen.too_few and not trend.query.anyway:
        return trend, Stage(TOO_FEW, largest.reports, reach=seen), {}

    def needs(saved: SavedResult) -> tuple[bool, int]:
        return trend.needs(_read(saved))

    work = needed(context, trend, context.state.result(trend.key))
    found = replace(stage(context, work, visitor, trend.reports, needs), reach=seen)
    return trend, found, {} if found.saved is None else _read(found.saved)


def _rows(
    trend: TrendQuery, known: dict[str, kept.PeriodResult], lines: list[TrendLine]
) -> Iterator[tuple[Any, ...]]:
    """Period, version, reports, string and its numbers; newest period first."""
    for span in reversed(trend.spans):
        result = known.get(span.period)
        if result is None:
            continue
        for line in lines:
            if line.name in result.rows:
                cell = result.rows[line.name]
                yield (result.period, result.version, result.reports, line.name, *cell)


def _where(trend: TrendQuery) -> str:
    """Which reports it is about, in words."""
    times = " – ".join(dict.fromkeys((trend.query.first, trend.query.last)))
    return ", ".join(
        part for part in (times, *(value for _, value in trend.query.dimensions)) if part
    )


def _mass(result: kept.PeriodResult) -> dict[str, float] | None:
    if result.unlisted is None:
        return None
    return dict(zip(("share", "low", "high"), result.unlisted, strict=True))


def _charts(
    trend: TrendQuery,
    known: dict[str, kept.PeriodResult],
    lines: list[TrendLine],
    marks: list[Mark],
) -> dict[str, Any]:
    """What the page draws: embedded specifications with their sentences and heights."""
    found: dict[str, Any] = {}
    if lines:
        found["shares"] = {
            "spec": both(
                lambda theme: trends(lines, marks, trend.silent, theme=theme, in_page=True)
            ),
            "heights": {
                name: multiples_height(len(lines), columns) for name, columns in _COLUMNS.items()
            },
        }
    if trend.spans:
        panel = reports_panel(reports_of(trend))
        found["reports"] = {
            "spec": both(
                lambda theme: reports_panel(reports_of(trend), theme=theme).in_page(theme)
            ),
            "sentence": panel.sentence,
            "height": panel.height,
        }
    mass = unlisted_of(trend, known)
    if mass:
        kind = trend.collection.kind
        drawn = unlisted_panel(mass, marks, kind=kind)
        found["unlisted"] = {
            "spec": both(
                lambda theme: unlisted_panel(mass, marks, theme=theme, kind=kind).in_page(theme)
            ),
            "sentence": drawn.sentence,
            "height": drawn.height,
        }
    return found


def _file(
    context: Context, trend: TrendQuery, known: dict[str, kept.PeriodResult], wanted: str
) -> Spec | None:
    marks = trend_marks(context, trend)
    if wanted not in CHARTS:
        raise ParamsError(f"chart must be one of {', '.join(CHARTS)}; got {wanted!r}")
    if wanted == "reports":
        return reports_panel(reports_of(trend)).in_file() if trend.spans else None
    if wanted == "unlisted":
        mass = unlisted_of(trend, known)
        kind = trend.collection.kind
        return unlisted_panel(mass, marks, kind=kind).in_file() if mass else None
    lines = lines_of(trend, known)
    return trends(lines, marks, trend.silent) if lines else None


def _page(path: str, endpoint: Any, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=careful(endpoint), roles=EVERYONE, name=name)


PAGES = (
    _page("", page, "trends"),
    Page(
        path=_PATH, endpoint=careful(again), roles=DECODERS, name="trends-again", methods=("POST",)
    ),
    _page(".json", as_json, "trends-json"),
    _page(".csv", as_csv, "trends-csv"),
    _page(".svg", as_picture, "trends-svg"),
    _page(".png", as_picture, "trends-png"),
)
