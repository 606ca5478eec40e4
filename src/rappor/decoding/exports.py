"""Decoded results as the text and bytes of files: results.csv, JSON and Parquet.

google/rappor's results.csv with more columns. The command line and the dashboard
write the same bytes for the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import compress
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from rappor import csv_cells
from rappor.decoding import frames
from rappor.decoding.result import Decoded
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.decoding.differences import Compared
    from rappor.decoding.histogram import Histogram
    from rappor.decoding.smoothing import Shape

# google/rappor's seven, then ours.
COLUMNS = (
    "string",
    "estimate",
    "std_error",
    "proportion",
    "prop_std_error",
    "prop_low_95",
    "prop_high_95",
    "p_value",
    "adjusted_p_value",
    "snr",
    "raw_estimate",
    "presence_only",
    "forged_to_make_up",
    "forged_to_hide",
)
_FACTS = (
    "chi2_dof",
    "scale",
    "design_effect",
    "robust",
    "groups",
    "untestable",
    "warnings",
    "notes",
    "reports_per_client",
    "params_digest",
    "kind",
    "dialect",
    "correction",
    "alpha",
    "method",
    "threshold",
    "forged_to_detect",
)
TRUTH, SMOOTH = "truth", "smooth_proportion"
_DIFFERENCE_FACTS = (
    *("robust", "untestable", "warnings", "notes", "kind", "dialect", "correction", "alpha"),
)
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def shows_all(found: Decoded, every: bool) -> bool:
    """Whether rows that were not detected are shown too.

    Always, except for strings, whose candidates are many.
    """
    return every or found.kind != "string"


class Also(NamedTuple):
    """Columns that not every result has.

    Attributes:
        truth: of a simulation, the number of reports that hold each string: column `truth`.
        smooth: shares under an assumed shape: column `smooth_proportion`.
    """

    truth: Mapping[str, int] | None = None
    smooth: Shape | None = None


_NOTHING_ELSE = Also()


def columns(found: Decoded, every: bool, also: Also = _NOTHING_ELSE) -> dict[str, list[Any]]:
    """The columns to write by name, as plain numbers; `detected` comes last, if it varies.

    A lower end is nan, and so an empty cell, where a string's presence is all that is known.

    Args:
        found: the result.
        every: also the rows that were not detected.
        also: further columns.
    """
    whole = shows_all(found, every)
    table = frames.columns(found.rows, detected_only=not whole)
    for name, forged in zip(COLUMNS[-2:], found.forged_reports(), strict=True):
        table[name] = forged if whole else forged[found.rows.detected]
    names = (*COLUMNS, "detected") if whole else COLUMNS
    # + 0.0, because a negative zero means nothing here.
    numbers = {
        name: table[name] if table[name].dtype == bool else table[name] + 0.0 for name in names[1:]
    }
    named = {"string": table["string"]}
    for name, each in numbers.items():
        if also.truth is not None and name == "snr":
            named[TRUTH] = [also.truth.get(string, 0) for string in table["string"]]
        if also.smooth is not None and name == "detected":
            share = dict(zip(also.smooth.labels, also.smooth.share.tolist(), strict=True))
            named[SMOOTH] = [share[string] for string in table["string"]]
        named[name] = each.tolist()
    return named


def difference_columns(compared: Compared, every: bool) -> dict[str, list[Any]]:
    """The columns of a comparison by name, as `Compared.to_pandas` has them.

    Args:
        compared: the comparison.
        every: also the rows that do not differ.
    """
    table = compared.rows.columns()
    chosen = [every or bool(differs) for differs in compared.rows.different]
    return {name: list(compress(list(column), chosen)) for name, column in _plain(table).items()}


def _plain(table: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        name: column if isinstance(column, list) else column.tolist()
        for name, column in table.items()
    }


def difference_document(compared: Compared, *, every: bool) -> dict[str, Any]:
    """Everything that is known about a comparison, ready for JSON."""
    table = difference_columns(compared, every)
    ready: dict[str, Any] = without_nan(
        {
            "names": compared.names,
            "reports": compared.reports,
            "candidates": compared.candidates,
            "different": len(compared.different),
            "rows": [
                dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)
            ],
            **{name: getattr(compared, name) for name in _DIFFERENCE_FACTS},
            "checks": [check._asdict() for check in compared.checks],
        }
    )
    return ready


def csv_lines(table: dict[str, list[Any]]) -> Iterator[str]:
    r"""The lines of a results.csv; a missing number is an empty cell.

    >>> list(csv_lines({"string": ["a,b"], "snr": [math.nan], "detected": [True]}))
    ['string,snr,detected\n', '"a,b",,true\n']
    """
    yield ",".join(table) + "\n"
    for row in zip(*table.values(), strict=True):
        yield csv_cells.line(row)


def write_parquet(table: dict[str, list[Any]], path: str | PathLike[str] | BinaryIO) -> None:
    """Write the columns as a Parquet file, or to a binary stream that is open."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        "string": pa.string(),
        "first": pa.string(),
        "second": pa.string(),
        "associated": pa.bool_(),
        TRUTH: pa.int64(),
        "detected": pa.bool_(),
        "different": pa.bool_(),
        "presence_only": pa.bool_(),
        "side_only": pa.bool_(),
    }
    arrays = {
        name: pa.array(values, types.get(name, pa.float64())) for name, values in table.items()
    }
    parquet.write_table(pa.table(arrays), path)


def document(found: Decoded, *, every: bool, also: Also = _NOTHING_ELSE) -> dict[str, Any]:
    """Everything that is known, ready for JSON: ∞ as "inf", what is not a number as null."""
    table = columns(found, every, also)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    facts = {
        "reports": found.reports,
        "candidates": found.candidates,
        "cohorts": found.cohorts,
        "detected": len(found.detected),
        "rows": rows,
        "undetected_mass": asdict(found.undetected_mass),
        **{name: getattr(found, name) for name in _FACTS},
        "checks": [check._asdict() for check in found.checks],
    }
    if found.histogram is not None:
        facts |= described(found.histogram)
    if also.smooth is not None:
        names = ("method", "strength", "freedom", "note")
        facts["smooth"] = {name: getattr(also.smooth, name) for name in names}
    ready: dict[str, Any] = without_nan(facts)
    return ready


def mass_in(facts: Mapping[str, Any]) -> Any:
    """The undetected mass of a document, also of those that older versions saved as `unlisted`."""
    return facts.get("undetected_mass", facts.get("unlisted"))


def described(histogram: Histogram) -> dict[str, Any]:
    """The mean and some quantiles of a histogram; None if they are not known."""
    try:
        mean = histogram.mean()._asdict()
    except DecodeError:
        mean = None
    try:
        quantiles = [histogram.quantile(probability)._asdict() for probability in _QUANTILES]
    except DecodeError:
        quantiles = None
    return {"mean": mean, "quantiles": quantiles}


def without_nan(item: Any) -> Any:
    """The item, ready for JSON: ∞ as the string "inf", what is not a number as None."""
    if isinstance(item, dict):
        return {key: without_nan(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [without_nan(value) for value in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None if math.isnan(item) else "inf" if item > 0 else "-inf"
    return item
