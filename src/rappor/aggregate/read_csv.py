"""google/rappor's reports.csv, in both its forms, to packed reports.

`client,cohort,bloom,prr,irr` (the irr column counts) and `client,cohort,rappor`: the header says
which. Of the other columns nothing is kept. One report a line: a quoted field ends where it does.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rappor.aggregate.line_chunks import LineFile
from rappor.aggregate.lines import parse_lines
from rappor.aggregate.part import (
    NO_COHORT,
    FilePart,
    NotAReport,
    PackedReports,
    ReadJob,
    Wrong,
    bits_from,
    cohort_from,
)
from rappor.errors import DecodeError
from rappor.params import Params


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a line."""

    columns: int
    cohort: int
    bits: int


def jobs(path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of a CSV file."""
    with path.open("rb") as raw:
        file = LineFile(path, raw)
        layout = layout_of(file.header(), path)
        yield ReadJob(0, partial(_header, params))
        for size, data in file.chunks():
            yield ReadJob(size, partial(parse_piece, data, layout, params))


def layout_of(header: bytes, path: Path) -> Layout:
    """The layout that a header announces; what it says otherwise is not repeated in errors."""
    try:
        names = [name.strip() for name in next(csv.reader([header.decode()], strict=True), [])]
    except (csv.Error, UnicodeDecodeError):
        names = []
    bits = [name for name in ("irr", "rappor", "bits") if name in names]
    if names.count("cohort") != 1 or len(bits) != 1 or names.count(bits[0]) != 1:
        raise DecodeError(
            f"{path}, line 1: expected a header with cohort and one of irr, rappor or bits, "
            "such as client,cohort,bloom,prr,irr or client,cohort,rappor"
        )
    return Layout(len(names), names.index("cohort"), names.index(bits[0]))


def _header(params: Params) -> FilePart:
    """The header's line: no report, but the lines after it count from 2."""
    return FilePart(*PackedReports(params).arrays(), 1, Wrong())


def parse_piece(data: bytes, layout: Layout, params: Params) -> FilePart:
    """The reports of some whole lines."""
    columns = (layout.columns, layout.cohort, layout.bits)
    return parse_lines(data, params, partial(_parse_line, layout), columns)


def _parse_line(layout: Layout, text: str, params: Params) -> tuple[int, int]:
    """Cohort and bits of one line, or NotAReport."""
    try:
        cells = next(csv.reader([text], strict=True))
    except csv.Error:
        raise NotAReport("not a line of CSV (a quote that does not end?)") from None
    if len(cells) != layout.columns:
        raise NotAReport(f"{len(cells)} fields where the header has {layout.columns}")
    cohort = cells[layout.cohort].strip(" \t")
    if not (cohort.isascii() and cohort.isdigit() and len(cohort) < 19):
        raise NotAReport(NO_COHORT)
    bits = bits_from(cells[layout.bits].strip(" \t"), params.k)
    return cohort_from(int(cohort), params.m), bits
