"""Tables as files and as pages: CSV that a spreadsheet cannot run, sorting, searching, paging."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

_RUNNABLE = ("=", "+", "-", "@", "\t", "\r")  # how a formula begins (SECURITY: pages)
PAGE_ROWS = 200


def safe_cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers.

    >>> safe_cell("=1+1"), safe_cell(-1.5), safe_cell(None), safe_cell(math.inf)
    ("'=1+1", '-1.5', '', 'inf')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(_RUNNABLE) else text


def csv_response(header: Sequence[str], rows: Iterable[Sequence[object]], name: str) -> Response:
    """A CSV file to save under a name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)
    body = text.getvalue().encode("utf-8", "replace")
    return Response(body, headers=_saved(name), media_type="text/csv; charset=utf-8")


def json_response(document: Any, status: int = 200) -> Response:
    """A JSON document: full-precision numbers, ∞ as "inf", what is not a number as null."""
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
    """The header that has a browser save a file; our names are plain ASCII."""
    safe = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in name
    )
    return {"content-disposition": f'attachment; filename="{safe}"'}


class Sheet(NamedTuple):
    """One page of a long table.

    Attributes:
        rows: those on the page.
        page: which, from 1 on.
        pages: how many there are.
        total: rows in all.
    """

    rows: Sequence[Any]
    page: int
    pages: int
    total: int


def paged(rows: Sequence[Any], page: str | int | None, size: int = PAGE_ROWS) -> Sheet:
    """A page of rows; the nearest there is where the one that is asked for is none.

    >>> paged(range(450), "3").rows, paged(range(450), "99").page, paged([], "x").pages
    (range(400, 450), 3, 1)
    """
    text = str(page or 1)
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, wanted), pages)
    return Sheet(rows[(number - 1) * size : number * size], number, pages, len(rows))
