"""Error pages: what went wrong, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from rappor.dashboard.auth.roles import Role, Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.settings import DashboardSettings

_MACHINE = (".json", ".csv")


def problem(
    context: Context, request: Request, visitor: Visitor, status: int, title: str, text: str
) -> Response:
    """An error page; a short JSON document if the address is that of data."""
    if request.url.path.endswith(_MACHINE):
        return JSONResponse({"error": title, "detail": text}, status)
    return context.render("problem.html", request, visitor, status, title=title, text=text)


def not_found(context: Context, request: Request, visitor: Visitor) -> Response:
    """The page of an unknown address."""
    return problem(
        context, request, visitor, 404, "There is no such page", "Start again from the collections."
    )


def forbidden(
    context: Context, request: Request, visitor: Visitor, roles: Iterable[Role], owner: str = ""
) -> Response:
    """The error page for a visitor whose role may not open a page."""
    title, text = refusal(visitor, roles, owner)
    return problem(context, request, visitor, 403, title, text)


def refusal(visitor: Visitor, roles: Iterable[Role], owner: str = "") -> tuple[str, str]:
    """Title and text for a visitor whose role may not do this.

    >>> refusal(Visitor("ada", Role.VIEWER), {Role.ANALYST}, "Browser team")
    ('Analysts can do this; you are a viewer', 'Ask Browser team.')
    """
    able = [role.plural for role in Role if role in set(roles)]
    able[1:] = [word.lower() for word in able[1:]]
    who = " and ".join([", ".join(able[:-1]), able[-1]] if len(able) > 1 else able)
    are = "nobody yet" if visitor.role is None else visitor.role.article
    return f"{who} can do this; you are {are}", f"Ask {owner or 'the operator of this dashboard'}."


def log_in_first(request: Request) -> Response:
    """Redirect to the login page, which leads back; 401 for addresses of data."""
    if request.url.path.endswith(_MACHINE):
        return JSONResponse({"error": "Log in first", "detail": "There is no session."}, 401)
    from urllib.parse import quote

    query = f"?{request.url.query}" if request.url.query else ""
    wanted = request.url.path + query if request.method == "GET" else "/"
    back = "" if wanted == "/" else f"?next={quote(wanted)}"
    return RedirectResponse(f"/login{back}", 303)


def without_paths(text: str, settings: DashboardSettings) -> str:
    """The text of an error with the names of files, but not their folders.

    >>> without_paths("/srv/data/store.sqlite: damaged", DashboardSettings(Path("/srv/data")))
    'store.sqlite: damaged'
    """
    for folder in (settings.data, settings.collections):
        if folder is None:
            continue
        for name in sorted(_names(folder), key=len, reverse=True):
            if name not in (".", "/"):
                text = text.replace(f"{name}/", "").replace(name, folder.name)
    return text


def _names(folder: Path) -> set[str]:
    return {str(folder), str(folder.absolute()), str(folder.resolve())}
