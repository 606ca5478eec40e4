"""google/rappor's map.csv: candidates with their bits, made once and decoded with many times.

A row is a string, then cohort * k + bit + 1 for each hash of each cohort, cohort by cohort. Where
two hashes of one cohort set the same bit, its position is there twice.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.checks import plural, show
from rappor.csv_cells import map_cell, original
from rappor.decoding.candidate_files import csv_rows, read_utf8
from rappor.decoding.candidates import collected
from rappor.decoding.design import Design, design_of
from rappor.decoding.placement import CHUNK, Positions
from rappor.errors import DecodeError
from rappor.mechanism.bloom import check_string_params
from rappor.params import Params

_NUMBER: Final = "[0-9]{1,9}"


def read_map(path: str | PathLike[str], params: Params) -> Design:
    """The design in a map.csv, its candidates in canonical order.

    Args:
        path: the file; UTF-8, strings quoted where they need it.
        params: k, h and m say what each row must look like.

    Raises:
        DecodeError: with the line, where the file is not a map for these params.
    """
    check_string_params(params)
    strings: list[str] = []
    lines = array("q")
    waiting: list[str] = []  # rows of numbers, still as text
    tables: list[NDArray[np.int32]] = []
    blank = 0
    width = params.m * params.h
    # As many as there are cells: a cell in quotes could hold a comma.
    numbers = re.compile(f"{_NUMBER}(?:,{_NUMBER}){{{width - 1}}}").fullmatch
    for line, row in csv_rows(read_utf8(path), path):
        if not row:
            blank += 1
            continue
        if len(row) != width + 1:
            raise DecodeError(
                f"{path}, line {line}: {len(row) - 1} positions after the string; params ask for "
                f"m * h = {params.m} * {params.h} = {width}"
            )
        strings.append(original(row.pop(0)))
        lines.append(line)
        joined = ",".join(row)
        if not numbers(joined):
            wrong = next(cell for cell in row if not re.fullmatch(_NUMBER, cell))
            raise DecodeError(
                f"{path}, line {line}: a position must be a whole number of at most 9 digits, got "
                f"{show(wrong)}"
            )
        waiting.append(joined)
        if len(waiting) == CHUNK:
            tables.append(_numbers(waiting, width))
            waiting = []
    tables.append(_numbers(waiting, width))
    notes = [f"{plural(blank, 'blank line was', 'blank lines were')} skipped"] if blank else []
    try:
        candidates = collected(strings, notes)
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from None
    placed = _checked(np.concatenate(tables), lines, path, params)
    first: dict[str, int] = {}
    for number, text in enumerate(strings):
        earlier = first.setdefault(text, number)
        if earlier != number and not _same_bits(placed[:, [earlier, number]], params):
            raise DecodeError(
                f"{path}, line {lines[number]}: {show(text)} has other bits here than on line "
                f"{lines[earlier]}: keep one of the two"
            )
    order = [first[text] for text in candidates.strings]
    return design_of(candidates, np.ascontiguousarray(placed[:, order]), params, None)


def _numbers(rows: Sequence[str], width: int) -> NDArray[np.int32]:
    """Rows of numbers between commas, as a table; numpy reads them ten times as fast as int()."""
    return np.fromstring(",".join(rows), np.int32, sep=",").reshape(len(rows), width)


def _checked(
    table: NDArray[np.int32], lines: Sequence[int], path: str | PathLike[str], params: Params
) -> Positions:
    """Bits within their cohorts, shape (m * h, M), or DecodeError with the first bad line."""
    k, every = params.k, params.m * params.k
    starts = np.repeat(np.arange(params.m, dtype=np.int32) * k, params.h)
    bits = table - starts - np.int32(1)
    bad = (bits < 0) | (bits >= k)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        place = int(bad[row].argmax())
        position, cohort = int(table[row, place]), place // params.h
        if position < 1 or position > every:
            reason = f"position {position} lies outside 1..{every}"
        else:
            reason = (
                f"position {position} lies outside {cohort * k + 1}..{cohort * k + k}, which is "
                f"cohort {cohort}"
            )
        raise DecodeError(f"{path}, line {lines[row]}: {reason}: is the map of another k, h or m?")
    placed: Positions = bits.T.astype(np.uint16)
    return placed


def _same_bits(pair: Positions, params: Params) -> bool:
    one, other = pair.T.reshape(2, params.m, params.h).tolist()
    return all(set(mine) == set(theirs) for mine, theirs in zip(one, other, strict=True))


def write_map(design: Design, path: str | PathLike[str], order: ArrayLike | None = None) -> None:
    """Write a map.csv; `order` is the columns to write, in their order (default: all)."""
    with Path(path).expanduser().open("w", encoding="utf-8", newline="") as handle:
        handle.writelines(map_lines(design, order))


def map_lines(design: Design, order: ArrayLike | None = None) -> Iterator[str]:
    r"""The lines of a map.csv, which end as RFC 4180 and google/rappor have it.

    >>> from rappor.decoding.design import build_design
    >>> list(map_lines(build_design(["V_1"], Params(8, 2, 2, 0.5, 0.5, 0.75), "google")))
    ['V_1,1,8,16,13\r\n']
    """
    params, strings = design.params, design.strings.strings
    placed = design.positions()
    starts = np.repeat(np.arange(params.m, dtype=np.int32) * params.k, params.h)
    # Looking a number's text up is several times faster than making it.
    text_of = [str(number) for number in range(1, params.m * params.k + 1)].__getitem__
    which = np.arange(len(strings)) if order is None else np.asarray(order, np.intp)
    for start in range(0, len(which), CHUNK):
        chunk = which[start : start + CHUNK]
        rows = (placed[:, chunk].T + starts).tolist()
        for number, row in zip(chunk.tolist(), rows, strict=True):
            yield f"{map_cell(strings[number])},{','.join(map(text_of, row))}\r\n"
