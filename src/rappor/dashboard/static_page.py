"""Scripts and styles: the only answers that a browser may keep."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rappor.dashboard.auth.roles import PUBLIC, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.problems import not_found
from rappor.dashboard.routing import Page

_CACHED = "public, max-age=31536000, immutable"


def static(context: Context, request: Request, visitor: Visitor) -> Response:
    """One file."""
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


PAGES = (Page(path="/static/{file}", endpoint=static, roles=PUBLIC, name="static"),)
