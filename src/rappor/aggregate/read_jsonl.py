"""Reports as JSON lines: {"cohort": 3, "bits": "0101..."} or {"cohort": 3, "packed": base64}.

Text has bit k-1 first, as in CSV. `rappor` and `irr` are other names for `bits`, which `rappor
encode` and google/rappor use. Other members are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rappor.aggregate.file_parts import (
    NO_COHORT,
    FilePart,
    NotAReport,
    ReadJob,
    bits_from,
    cohort_from,
)
from rappor.aggregate.lines import NO_COLUMNS, LineFile, first_without_bom, parse_lines
from rappor.errors import DecodeError, WireError
from rappor.params import Params
from rappor.wire import unpack

_TEXT = ("bits", "rappor", "irr")


def jobs(path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of a file of JSON lines."""
    with path.open("rb") as raw:
        yield from jobs_of(LineFile(path, raw), path, params)


def jobs_of(file: LineFile, path: Path, params: Params) -> Iterator[ReadJob]:
    """The pieces of an open file of JSON lines; `path` is for errors."""
    empty = True
    for size, data in first_without_bom(file.chunks()):
        empty = False
        yield ReadJob(size, partial(parse_piece, data, params))
    if empty:
        raise DecodeError(f"{path}: the file is empty; name a file of reports")


def parse_piece(data: bytes, params: Params) -> FilePart:
    """The reports of some whole lines."""
    return parse_lines(data, params, _parse_line, NO_COLUMNS)


def _parse_line(text: str, params: Params) -> tuple[int, int]:
    """Cohort and bits of one line, or NotAReport."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise NotAReport("not a line of JSON") from None
    if not isinstance(found, dict):
        raise NotAReport("not a JSON object")
    cohort = found.get("cohort")
    if type(cohort) is not int:
        raise NotAReport(NO_COHORT)
    named = [name for name in (*_TEXT, "packed") if name in found]
    if len(named) != 1:
        raise NotAReport("expected exactly one of bits, rappor, irr and packed")
    bits = found[named[0]]
    if not isinstance(bits, str):
        raise NotAReport(f"{named[0]} is not a string")
    read = _from_base64 if named[0] == "packed" else bits_from
    return cohort_from(cohort, params.m), read(bits, params.k)


def _from_base64(text: Any, k: int) -> int:
    """The bits of a packed report in base64."""
    try:
        return unpack(base64.b64decode(text, validate=True), k)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, WireError):  # says the length, or that padding bits are set
            raise NotAReport(str(error)) from None
        raise NotAReport("packed is not base64") from None
