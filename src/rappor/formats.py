"""Parameters in files: google/rappor's params.csv, JSON and TOML, from text to mapping and back.

Reading is strict: anything but six well-formed numbers raises ParamsError with the reason.
`rappor.params.Params` checks the ranges of the numbers, for every format.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.google_files import file_kind

CSV_HEADER = ("k", "h", "m", "p", "q", "f")  # google/rappor's order
WHOLE_FIELDS = ("k", "h", "m")
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)

Numbers = Mapping[str, int | float]


def read_text(path: str | PathLike[str], newline: str | None = None) -> str:
    """The text of a small UTF-8 file (a byte order mark is dropped), or ParamsError.

    Args:
        path: the file.
        newline: as for `open`; "" keeps line ends unchanged, even inside cells.
    """
    try:
        with Path(path).expanduser().open(encoding="utf-8-sig", newline=newline) as file:
            return file.read()
    except UnicodeDecodeError:
        raise ParamsError(f"{path} is not UTF-8 text; check that it is the right file") from None
    except OSError as error:
        raise ParamsError(f"cannot read {path}: {error.strerror or error}") from error
    except (RuntimeError, ValueError) as error:  # no home directory, or a NUL in the path
        raise ParamsError(f"cannot read {show(path)}: {error}") from None


def parse_csv(text: str) -> dict[str, int | float]:
    """The numbers of a params.csv: a header of the six names in any order, and one row."""
    try:
        lines = csv.reader(io.StringIO(text), strict=True)
        rows = [[cell.strip() for cell in row] for row in lines if any(map(str.strip, row))]
    except csv.Error as error:
        raise ParamsError(f"not a CSV file: {error}; check that it is the right one") from None
    known = file_kind(rows[0]) if rows else None
    if known is not None:
        raise ParamsError(f"this {known}")
    if len(rows) != 2:
        raise ParamsError(
            f"expected the header {','.join(CSV_HEADER)} and one row, found {len(rows)} lines"
        )
    header, values = rows
    if sorted(header) != sorted(CSV_HEADER):
        raise ParamsError(
            f"expected the header {','.join(CSV_HEADER)}, found {','.join(header)[:80]!r}"
        )
    if len(values) != len(header):
        raise ParamsError(f"expected {len(header)} numbers under the header, found {len(values)}")
    return {name: parse_number(name, cell) for name, cell in zip(header, values, strict=True)}


def parse_number(name: str, text: str) -> int | float:
    """The number in a text: a whole one for k, h, m, a decimal for f, p, q."""
    if name in WHOLE_FIELDS:
        if _WHOLE.fullmatch(text):
            return int(text)
    elif _DECIMAL.fullmatch(text):
        return float(text)
    wanted = "a whole number" if name in WHOLE_FIELDS else "a number from 0 to 1"
    if name == "f":
        wanted = "a number with 0 <= f < 1"
    raise ParamsError(f"{name} must be {wanted}, got {text[:60]!r}")


def format_csv(numbers: Numbers) -> str:
    """A params.csv with google/rappor's header."""
    line = ",".join(repr(numbers[name]) for name in CSV_HEADER)
    return f"{','.join(CSV_HEADER)}\n{line}\n"


def parse_json(text: str) -> Any:
    """A JSON document without NaN, Infinity or repeated keys."""

    def refuse(constant: str) -> NoReturn:
        raise ParamsError(f"params must hold finite numbers, got {constant}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ParamsError("params must name each field once; a key is repeated")
        return found

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except ParamsError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ParamsError(f"params are not valid JSON: {error}") from None


def format_json(numbers: Numbers) -> str:
    """One JSON object on one line, full precision."""
    return json.dumps(dict(numbers), allow_nan=False)


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document."""
    import tomllib  # rarely needed

    try:
        return tomllib.loads(text)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ParamsError(f"params are not valid TOML: {error}") from None


def format_toml(numbers: Numbers) -> str:
    """Six lines of TOML, full precision."""
    return "".join(f"{name} = {value!r}\n" for name, value in numbers.items())
