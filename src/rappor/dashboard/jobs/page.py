"""Jobs: their progress as JSON, for the script that waits, and the button that cancels them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rappor.dashboard.auth.roles import EVERYONE, Role, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.forms import safe_next
from rappor.dashboard.page_access import Page
from rappor.dashboard.problems import problem
from rappor.dashboard.tables import json_response

MAY_CANCEL = frozenset({Role.ANALYST, Role.OPERATOR})


def job(context: Context, request: Request, visitor: Visitor) -> Response:
    """The present state of one job."""
    found = context.jobs.get(request.path_params["number"])
    if found is None:
        return _unknown(context, request, visitor)
    return json_response(found.document())


def cancel(context: Context, request: Request, visitor: Visitor) -> Response:
    """Cancel a job, and go back to the page of the button."""
    before = context.jobs.get(request.path_params["number"])
    if before is None:
        return _unknown(context, request, visitor)
    if not before.over:
        context.jobs.cancel(before.id)
        context.state.audit(visitor.actor, "job-cancel", f"{before.collection}: {before.label}")
    return RedirectResponse(safe_next(request.state.form.get("next", "/")), 303)


def _unknown(context: Context, request: Request, visitor: Visitor) -> Response:
    text = "The dashboard restarted since, or the job ended long ago."
    return problem(context, request, visitor, 404, "There is no such job", text)


PAGES = (
    Page(path="/jobs/{number}.json", endpoint=job, roles=EVERYONE, name="job"),
    Page(
        path="/jobs/{number}/cancel",
        endpoint=cancel,
        roles=MAY_CANCEL,
        name="job-cancel",
        methods=("POST",),
    ),
)
