"""google/rappor's association files: a list of variables, and reports of several at once.

rappor-vars.csv has the columns metric, var, var_type (string or boolean) and params, the name of a
params.csv without its ending. reports.csv has client, cohort and a column of bits for each
variable; a boolean is one bit.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rappor.aggregate.file_parts import (
    NO_COHORT,
    MalformedLines,
    NotAReport,
    PackedReports,
    bits_from,
    cohort_from,
)
from rappor.aggregate.lines import LineFile
from rappor.aggregate.pair_counts import PairCounts, count_pairs
from rappor.checks import show
from rappor.errors import DecodeError, ParamsError
from rappor.formats import read_text
from rappor.google_files import VARIABLES, file_kind
from rappor.params import Params
from rappor.typing import ByteArray, IntArray, Kind

_KINDS: dict[str, Kind] = {"string": "string", "boolean": "boolean"}


@dataclass(frozen=True, slots=True)
class ReportedVariable:
    """One variable of a metric.

    Attributes:
        metric: the metric that it belongs to.
        name: its column in the reports.
        kind: string or boolean.
        params: its parameters; k is 1 for a boolean.
    """

    metric: str
    name: str
    kind: Kind
    params: Params


class CountedPairs(NamedTuple):
    """Pair counts of a file, and the lines that could not be counted."""

    counts: PairCounts
    malformed: int
    reasons: dict[str, int]


def read_variables(
    path: str | PathLike[str], folder: str | PathLike[str] | None = None
) -> list[ReportedVariable]:
    """The variables that a rappor-vars.csv lists.

    Args:
        path: the file.
        folder: where the params.csv files are; default: the folder of the list.

    Raises:
        DecodeError: with the line, if it is not such a list.
    """
    try:
        text = read_text(path)
    except ParamsError as error:
        raise DecodeError(str(error)) from error.__cause__
    rows = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    header = tuple(cell.strip() for cell in next(rows, []))
    if header != VARIABLES:
        known = file_kind(header)
        hint = f"; it {known}" if known else ""
        raise DecodeError(f"{path}, line 1: expected the header {', '.join(VARIABLES)}{hint}")
    where = Path(path).expanduser().parent if folder is None else Path(folder).expanduser()
    made = []
    for cells in rows:
        if not any(map(str.strip, cells)):
            continue
        line = f"{path}, line {rows.line_num}"
        if len(cells) != len(VARIABLES):
            raise DecodeError(f"{line}: expected {len(VARIABLES)} columns, found {len(cells)}")
        metric, name, kind, params = (cell.strip() for cell in cells)
        if kind not in _KINDS:
            raise DecodeError(f"{line}: var_type must be string or boolean, got {show(kind)}")
        read = Params.from_csv(where / f"{params}.csv")
        if kind == "boolean":
            read = replace(read, k=1, h=1)
        made.append(ReportedVariable(metric, name, _KINDS[kind], read))
    if not made:
        raise DecodeError(f"{path}: lists no variables; name the list of a metric")
    return made


def count_association_reports(
    path: str | PathLike[str],
    variables: tuple[ReportedVariable, ReportedVariable],
    *,
    dialect: str | None = "google",
    reports_per_client: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> CountedPairs:
    """Count the bits of two variables that are set together in a file of reports.

    Args:
        path: reports.csv, plain or .gz.
        variables: the two variables.
        dialect: how strings were placed.
        reports_per_client: the largest number of reports of one client on one pair, if known.
        progress: called with the number of bytes that were counted since the last call.

    Raises:
        DecodeError: the header does not name both variables, or no line is a report.
    """
    file = Path(path).expanduser()
    total: PairCounts | None = None
    wrong: Counter[str] = Counter()
    try:
        with file.open("rb") as raw:
            lines = LineFile(file, raw)
            columns = _columns(lines.header(), variables, path)
            for size, data in lines.chunks():
                part, bad = _count(data, columns, variables, dialect, reports_per_client)
                total = part if total is None else total + part
                wrong += bad.reasons
                if progress is not None:
                    progress(size)
    except OSError as error:
        raise DecodeError(f"cannot read {path}: {error.strerror or error}") from error
    malformed = sum(wrong.values())
    if total is None or not total.reports:
        reason = f": {wrong.most_common(1)[0][0]}" if wrong else ""
        raise DecodeError(f"{path} holds no reports of these variables{reason}")
    return CountedPairs(total, malformed, dict(wrong))


class _ColumnPlaces(NamedTuple):
    number: int
    cohort: int
    bits: tuple[int, int]


def _columns(
    header: bytes,
    variables: tuple[ReportedVariable, ReportedVariable],
    path: str | PathLike[str],
) -> _ColumnPlaces:
    names = [cell.strip() for cell in next(csv.reader([header.decode("utf-8", "replace")]), [])]
    for name in ("cohort", *(variable.name for variable in variables)):
        if names.count(name) != 1:
            raise DecodeError(
                f"{path}, line 1: expected one column {show(name)}; the columns are "
                f"{', '.join(map(show, names[:8]))}"
            )
    first, second = (names.index(variable.name) for variable in variables)
    return _ColumnPlaces(len(names), names.index("cohort"), (first, second))


def _count(
    data: bytes,
    columns: _ColumnPlaces,
    variables: tuple[ReportedVariable, ReportedVariable],
    dialect: str | None,
    repeats: int | None,
) -> tuple[PairCounts, MalformedLines]:
    """The reports of some whole lines: all at once if they look as expected, else one by one."""
    params = (variables[0].params, variables[1].params)
    parsed = _at_once(data, columns, params)
    wrong = MalformedLines()
    if parsed is None:
        parsed = _one_by_one(data, columns, params, wrong)
    made = count_pairs(
        parsed[0],
        parsed[1],
        parsed[2],
        params,
        kinds=(variables[0].kind, variables[1].kind),
        dialects=(dialect, dialect),
        names=(variables[0].name, variables[1].name),
        reports_per_client=repeats,
    )
    return made, wrong


def _at_once(
    data: bytes, columns: _ColumnPlaces, params: tuple[Params, Params]
) -> tuple[ByteArray, ByteArray, IntArray] | None:
    """Packed bits and cohorts of plain lines; None if any line needs a closer look."""
    if b'"' in data or b"\r" in data or b" " in data:
        return None
    rows = [line.split(b",") for line in data.split(b"\n") if line]
    if any(len(row) != columns.number for row in rows):
        return None
    packed = []
    for place, each in zip(columns.bits, params, strict=True):
        cells = [row[place] for row in rows]
        if any(len(cell) != each.k for cell in cells):
            return None
        bits = np.frombuffer(b"".join(cells), np.uint8).reshape(-1, each.k) - ord("0")
        if (bits > 1).any():
            return None
        packed.append(np.packbits(bits[:, ::-1], axis=1, bitorder="little"))
    numbers = [row[columns.cohort] for row in rows]
    if not all(number.isdigit() and len(number) < 10 for number in numbers):
        return None
    cohorts = np.array(numbers, dtype=np.int64) if numbers else np.empty(0, np.int64)
    if cohorts.size and int(cohorts.max()) >= params[0].m:
        return None
    return packed[0], packed[1], cohorts


def _one_by_one(
    data: bytes,
    columns: _ColumnPlaces,
    params: tuple[Params, Params],
    wrong: MalformedLines,
) -> tuple[ByteArray, ByteArray, IntArray]:
    collected = PackedReports(params[0]), PackedReports(params[1])
    for number, cells in _cells(data):
        try:
            if cells is None or len(cells) != columns.number:
                raise NotAReport(f"not {columns.number} fields, as the header has")
            text = cells[columns.cohort].strip()
            if not (text.isascii() and text.isdigit() and len(text) < 10):
                raise NotAReport(NO_COHORT)
            cohort = cohort_from(int(text), params[0].m)
            bits = [
                bits_from(cells[place].strip(), each.k)
                for place, each in zip(columns.bits, params, strict=True)
            ]
        except NotAReport as reason:
            wrong.add(number, str(reason))
            continue
        for reports, value in zip(collected, bits, strict=True):
            reports.add(cohort, value)
    (first, cohorts), (second, _) = (reports.arrays() for reports in collected)
    return first, second, cohorts


def _cells(data: bytes) -> Iterator[tuple[int, Sequence[str] | None]]:
    """The cells of each line that is not blank, with its number; None if it is not CSV."""
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.removesuffix(b"\r").decode("latin-1")
        if not text.strip():
            continue
        try:
            yield number, next(csv.reader([text], strict=True))
        except csv.Error:
            yield number, None
