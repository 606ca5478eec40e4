"""Downloads of a result: CSV, JSON, Parquet, google/rappor's files, and Python code.

Columns are those of the command line; rows have the order of the page.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rappor import formats
from rappor.collection import Collection
from rappor.csv_cells import map_cell
from rappor.dashboard.page_query import PageQuery
from rappor.dashboard.results.serialization import StoredDecode
from rappor.dashboard.results.table import matching
from rappor.decoding import exports
from rappor.decoding.design import Design
from rappor.decoding.differences import Differences
from rappor.decoding.mapfile import map_lines
from rappor.decoding.result import Decoded, Rows
from rappor.params import FIELDS, Params

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection

_OF_DIFFERENCE = {  # columns of a comparison, and their names next to those of a decode
    "difference": "difference",
    "std_error": "difference_std_error",
    "low_95": "difference_low_95",
    "high_95": "difference_high_95",
    "p_value": "difference_p_value",
    "adjusted_p_value": "difference_adjusted_p_value",
    "raw_difference": "raw_difference",
    "side_only": "side_only",
    "different": "different",
}
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same result gives the same bytes


def columns(result: StoredDecode, query: PageQuery) -> dict[str, list[Any]]:
    """The rows that match the search, by column; columns of a comparison come last."""
    order = matching(result, query)
    found = exports.columns(_picked(result.decoded, order), every=True)
    if result.other is not None and result.compared is not None:
        other = exports.columns(_picked(result.other, order), every=True)
        found |= {f"other_{name}": other[name] for name in other if name != "string"}
        gaps = _gaps(result.compared.rows, order)
        found |= {name: column.tolist() for name, column in gaps.items()}
    return found


def csv_text(result: StoredDecode, query: PageQuery) -> str:
    """A results.csv that is safe to open in a spreadsheet."""
    return "".join(exports.csv_lines(columns(result, query)))


def parquet_bytes(result: StoredDecode, query: PageQuery) -> bytes:
    """A Parquet file."""
    sink = io.BytesIO()
    table = columns(result, query)
    exports.write_parquet(table, sink)
    return sink.getvalue()


def document(result: StoredDecode, query: PageQuery) -> dict[str, Any]:
    """The document of `rappor decode --json --all`, and what it was made of."""
    order = matching(result, query)
    said: dict[str, Any] = {
        "collection": query.collection,
        "version": query.version,
        "periods": list(query.periods),
        "dimensions": dict(query.dimensions),
        "candidates_version": query.candidates,
        **exports.document(_picked(result.main, order), every=True),
        "detected": len(result.decoded.detected),
    }
    if result.other is None or result.compared is None or query.against is None:
        return said
    gaps = _gaps(result.compared.rows, order)
    names = ["string", *gaps]
    strings = [result.decoded.rows.strings[int(index)] for index in order]
    rows = zip(strings, *(column.tolist() for column in gaps.values()), strict=True)
    said["against"] = {
        "periods": list(query.against.periods),
        "dimensions": dict(query.against.dimensions),
        **exports.document(_picked(result.other, order), every=True),
    }
    said["compared"] = exports.without_nan(
        {
            "reports": result.compared.reports,
            "different": len(result.compared.different),
            "warnings": result.compared.warnings,
            "rows": [dict(zip(names, row, strict=True)) for row in rows],
        }
    )
    return said


def _gaps(rows: Differences, order: Any) -> dict[str, Any]:
    table = rows.columns()
    return {new: table[name][order] for name, new in _OF_DIFFERENCE.items()}


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
                "raw_estimate",
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


def zipped(counts: Sequence[Counts], looked_for: Any, collection: Collection) -> bytes:
    """Make the zip file of counts.csv, params.csv and map.csv.

    If there are several (p, q), each has a folder; one map serves them all.

    Args:
        counts: one for each (p, q).
        looked_for: the design of the candidates, or the categories or ranges.
        collection: the collection of the counts.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, each in enumerate(counts, 1):
            folder = f"{number}/" if len(counts) > 1 else ""
            text = io.StringIO()
            each.to_csv(text)
            _add(archive, f"{folder}counts.csv", text.getvalue())
            numbers = {name: getattr(each.params, name) for name in FIELDS}
            _add(archive, f"{folder}params.csv", formats.format_csv(numbers))
        if isinstance(looked_for, Design):
            _add(archive, "map.csv", "".join(map_lines(looked_for)))
        elif looked_for is not None:
            labels = getattr(looked_for, "labels", looked_for)
            _add(archive, "map.csv", "".join(_one_bit_each(labels, collection.params)))
    return packed.getvalue()


def _one_bit_each(labels: Sequence[str], params: Params) -> Iterator[str]:
    """The map of values with one bit each, the same in each cohort."""
    for bit, label in enumerate(labels):
        places = (str(cohort * params.k + bit + 1) for cohort in range(params.m))
        yield f"{map_cell(label)},{','.join(places)}\r\n"


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    about = zipfile.ZipInfo(name, _WHEN)
    about.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(about, text.encode())


def python_code(query: PageQuery, collection: Collection) -> str:
    """A script that prints the table of the page; only the data folder may need a change."""
    strings = collection.kind == "string"
    name = f"{query.collection!r}, "
    if strings:
        name += f"data.candidates({query.collection!r}, {query.candidates}), "
    about = [f"period={_span(query.selection.periods)!r}"]
    if query.dimensions:
        about.append(f"dimensions={dict(query.dimensions)!r}")
    about.append(f"version={query.version}")
    how = [f"correction={query.correction!r}", f"alpha={query.alpha!r}"]
    method = [f"method={query.method!r}"] if strings else []
    lines = [
        "import rappor",
        'data = rappor.open("data")  # the data folder: change it if yours is another',
        f"found = data.decode({name}{', '.join([*about, *how, *method])})",
    ]
    shown = "found"
    if query.against is not None:
        about.append(f"against={query.vs!r}")
        lines.append(f"compared = data.compare({name}{', '.join([*about, *how])})")
        shown = r'found, compared, sep="\n\n"'
    return "\n".join([*lines, f"print({shown})", ""])


def _span(periods: Sequence[str]) -> str:
    """Periods as `Workspace.view` takes them."""
    return "..".join(dict.fromkeys((periods[0], periods[-1])))


def report_code(collection: Collection, collector: str | None) -> str:
    """A script that sends one report."""
    file = f"{collection.name}.toml"
    address = collection.upload or collector or "http://127.0.0.1:8765"
    values = {"category": collection.categories or ("",), "boolean": (True,), "ordinal": (1,)}
    value = values.get(collection.kind, ("example.org",))[0]
    return "\n".join(
        [
            "import rappor",
            "",
            "client = rappor.Client.open(",
            '    "test-client",  # a folder that is created',
            f"    [{file!r}],",
            "    consent=True,",
            f"    upload_to={address!r},",
            ")",
            f"client.report({collection.name!r}, {value!r})",
            "client.close()",
            "",
        ]
    )
