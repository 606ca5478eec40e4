"""The Trends page: shares of the largest strings by period, reports, and undetected mass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.marks import both
from rappor.charts.render import to_png, to_svg
from rappor.charts.theme import Spec
from rappor.charts.trends import (
    Mark,
    TrendLine,
    multiples_height,
    reports_panel,
    trend_words,
    trends,
    undetected_mass_panel,
)
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Endpoint, Page
from rappor.dashboard.page_choices import choices
from rappor.dashboard.page_messages import message_of
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.page_state import DECODERS, PageState, begin, page_state
from rappor.dashboard.problems import problem
from rappor.dashboard.query_reading import Answer, current_name, one_of, with_query
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.dashboard.trends.period_results import PeriodResult, TrendCell
from rappor.dashboard.trends.trend import (
    TrendQuery,
    headline,
    lines_of,
    read_periods,
    read_trend,
    reports_of,
    trend_marks,
    trend_work,
    undetected_mass_of,
)

_HEADER = (
    "period",
    "version",
    "reports",
    "string",
    "proportion",
    "prop_low_95",
    "prop_high_95",
    "detected",
    "undetected_mass",
    "undetected_mass_low_95",
    "undetected_mass_high_95",
)
_COLUMNS = {"wide": 4, "middle": 3, "narrow": 2}  # by the width of the page, like trends.js
CHARTS = ("shares", "reports", "undetected_mass")
_PATH = "/collections/{name}/trends"


def page(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The page."""
    trend, state, known = _look(context, request, visitor, query)
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
        state=state,
        message=message_of(state, visitor),
        choices=choices(
            context, trend.query, [period.period for period in trend.stored], "/trends"
        ),
        sentence=headline(lines) if lines else "",
        words=trend_words(lines, marks, trend.silent),
        lines=lines,
        charts=_charts(trend, known, lines, marks),
        periods=[
            known[period.period] for period in reversed(trend.periods) if period.period in known
        ],
        sheet=paged(rows, trend.query.page),
        may_decode=visitor.may(DECODERS),
    )


