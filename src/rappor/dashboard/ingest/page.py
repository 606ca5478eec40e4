"""Ingest: is the collector well, what does it refuse, who may log in, who did what."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.ingest import rates
from rappor.dashboard.auth.roles import Role, role_of
from rappor.dashboard.auth.visitor import Visitor
from rappor.dashboard.context import Desk
from rappor.dashboard.embedding import both
from rappor.dashboard.ingest.figures import (
    audit_of,
    disk_of,
    jobs_of,
    kept_by,
    last_retention,
    refused_of,
)
from rappor.dashboard.links import login_link
from rappor.dashboard.routing import Page
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.errors import ParamsError

LOOKERS = frozenset({Role.OPERATOR, Role.OFFICER})
OPERATORS = frozenset({Role.OPERATOR})
_AUDIT_ROWS = 50


def ingest(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """The page."""
    return _page(desk, request, visitor)


def _page(
    desk: Desk, request: Request, visitor: Visitor, status: int = 200, **said: object
) -> Response:
    figures = desk.watch.figures()
    made = {"wrong": "", "token": None, "link": None, "account": ""} | said
    return desk.render(
        "ingest.html",
        request,
        visitor,
        status,
        section="ingest",
        figures=figures,
        refused=refused_of(figures),
        disk=disk_of(desk),
        chart=both(lambda theme: rates(figures.minutes, theme)) if figures.minutes else None,
        jobs=jobs_of(desk),
        retention=last_retention(desk),
        kept=kept_by(desk),
        accounts=desk.state.accounts(),
        roles=desk.state.grantable(_role(visitor)),
        enters=lambda role: role in _role(visitor).held,
        ends=lambda role: role is not Role.OFFICER or visitor.role is Role.OFFICER,
        operates=visitor.may(OPERATORS),
        audit=paged(audit_of(desk), request.query_params.get("page"), _AUDIT_ROWS),
        audit_link=lambda page: f"/ingest?page={page}#audit",
        **made,
    )


def ingest_json(desk: Desk, _: Request, __: Visitor) -> Response:
    """The same for programs."""
    figures, disk, retention = desk.watch.figures(), disk_of(desk), last_retention(desk)
    return json_response(
        {
            "health": figures.health,
            "reason": figures.reason,
            "reports_per_second": figures.rate,
            "refused_share_today": figures.refused_share,
            "refused_today": figures.refused,
            "batches_today": figures.batches,
            "commit_seconds_99": figures.commit,
            "queue_batches": figures.queue_batches,
            "queue_bytes": figures.queue_bytes,
            "minutes": figures.minutes,
            "disk_free_bytes": disk.free,
            "store_bytes": disk.store,
            "dashboard_bytes": disk.own,
            "last_retention": None if retention is None else retention._asdict(),
            "jobs": jobs_of(desk),
            "accounts": [
                {"name": each.name, "role": each.role.value, "revoked": each.revoked}
                for each in desk.state.accounts()
            ],
        }
    )


def ingest_csv(desk: Desk, _: Request, __: Visitor) -> Response:
    """The figures, one a line."""
    figures, disk = desk.watch.figures(), disk_of(desk)
    rows: list[tuple[object, ...]] = [
        ("health", "", figures.health),
        ("reports_per_second", "", figures.rate),
        ("refused_share_today", "", figures.refused_share),
        ("batches_today", "", figures.batches),
        ("commit_seconds_99", "", figures.commit),
        ("queue_batches", "", figures.queue_batches),
        ("queue_bytes", "", figures.queue_bytes),
        ("disk_free_bytes", "", disk.free),
        ("store_bytes", "", disk.store),
        *(("refused_today", each.code, each.batches) for each in refused_of(figures)),
    ]
    return csv_response(("figure", "label", "value"), rows, "ingest.csv")


def audit_csv(desk: Desk, _: Request, visitor: Visitor) -> Response:
    """The audit log, newest first; taking it away is written down too."""
    rows = audit_of(desk)
    desk.state.audit(visitor.actor, "export", "the audit log")
    return csv_response(("when", "actor", "action", "detail"), rows, "audit.csv")


def new_account(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Make an account; its token is on the answer and nowhere else."""
    form = request.state.form
    name = str(form.get("name", "")).strip()
    try:
        role = role_of(str(form.get("role", "")))
        token = desk.state.add_account(name, role, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(desk, request, visitor, 400, wrong=str(error))
    return _page(desk, request, visitor, token=token, account=name)


def new_link(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Make a one-time link for an account."""
    name = str(request.state.form.get("name", ""))
    try:
        secret = desk.state.new_link(name, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(desk, request, visitor, 400, wrong=str(error))
    link = login_link(desk.settings.address, secret)
    return _page(desk, request, visitor, link=link, account=name)


def revoke(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """End an account."""
    name = str(request.state.form.get("name", ""))
    if name == visitor.name:
        wrong = f"You cannot revoke yourself: another {visitor.role} can"
        return _page(desk, request, visitor, 400, wrong=wrong)
    try:
        desk.state.revoke(name, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(desk, request, visitor, 400, wrong=str(error))
    return RedirectResponse("/ingest#accounts", 303)


def _role(visitor: Visitor) -> Role:
    """The role of a visitor, who has one: routes without roles are none of these."""
    return visitor.role or Role.VIEWER


def again(_: Desk, __: Request, ___: Visitor) -> Response:
    """Back to the page, for who loads the answer to a form anew."""
    return RedirectResponse("/ingest", 303)


PAGES = (
    Page(path="/ingest", endpoint=ingest, roles=LOOKERS, name="ingest"),
    Page(path="/ingest.json", endpoint=ingest_json, roles=LOOKERS, name="ingest_json"),
    Page(path="/ingest.csv", endpoint=ingest_csv, roles=LOOKERS, name="ingest_csv"),
    Page(path="/ingest/audit.csv", endpoint=audit_csv, roles=LOOKERS, name="audit_csv"),
    Page(
        path="/ingest/accounts",
        endpoint=new_account,
        roles=LOOKERS,
        name="new_account",
        methods=("POST",),
    ),
    Page(path="/ingest/accounts", endpoint=again, roles=LOOKERS, name="new_account_again"),
    Page(
        path="/ingest/links",
        endpoint=new_link,
        roles=LOOKERS,
        name="new_link",
        methods=("POST",),
    ),
    Page(path="/ingest/links", endpoint=again, roles=LOOKERS, name="new_link_again"),
    Page(path="/ingest/revoke", endpoint=revoke, roles=LOOKERS, name="revoke", methods=("POST",)),
    Page(path="/ingest/revoke", endpoint=again, roles=LOOKERS, name="revoke_again"),
)
