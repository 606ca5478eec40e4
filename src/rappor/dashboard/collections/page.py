"""The Collections page: what is collected, its privacy cost, and how much has arrived."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from rappor.collection import announcement, expiring
from rappor.dashboard.auth.roles import EVERYONE, Visitor
from rappor.dashboard.collections.overview import (
    DEFAULT_SORT,
    CollectionRow,
    active,
    chosen,
    known_sort,
    rows_of,
    total_epsilon,
)
from rappor.dashboard.context import Context
from rappor.dashboard.page_access import Page
from rappor.dashboard.snapshot import Standing
from rappor.dashboard.tables import csv_response, json_response, paged

# The key to sort by, the word, the class, and whether large ones come first. What was found and
# when it ends come first: a phone shows the first columns, and the others scroll.
_COLUMNS = (
    ("name", "Collection", "", False),
    ("detected", "Detected", "num", True),
    ("expires", "Expires", "", False),
    ("reports", "Reports this period", "num", True),
    ("undetected_mass", "Undetected mass", "num", True),
    ("state", "State", "", False),
    ("epsilon", "ε₁ / ε∞", "num", True),
    ("owner", "Owner", "", False),
)


class _ListQuery:
    """The query of the address: q, state, sort, page."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.q = query.get("q", "")[:200]
        state = query.get("state", "")
        self.state = state if state in list(Standing) else ""
        self.sort = known_sort(query.get("sort", ""))
        self.page = query.get("page")

    def address(self, path: str = "/", **changes: str | int) -> str:
        """The address of this query with changes, without default values."""
        given = {"q": self.q, "state": self.state, "sort": self.sort, "page": ""} | changes
        usual = {"q": "", "state": "", "sort": DEFAULT_SORT, "page": ""}
        query = {name: value for name, value in given.items() if value != usual[name]}
        return f"{path}?{urlencode(query)}" if query else path


def _all_rows(context: Context) -> list[CollectionRow]:
    catalogue = context.catalogue
    state, entries = context.state, catalogue.collections()
    metas = state.latest_metas() | state.latest_metas("associate")
    return rows_of(entries, metas, catalogue.today(), state.candidate_sizes())


def collections(context: Context, request: Request, visitor: Visitor) -> Response:
    """The page."""
    asked = _ListQuery(request)
    every = _all_rows(context)
    rows = chosen(every, asked.q, asked.state, asked.sort)
    today = context.catalogue.today()
    snapshot = context.catalogue.snapshot()
    versions = [snapshot.collections[name][version] for name, version in snapshot.stored]
    return context.render(
        "collections.html",
        request,
        visitor,
        section="collections",
        asked=asked,
        every=len(every),
        active=len(active(every)),
        epsilon=total_epsilon(every),
        epsilons=[row.ever for row in active(every)],
        sheet=paged(rows, asked.page),
        columns=_COLUMNS,
        sort_link=lambda sort: asked.address(sort=sort),
        page_link=lambda page: asked.address(page=page),
        standings=[standing.value for standing in Standing],
        unreadable=context.catalogue.unreadable(),
        ending=[announcement(item, today) for item in expiring(versions, today)],
        has_store=context.catalogue.has_store,
    )


def collections_json(context: Context, request: Request, _: Visitor) -> Response:
    """The list as JSON."""
    asked = _ListQuery(request)
    every = _all_rows(context)
    rows = chosen(every, asked.q, asked.state, asked.sort)
    return json_response(
        {
            "active": len(active(every)),
            "epsilon_of_all_active": total_epsilon(every),
            "collections": [row.record() for row in rows],
        }
    )


def collections_csv(context: Context, request: Request, _: Visitor) -> Response:
    """The list as CSV."""
    asked = _ListQuery(request)
    records = [row.record() for row in chosen(_all_rows(context), asked.q, asked.state, asked.sort)]
    header = list(records[0]) if records else ["collection"]
    return csv_response(header, (list(record.values()) for record in records), "collections.csv")


PAGES = (
    Page(path="/", endpoint=collections, roles=EVERYONE, name="collections"),
    Page(
        path="/collections.json", endpoint=collections_json, roles=EVERYONE, name="collections_json"
    ),
    Page(path="/collections.csv", endpoint=collections_csv, roles=EVERYONE, name="collections_csv"),
)
