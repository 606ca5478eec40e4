"""google/rappor's reports.csv, in both its forms, to packed reports.

The header says which: `client,cohort,bloom,prr,irr` (irr is counted) or `client,cohort,rappor`.
Other columns are ignored. A report is one line: a quoted field may not continue on the next.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rappor.aggregate.file_parts import (
    NO_COHORT,
    FilePart,
    MalformedLines,
    NotAReport,
    PackedReports,
    ReadJob,
    bits_from,
    cohort_from,
)
from rappor.aggregate.lines import LineFile, parse_lines
from rappor.errors import DecodeError
from rappor.google_files import file_kind
from rappor.params import Params


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """How many columns a line has, and which hold the cohort and the bits."""

    number: int
    cohort: int
    bits: int


def jobs(path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of a CSV file."""
    with path.open("rb") as raw:
        yield from jobs_of(LineFile(path, raw), path, params)


def jobs_of(file: LineFile, path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of an open CSV file; `path` is for errors."""
    columns = columns_of(file.header(), path)
    yield ReadJob(0, partial(header_part, params))
    for size, data in file.chunks():
        yield ReadJob(size, partial(parse_piece, data, columns, params))


def columns_of(header: bytes, path: Path) -> CsvColumns:
    """The columns that a header names; an error does not repeat the header."""
    try:
        names = [name.strip() for name in next(csv.reader([header.decode()], strict=True), [])]
    except (csv.Error, UnicodeDecodeError):
        names = []
    bits = [name for name in ("irr", "rappor", "bits") if name in names]
    if names.count("cohort") != 1 or len(bits) != 1 or names.count(bits[0]) != 1:
        known = file_kind(names)
        if known is not None and not bits:
            raise DecodeError(f"{path} {known}")
        raise DecodeError(
            f"{path}, line 1: expected a header with cohort and one of irr, rappor or bits, "
            "such as client,cohort,bloom,prr,irr or client,cohort,rappor"
        )
    return CsvColumns(len(names), names.index("cohort"), names.index(bits[0]))


def header_part(params: Params) -> FilePart:
    """The header: no report, but the lines after it are numbered from 2."""
    return FilePart(*PackedReports(params).arrays(), 1, MalformedLines())


def parse_piece(data: bytes, columns: CsvColumns, params: Params) -> FilePart:
    """The reports of some whole lines."""
    numbers = (columns.number, columns.cohort, columns.bits)
    return parse_lines(data, params, partial(_parse_line, columns), numbers)


def _parse_line(columns: CsvColumns, text: str, params: Params) -> tuple[int, int]:
    """Cohort and bits of one line, or NotAReport."""
    try:
        cells = next(csv.reader([text], strict=True))
    except csv.Error:
        raise NotAReport("not a line of CSV (a quote that does not end?)") from None
    if len(cells) != columns.number:
        raise NotAReport(f"{len(cells)} fields where the header has {columns.number}")
    cohort = cells[columns.cohort].strip(" \t")
    if not (cohort.isascii() and cohort.isdigit() and len(cohort) < 19):
        raise NotAReport(NO_COHORT)
    bits = bits_from(cells[columns.bits].strip(" \t"), params.k)
    return cohort_from(int(cohort), params.m), bits
