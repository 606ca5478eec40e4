"""Populations from files: how often each string was seen, or the strings themselves."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from rappor.checks import show, whole
from rappor.csv_cells import original
from rappor.errors import ParamsError
from rappor.formats import read_text
from rappor.simulate.populations import MAX_STRINGS, Population, with_list

HEADER = ["string", "frequency"]


def read_population(
    path: str | PathLike[str], *, absent: int = 0, unlisted: int = 0, prefix: str = "absent"
) -> Population:
    """The population that a file describes.

    A .csv file has the header `string,frequency`, then a string and a number in any unit on each
    line. Any other file is text, one value a line; a value that occurs n times has weight n, and
    empty lines are skipped.

    Args:
        path: the file, in UTF-8.
        absent: how many candidates to add that nobody holds.
        unlisted: how many strings to leave off the candidate list, spread evenly over the ranks.
        prefix: how the absent candidates' names begin.

    Raises:
        ParamsError: names the file, the line and what is wrong.
    """
    content = read_text(path, newline="")
    name = Path(path).name
    if name.lower().endswith(".csv"):
        weights = dict(_rows(content, str(path)))
    else:
        weights = dict(Counter(line for line in content.splitlines() if line))
    if not weights:
        raise ParamsError(f"{path}: no strings in it: write one a line")
    if len(weights) > MAX_STRINGS:
        raise ParamsError(f"{path}: more than {MAX_STRINGS:,} different strings: give fewer")
    ranked = sorted(weights, key=lambda string: (-weights[string], string))
    if not any(weights.values()):
        raise ParamsError(f"{path}: all frequencies are 0: give at least one above 0")
    number = whole("absent", absent, 0, MAX_STRINGS)
    fresh = (text for i in itertools.count(1) if (text := f"{prefix}{i}") not in weights)
    nobody = list(itertools.islice(fresh, number))
    return with_list(name, ranked, [weights[string] for string in ranked], nobody, unlisted)


def _rows(content: str, path: str) -> Iterator[tuple[str, float]]:
    lines = csv.reader(io.StringIO(content, newline=""), strict=True)
    seen: set[str] = set()
    try:
        header = [cell.strip() for cell in next(lines, [])]
        if header != HEADER:
            raise ParamsError(
                f"{path}, line 1: expected the header {','.join(HEADER)}, found "
                f"{show(','.join(header))}"
            )
        for cells in lines:
            where = f"{path}, line {lines.line_num}"
            if not cells:
                continue
            if len(cells) != 2:
                raise ParamsError(f"{where}: expected a string and a frequency, in two fields")
            text = original(cells[0])
            if text in seen:
                raise ParamsError(
                    f"{where}: {show(text)} is listed twice: keep one line, with the sum"
                )
            seen.add(text)
            yield text, _frequency(cells[1], where)
    except csv.Error as error:
        raise ParamsError(
            f"{path}, line {lines.line_num}: not CSV: {error}; check that it is the right file"
        ) from None


def _frequency(cell: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ParamsError(f"{where}: the frequency must be a number from 0 on, got {show(cell)}")
    return number
