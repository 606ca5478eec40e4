"""Decoded rows as tables of other libraries, and as a small HTML table for notebooks."""

from __future__ import annotations

import html as escaping
import importlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rappor.charts.numbers import show_finding, show_p, show_part, show_percent
from rappor.decoding.options import CORRECTIONS, Correction
from rappor.decoding.result import Mass, Row, Rows
from rappor.errors import RapporError, tested_releases

_MAX_ROWS = 50


class MissingPackageError(RapporError, ImportError):
    """The package of the requested table is not installed."""


class TableSource(Protocol):
    """What Decoded and Histogram have in common."""

    @property
    def rows(self) -> Rows:
        """All rows."""

    @property
    def reports(self) -> int:
        """N."""

    @property
    def undetected_mass(self) -> Mass:
        """Reports that no row explains."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the input."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of failed checks."""

    @property
    def detected(self) -> list[Row]:
        """The rows that pass the test."""

    @property
    def correction(self) -> Correction:
        """How p-values were corrected."""

    @property
    def alpha(self) -> float:
        """The error rate that the correction keeps."""


def columns(rows: Rows | TableSource, *, detected_only: bool = False) -> dict[str, Any]:
    """The columns by name, as arrays (the strings as a list), for any table library.

    Counts come first, then the same as shares of N; `low_95` and `high_95` are the interval in
    reports. A lower end is nan where a detected string's presence is all that is known: it is above
    0, and how far above nobody can say. `snr` is nan where the standard error is 0.
    """
    table = rows if isinstance(rows, Rows) else rows.rows
    chosen = np.flatnonzero(table.detected) if detected_only else np.arange(len(table))
    n = table.reports or 1
    estimate, error = table.estimate[chosen], table.std_error[chosen]
    detected = table.detected[chosen]
    presence_only = detected & (table.low[chosen] <= 0)
    low, high = np.where(presence_only, np.nan, table.low[chosen]), table.high[chosen]
    raw = table.raw_estimate[chosen]
    nothing: NDArray[np.float64] = np.full(len(chosen), np.nan)
    return {
        "string": [table.strings[index] for index in chosen.tolist()],
        "estimate": estimate,
        "std_error": error,
        "low_95": low,
        "high_95": high,
        "proportion": estimate / n,
        "prop_std_error": error / n,
        "prop_low_95": low / n,
        "prop_high_95": high / n,
        "p_value": table.p_value[chosen],
        "adjusted_p_value": table.adjusted_p_value[chosen],
        "snr": np.divide(raw, error, out=nothing, where=error > 0),
        "raw_estimate": raw,
        "presence_only": presence_only,
        "detected": detected,
    }


def _package(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackageError(
            f"{method}() needs {name}: pip install {name}; {tested_releases('constraints.txt')}",
            name=name,
        ) from None


def to_arrow(rows: Rows | TableSource, *, detected_only: bool = False) -> Any:
    """The rows as a pyarrow Table."""
    pyarrow = _package("pyarrow", "to_arrow")
    table = columns(rows, detected_only=detected_only)
    text = pyarrow.array(table.pop("string"), pyarrow.string())
    return pyarrow.table({"string": text, **table})


def to_pandas(rows: Rows | TableSource, *, detected_only: bool = False) -> Any:
    """The rows as a pandas DataFrame."""
    pandas = _package("pandas", "to_pandas")
    return pandas.DataFrame(columns(rows, detected_only=detected_only))


def to_polars(rows: Rows | TableSource, *, detected_only: bool = False) -> Any:
    """The rows as a polars DataFrame."""
    polars = _package("polars", "to_polars")
    table = columns(rows, detected_only=detected_only)
    return polars.DataFrame(table, schema_overrides={"string": polars.String})


def html(decoded: TableSource) -> str:
    """A table of the detected rows (at most 50), captioned with N, M, undetected mass, warnings.

    Plain HTML without scripts or styles of its own; every string in it is escaped.
    """
    detected = decoded.detected
    lines = [_caption(decoded, len(detected))]
    head = ("String", "Reports", "95 % interval", "Share", "95 % interval", "Adjusted p-value")
    cells = "".join(f'<th scope="col">{name}</th>' for name in head)
    lines.append(f"<thead><tr>{cells}</tr></thead>")
    body = "".join(_row(row, decoded.reports) for row in detected[:_MAX_ROWS])
    if not detected:
        body = f'<tr><td colspan="{len(head)}">Nothing was detected.</td></tr>'
    lines.append(f"<tbody>{body}</tbody>")
    left = len(detected) - _MAX_ROWS
    if left > 0:
        note = f"{left:,} more detected rows are not shown."
        lines.append(f'<tfoot><tr><td colspan="{len(head)}">{note}</td></tr></tfoot>')
    return "<table>" + "".join(lines) + "</table>"


def _caption(decoded: TableSource, detected: int) -> str:
    candidates = len(decoded.rows)
    rate = CORRECTIONS[decoded.correction].rate.format(alpha=show_percent(decoded.alpha))
    lines = [
        f"{detected:,} of {candidates:,} candidates detected in {decoded.reports:,} reports "
        f"({rate})."
    ]
    mass = decoded.undetected_mass
    if np.isfinite(mass.count) and decoded.reports:
        share = show_part(mass.proportion, mass.prop_low_95, mass.prop_high_95)
        lines.append(f"Undetected mass: {share}.")
    lines += (*decoded.notes, *decoded.warnings)
    return "<caption>" + "<br>".join(escaping.escape(line) for line in lines) + "</caption>"


def _row(row: Row, reports: int) -> str:
    shown = (
        *show_finding(row.estimate, *row.interval, row.detected, "count", reports),
        *show_finding(row.proportion, row.prop_low_95, row.prop_high_95, row.detected),
        show_p(row.adjusted_p_value),
    )
    name = f'<th scope="row">{escaping.escape(row.string)}</th>'
    return f"<tr>{name}{''.join(f'<td>{escaping.escape(cell)}</td>' for cell in shown)}</tr>"