def again(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Decode periods that are new or changed."""
    trend = read_trend(context, query, request.query_params)
    if trend.periods:
        begin(context, trend_work(context, trend), visitor.actor)
    return RedirectResponse(trend.query.path("/trends"), 303)


def as_json(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """Everything on the page, as JSON."""
    trend, state, known = _look(context, request, visitor, query)
    lines = lines_of(trend, known)
    document: dict[str, Any] = {
        "collection": trend.query.collection,
        "dimensions": dict(trend.query.dimensions),
        "candidates_version": trend.query.candidates,
        "state": state.status,
        "marks": [mark._asdict() for mark in trend_marks(context, trend)],
        "strings": [line.name for line in lines],
        "periods": [
            {
                "period": result.period,
                "version": result.version,
                "reports": result.reports,
                "detected": result.detected,
                "undetected_mass": _mass(result),
                "rows": [
                    {"string": line.name, **_in_file(result.rows[line.name])}
                    for line in lines
                    if line.name in result.rows
                ],
            }
            for period in trend.periods
            if (result := known.get(period.period)) is not None
        ],
    }
    return json_response(document, 200 if known or not state.job else 202)


def as_csv(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """The lines of the page, one row for each period and string."""
    trend, _, known = _look(context, request, visitor, query)
    rows = [
        (
            *facts[:4],
            *_in_file(TrendCell(*facts[4:])).values(),
            *(known[facts[0]].undetected_mass or (None,) * 3),
        )
        for facts in _rows(trend, known, lines_of(trend, known))
    ]
    return csv_response(_HEADER, rows, f"{trend.query.collection}-trends.csv")


def as_picture(context: Context, request: Request, visitor: Visitor, query: PageQuery) -> Response:
    """One chart of the page as an SVG or PNG file."""
    trend, _, known = _look(context, request, visitor, query)
    asked = {"chart": current_name(request.query_params.get("chart", ""))}
    wanted = one_of(asked, "chart", CHARTS)
    spec = _file(context, trend, known, wanted)
    if spec is None:
        text = "Nothing is decoded yet."
        return problem(context, request, visitor, 404, "There is no such chart", text)
    if request.url.path.endswith(".png"):
        return Response(to_png(spec), media_type="image/png")
    return Response(to_svg(spec), media_type="image/svg+xml")


def _look(
    context: Context, request: Request, visitor: Visitor, query: PageQuery
) -> tuple[TrendQuery, PageState, dict[str, PeriodResult]]:
    """The trend, its state, and the results of its periods that are known."""
    trend = read_trend(context, query, request.query_params)
    state = page_state(context, trend_work(context, trend), trend.query, visitor)
    return trend, state, {} if state.saved is None else read_periods(state.saved)


def _rows(
    trend: TrendQuery, known: dict[str, PeriodResult], lines: list[TrendLine]
) -> Iterator[tuple[Any, ...]]:
    """Period, version, reports, string and its numbers; newest period first."""
    for period in reversed(trend.periods):
        result = known.get(period.period)
        if result is None:
            continue
        for line in lines:
            if line.name in result.rows:
                cell = result.rows[line.name]
                yield (result.period, result.version, result.reports, line.name, *cell)


def _in_file(cell: TrendCell) -> dict[str, Any]:
    """A share as files have it: without a lower end where presence is all that is known."""
    facts = cell._asdict()
    return facts | {"low": None} if cell.detected and not cell.low > 0 else facts


def _mass(result: PeriodResult) -> dict[str, float] | None:
    if result.undetected_mass is None:
        return None
    return dict(zip(("share", "low", "high"), result.undetected_mass, strict=True))


def _charts(
    trend: TrendQuery,
    known: dict[str, PeriodResult],
    lines: list[TrendLine],
    marks: list[Mark],
) -> dict[str, Any]:
    """The charts of the page: embedded specifications with their sentences and heights."""
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
    if trend.periods:
        panel = reports_panel(reports_of(trend))
        found["reports"] = {
            "spec": both(
                lambda theme: reports_panel(reports_of(trend), theme=theme).in_page(theme)
            ),
            "sentence": panel.sentence,
            "height": panel.height,
        }
    mass = undetected_mass_of(trend, known)
    if mass:
        kind = trend.collection.kind
        drawn = undetected_mass_panel(mass, marks, kind=kind)
        found["undetected_mass"] = {
            "spec": both(
                lambda theme: undetected_mass_panel(mass, marks, theme=theme, kind=kind).in_page(
                    theme
                )
            ),
            "sentence": drawn.sentence,
            "height": drawn.height,
        }
    return found


def _file(
    context: Context, trend: TrendQuery, known: dict[str, PeriodResult], wanted: str
) -> Spec | None:
    marks = trend_marks(context, trend)
    if wanted == "reports":
        return reports_panel(reports_of(trend)).in_file() if trend.periods else None
    if wanted == "undetected_mass":
        mass = undetected_mass_of(trend, known)
        kind = trend.collection.kind
        return undetected_mass_panel(mass, marks, kind=kind).in_file() if mass else None
    lines = lines_of(trend, known)
    return trends(lines, marks, trend.silent) if lines else None


def _page(path: str, answer: Answer, name: str) -> Page:
    return Page(path=_PATH + path, endpoint=_endpoint(answer), roles=EVERYONE, name=name)


def _endpoint(answer: Answer) -> Endpoint:
    # Each period is decoded with the version that most of its reports are of.
    return with_query(answer, ignored=("version",))


PAGES = (
    _page("", page, "trends"),
    Page(
        path=_PATH,
        endpoint=_endpoint(again),
        roles=DECODERS,
        name="trends-again",
        methods=("POST",),
    ),
    _page(".json", as_json, "trends-json"),
    _page(".csv", as_csv, "trends-csv"),
    _page(".svg", as_picture, "trends-svg"),
    _page(".png", as_picture, "trends-png"),
)
