"""Page: a route and the roles that may open it. No route is without a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from rappor.dashboard.auth.roles import PUBLIC, Role
from rappor.dashboard.forms import FORM_BYTES
from rappor.errors import ParamsError

if TYPE_CHECKING:
    from rappor.dashboard.auth.roles import Visitor
    from rappor.dashboard.context import Context

Endpoint = Callable[["Context", Request, "Visitor"], Response]
METHODS = ("GET", "POST")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One route.

    Attributes:
        path: Starlette's, such as "/collections/{name}".
        endpoint: answers, in a thread, so it may wait for files. The fields of a POST are in
            `request.state.form`; its CSRF token was checked.
        roles: who may open it; PUBLIC needs no login. There is no default.
        name: unique; templates use it with `url`.
        methods: GET (HEAD comes with it) or POST.
        max_bytes: how large the body of a POST may be.
    """

    path: str
    endpoint: Endpoint
    roles: frozenset[Role]
    name: str
    methods: tuple[str, ...] = ("GET",)
    max_bytes: int = FORM_BYTES

    def __post_init__(self) -> None:
        if self.roles is not PUBLIC and not self.roles:
            raise ParamsError(f"{self.path}: name the roles that may open it, or PUBLIC")
        if not self.methods or set(self.methods) - set(METHODS):
            raise ParamsError(f"{self.path}: methods must be among {', '.join(METHODS)}")
        if not self.path.startswith("/"):
            raise ParamsError(f"a path begins with /, got {self.path!r}")


def lookup(pages: tuple[Page, ...]) -> dict[str, Page]:
    """Pages by name; ParamsError if a name, or a path with its method, occurs twice."""
    named: dict[str, Page] = {}
    seen: set[tuple[str, str]] = set()
    for page in pages:
        keys = {(method, page.path) for method in page.methods}
        if page.name in named or keys & seen:
            raise ParamsError(f"the route {page.name} ({page.path}) occurs twice")
        named[page.name] = page
        seen |= keys
    return named
