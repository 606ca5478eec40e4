"""The Ingest page: the collector's health and refusals, accounts, and the audit log."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.charts.ingest import rates
from rappor.charts.marks import both
from rappor.dashboard.auth.roles import Role, Visitor, role_of
from rappor.dashboard.context import Context
from rappor.dashboard.ingest.watch import Figures
from rappor.dashboard.page_access import Page
from rappor.dashboard.settings import login_link
from rappor.dashboard.tables import csv_response, json_response, paged
from rappor.errors import ParamsError
from rappor.store import AuditEntry
from rappor.wire import PROBLEMS

LOOKERS = frozenset({Role.OPERATOR, Role.OFFICER})
OPERATORS = frozenset({Role.OPERATOR})
_AUDIT_ROWS = 50
_GRAIN = 16_000_000  # bytes: the log grows with each commit, by some 20 kB
FEW_BYTES = 1e9  # free space below which a disk is nearly full


def ingest(context: Context, request: Request, visitor: Visitor) -> Response:
    """The page."""
    return _page(context, request, visitor)


def _page(
    context: Context, request: Request, visitor: Visitor, status: int = 200, **said: object
) -> Response:
    figures = context.watch.figures()
    made = {"wrong": "", "token": None, "link": None, "account": ""} | said
    return context.render(
        "ingest.html",
        request,
        visitor,
        status,
        section="ingest",
        figures=figures,
        refused=refused_of(figures),
        disk=disk_of(context),
        chart=both(lambda theme: rates(figures.minutes, theme)) if figures.minutes else None,
        jobs=jobs_of(context),
        retention=last_retention(context),
        kept=kept_by(context),
        accounts=context.state.accounts(),
        roles=context.state.grantable(_role(visitor)),
        enters=lambda role: role in _role(visitor).held,
        ends=lambda role: role is not Role.OFFICER or visitor.role is Role.OFFICER,
        operates=visitor.may(OPERATORS),
        audit=paged(audit_of(context), request.query_params.get("page"), _AUDIT_ROWS),
        audit_link=lambda page: f"/ingest?page={page}#audit",
        **made,
    )


def ingest_json(context: Context, _: Request, __: Visitor) -> Response:
    """The same for programs."""
    figures, disk, retention = context.watch.figures(), disk_of(context), last_retention(context)
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
            "jobs": jobs_of(context),
            "accounts": [
                {"name": account.name, "role": account.role.value, "revoked": account.revoked}
                for account in context.state.accounts()
            ],
        }
    )


def ingest_csv(context: Context, _: Request, __: Visitor) -> Response:
    """The figures, one a line."""
    figures, disk = context.watch.figures(), disk_of(context)
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
        *(("refused_today", reason.code, reason.batches) for reason in refused_of(figures)),
    ]
    return csv_response(("figure", "label", "value"), rows, "ingest.csv")


def audit_csv(context: Context, _: Request, visitor: Visitor) -> Response:
    """The audit log, newest first; the download is logged too."""
    rows = audit_of(context)
    context.state.audit(visitor.actor, "export", "the audit log")
    return csv_response(("when", "actor", "action", "detail"), rows, "audit.csv")


def new_account(context: Context, request: Request, visitor: Visitor) -> Response:
    """Make an account; only this answer shows its token."""
    form = request.state.form
    name = str(form.get("name", "")).strip()
    try:
        role = role_of(str(form.get("role", "")))
        token = context.state.add_account(name, role, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(context, request, visitor, 400, wrong=str(error))
    return _page(context, request, visitor, token=token, account=name)


def new_link(context: Context, request: Request, visitor: Visitor) -> Response:
    """Make a one-time link for an account."""
    name = str(request.state.form.get("name", ""))
    try:
        secret = context.state.new_link(name, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(context, request, visitor, 400, wrong=str(error))
    link = login_link(context.settings.address, secret)
    return _page(context, request, visitor, link=link, account=name)


def revoke(context: Context, request: Request, visitor: Visitor) -> Response:
    """End an account."""
    name = str(request.state.form.get("name", ""))
    if name == visitor.name:
        wrong = f"You cannot revoke your own account; another {visitor.role} can"
        return _page(context, request, visitor, 400, wrong=wrong)
    try:
        context.state.revoke(name, visitor.actor, granter=_role(visitor))
    except ParamsError as error:
        return _page(context, request, visitor, 400, wrong=str(error))
    return RedirectResponse("/ingest#accounts", 303)


def _role(visitor: Visitor) -> Role:
    """The role of a visitor; all routes of this page need one."""
    return visitor.role or Role.VIEWER


def again(_: Context, __: Request, ___: Visitor) -> Response:
    """Go to the page if a visitor reloads the answer to a form."""
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


@dataclass(frozen=True, slots=True)
class Refused:
    """A reason for refusals: its code, batches today, its meaning, and what clients do."""

    code: str
    batches: int
    meaning: str
    client: str


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Disk space in steps of 16 MB: exact sizes would reveal each commit."""

    free: int
    store: int
    own: int

    @property
    def low(self) -> bool:
        """Whether it is nearly full."""
        return self.free < FEW_BYTES


def refused_of(figures: Figures) -> list[Refused]:
    """Refusals by reason, most frequent first."""
    found = []
    for code, number in sorted(figures.refused.items(), key=lambda each: (-each[1], each[0])):
        problem = PROBLEMS.get(code)
        meaning = problem.title if problem else "A reason that this version does not know."
        later = problem is not None and problem.retry
        found.append(Refused(code, number, meaning, "tries again" if later else "drops the batch"))
    return found


def disk_of(context: Context) -> DiskSpace:
    """Free space, and the space of store and dashboard."""
    data = context.settings.data
    return DiskSpace(
        shutil.disk_usage(data).free // _GRAIN * _GRAIN,
        -(-context.catalogue.store_bytes() // _GRAIN) * _GRAIN,
        _size_of([*data.glob("dashboard.sqlite*"), *data.glob("released.sqlite*")]),
    )


def _size_of(files: Iterable[Path]) -> int:
    """Bytes of files, rounded up; a file may vanish meanwhile, such as a merged log."""
    size = 0
    for file in files:
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return -(-size // _GRAIN) * _GRAIN


def audit_of(context: Context) -> list[AuditEntry]:
    """The audit logs of store and dashboard, newest first."""
    every = [*context.catalogue.audit_log(), *context.state.audit_log()]
    return sorted(every, key=lambda entry: entry.when)[::-1]


def last_retention(context: Context) -> AuditEntry | None:
    """The last time that retention removed old data."""
    runs = [entry for entry in context.catalogue.audit_log() if entry.action == "retain"]
    return runs[-1] if runs else None


def jobs_of(context: Context) -> list[dict[str, Any]]:
    """Jobs of this process, then saved jobs of earlier ones, newest first."""
    now = [job.document() | {"actor": job.actor} for job in context.jobs.all()]
    known = {job["id"] for job in now}
    return now + [
        {"actor": ""} | job.document for job in context.state.jobs() if job.id not in known
    ]


def kept_by(context: Context) -> list[dict[str, Any]]:
    """How long each collection's reports and counts are kept."""
    return [
        {
            "collection": entry.name,
            "keep_reports_days": entry.collection.keep_reports_days,
            "expires": entry.collection.expires,
            "on_expiry": entry.collection.on_expiry,
        }
        for entry in context.catalogue.collections()
    ]
