"""The rows of a view as CSV, JSON and Parquet: the command line's columns, in the view's order."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np

from rappor.dashboard.results.kept import Kept
from rappor.dashboard.results.table import matching
from rappor.dashboard.view import View
from rappor.decoding import exports
from rappor.decoding.compare import Differences
from rappor.decoding.result import Decoded, Rows


def columns(kept: Kept, view: View) -> dict[str, list[Any]]:
    """Every row that the search finds, by column; those of a comparison after the others."""
    order = matching(kept, view)
    found = exports.columns(_picked(kept.decoded, order), every=True)
    if kept.other is not None and kept.compared is not None:
        other = exports.columns(_picked(kept.other, order), every=True)
        found |= {f"other_{name}": other[name] for name in other if name != "string"}
        gaps = _gaps(kept.compared.rows, order)
        found |= {name: column.tolist() for name, column in gaps.items()}
    return found


def csv_text(kept: Kept, view: View) -> str:
    """A results.csv, safe to open in a spreadsheet."""
    return "".join(exports.csv_lines(columns(kept, view)))


def parquet_bytes(kept: Kept, view: View) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    table = columns(kept, view)
    exports.write_parquet(table, sink)
    return sink.getvalue()


def document(kept: Kept, view: View) -> dict[str, Any]:
    """What `rappor decode --json --all` prints, and of what it is."""
    order = matching(kept, view)
    said: dict[str, Any] = {
        "collection": view.collection,
        "version": view.version,
        "periods": list(view.periods),
        "dimensions": dict(view.dimensions),
        "candidates_version": view.candidates,
        **exports.document(_picked(kept.found, order), every=True),
        "detected": len(kept.decoded.detected),
    }
    if kept.other is None or kept.compared is None or view.against is None:
        return said
    gaps = _gaps(kept.compared.rows, order)
    names = ["string", *gaps]
    strings = [kept.decoded.rows.strings[int(index)] for index in order]
    rows = zip(strings, *(column.tolist() for column in gaps.values()), strict=True)
    said["against"] = {
        "periods": list(view.against.periods),
        "dimensions": dict(view.against.dimensions),
        **exports.document(_picked(kept.other, order), every=True),
    }
    said["compared"] = exports.without_nan(
        {
            "reports": kept.compared.reports,
            "different": len(kept.compared.different),
            "warnings": kept.compared.warnings,
            "rows": [dict(zip(names, row, strict=True)) for row in rows],
        }
    )
    return said


def _gaps(rows: Differences, order: Any) -> dict[str, Any]:
    gap = rows.share_one - rows.share_two
    named = {
        "difference": gap,
        "difference_std_error": rows.std_error,
        "difference_low_95": rows.low,
        "difference_high_95": rows.high,
        "difference_p_value": rows.p_value,
        "difference_adjusted_p_value": rows.adjusted_p_value,
        "different": rows.different,
    }
    return {name: column[order] for name, column in named.items()}


def _picked(decoded: Decoded, order: Any) -> Decoded:
    """The same result with some of its rows."""
    rows = decoded.rows
    if len(order) == len(rows) and bool((order == np.arange(len(rows))).all()):
        return decoded
    chosen = Rows(
        rows.reports,
        [rows.strings[int(index)] for index in order],
        *(
            getattr(rows, name)[order]
            for name in (
                "estimate",
                "std_error",
                "low",
                "high",
                "p_value",
                "adjusted_p_value",
                "detected",
            )
        ),
    )
    return replace(decoded, rows=chosen)
