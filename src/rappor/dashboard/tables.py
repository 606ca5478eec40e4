"""Tables as CSV and JSON answers, and pages of long tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from rappor import csv_cells

PAGE_ROWS = 200


def csv_response(header: Sequence[str], rows: Iterable[Sequence[object]], name: str) -> Response:
    """A CSV file for download; spreadsheets run nothing in it."""
    lines = [",".join(header) + "\n", *map(csv_cells.line, rows)]
    body = "".join(lines).encode("utf-8", "replace")
    return Response(body, headers=_saved(name), media_type="text/csv; charset=utf-8")


def json_response(document: Any, status: int = 200) -> Response:
    """A JSON document: full-precision numbers, ∞ as "inf", nan as null."""
    body = json.dumps(_plain(document), allow_nan=False, indent=1).encode()
    return Response(body, status, media_type="application/json")


def _plain(item: Any) -> Any:
    if isinstance(item, dict):
        return {str(key): _plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_plain(value) for value in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None if math.isnan(item) else "inf" if item > 0 else "-inf"
    return item


def _saved(name: str) -> dict[str, str]:
    """The header that makes a browser save a file; its name is plain ASCII."""
    safe = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in name
    )
    return {"content-disposition": f'attachment; filename="{safe}"'}


class Sheet(NamedTuple):
    """One page of a long table.

    Attributes:
        rows: the rows on the page.
        page: its number, from 1.
        pages: the number of pages.
        total: the number of all rows.
    """

    rows: Sequence[Any]
    page: int
    pages: int
    total: int


def paged(rows: Sequence[Any], page: str | int | None, size: int = PAGE_ROWS) -> Sheet:
    """A page of rows; the nearest page if there is no such page.

    >>> paged(range(450), "3").rows, paged(range(450), "99").page, paged([], "x").pages
    (range(400, 450), 3, 1)
    """
    text = str(page or 1)
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, wanted), pages)
    return Sheet(rows[(number - 1) * size : number * size], number, pages, len(rows))
