"""google/rappor's counts.csv: m rows, column 0 the reports of a cohort, column i+1 its bit i.

Reading is strict and exact: 64-bit whole numbers as digits, nothing that went through a float.
"""

from __future__ import annotations

import csv
import io
from os import PathLike
from pathlib import Path
from typing import TextIO

import numpy as np

from rappor.checks import show
from rappor.errors import DecodeError, ParamsError
from rappor.files import replacing
from rappor.formats import read_text
from rappor.params import Params
from rappor.typing import IntArray

_LARGEST = 2**63 - 1


def read_counts(path: str | PathLike[str], params: Params) -> tuple[IntArray, IntArray]:
    """N_j of shape (m,) and c_ij of shape (m, k), or DecodeError with file, line and reason."""
    try:
        text = read_text(path)
    except ParamsError as error:  # says which file, and why it cannot be read
        raise DecodeError(str(error)) from None
    rows: list[list[int]] = []
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in lines:
            if any(map(str.strip, cells)):
                rows.append(_row(cells, params, len(rows), f"{path}, line {lines.line_num}"))
    except csv.Error as error:
        raise DecodeError(f"{path}, line {lines.line_num}: not CSV: {error}") from None
    if len(rows) != params.m:
        raise DecodeError(
            f"{path}: expected one row for each of the m = {params.m} cohorts, found {len(rows)} "
            "(counts of another m?)"
        )
    table = np.array(rows, np.int64)
    return table[:, 0], table[:, 1:]


def _row(cells: list[str], params: Params, cohort: int, where: str) -> list[int]:
    """The numbers of one cohort."""
    numbers = [_number(cell.strip(), where, column) for column, cell in enumerate(cells, 1)]
    if len(numbers) != params.k + 1:
        raise DecodeError(
            f"{where}: expected {params.k + 1} columns, the reports of a cohort and k = {params.k} "
            f"bits; found {len(numbers)}, so {len(numbers) - 1} bits (counts of another k?)"
        )
    reports = numbers[0]
    most = max(numbers[1:])
    if most > reports:
        raise DecodeError(
            f"{where}: cohort {cohort} has {reports} reports, but bit {numbers.index(most, 1) - 1} "
            f"is set in {most} of them"
        )
    return numbers


def _number(cell: str, where: str, column: int) -> int:
    if cell.isascii() and cell.isdigit() and len(cell) < 40:
        number = int(cell)
        if number <= _LARGEST:
            return number
    raise DecodeError(
        f"{where}, column {column}: expected a whole number from 0 to 2^63 - 1 written in digits "
        f"(and no header), got {show(cell)}"
    )


def write_counts(target: str | PathLike[str] | TextIO, totals: IntArray, ones: IntArray) -> None:
    """Write counts.csv to a file, or to a text stream that is open."""
    if isinstance(target, (str, PathLike)):
        with (
            replacing(Path(target).expanduser().resolve()) as draft,
            draft.open("w", encoding="ascii", newline="\n") as file,
        ):
            write_counts(file, totals, ones)
        return
    for reports, bits in zip(totals.tolist(), ones.tolist(), strict=True):
        target.write(",".join(map(str, [reports, *bits])) + "\n")
