"""Every route of the dashboard: the one list that the router and the tests read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

import rappor.dashboard.associations.page as associations
import rappor.dashboard.candidates.page as candidates
import rappor.dashboard.collections.page as collections
import rappor.dashboard.diagnostics.page as diagnostics
import rappor.dashboard.ingest.page as ingest
import rappor.dashboard.jobs.page as jobs
import rappor.dashboard.results.page as results
import rappor.dashboard.session.page as session
import rappor.dashboard.trends.page as trends
from rappor.dashboard.auth.roles import PUBLIC, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Page, lookup
from rappor.dashboard.problems import not_found

_CACHED = "public, max-age=31536000, immutable"


def static(context: Context, request: Request, visitor: Visitor) -> Response:
    """One script or style; browsers may cache it, because its address changes with it."""
    asset = context.assets.get(request.path_params["file"])
    if asset is None:
        return not_found(context, request, visitor)
    headers = {"vary": "accept-encoding"}
    if "v" in request.query_params:
        headers["cache-control"] = _CACHED
    body = asset.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["content-encoding"] = asset.packed, "gzip"
    return Response(body, headers=headers, media_type=asset.content_type)


PAGES = (
    Page(path="/static/{file}", endpoint=static, roles=PUBLIC, name="static"),
    *session.PAGES,
    *collections.PAGES,
    *results.PAGES,
    *trends.PAGES,
    *diagnostics.PAGES,
    *associations.PAGES,
    *candidates.PAGES,
    *jobs.PAGES,
    *ingest.PAGES,
)
NAMED = lookup(PAGES)
