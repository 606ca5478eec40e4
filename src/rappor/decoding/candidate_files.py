"""Candidates in files: text with one a line, CSV, Parquet. docs/candidates.md says what is read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from rappor.checks import plural
from rappor.csv_cells import original
from rappor.decoding.candidates import quoted
from rappor.errors import DecodeError, MissingExtraError

COLUMNS = ("string", "candidate", "value")  # how the column of candidates may be called

_Found = tuple[list[str], list[str]]  # strings in the order of the file, notes


def read_strings(path: str | PathLike[str]) -> _Found:
    """The strings of a file in its order, repetitions kept, and notes on what was skipped.

    The name says the format: .csv, .parquet; anything else is text with one string a line.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _from_parquet(path)
    text = read_utf8(path)
    return from_csv(text, path) if suffix == ".csv" else from_lines(text)


def read_utf8(path: str | PathLike[str]) -> str:
    """The text of a UTF-8 file without its byte order mark, or DecodeError with the line."""
    return decoded(Path(path).expanduser().read_bytes(), path)


def decoded(data: bytes, path: str | PathLike[str]) -> str:
    """UTF-8 text without its byte order mark, or DecodeError with the line; `path` is for that."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass  # whose position does not count the byte order mark
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    raise DecodeError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8")


def from_lines(text: str) -> _Found:
    """The strings of a text with one on each line, and notes on what was skipped."""
    # Not splitlines(): it would also cut at form feeds and at U+2028, which may be in a string.
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    strings = [line for line in lines if line and not line.isspace()]
    notes = _skipped(len(lines) - len(strings), "blank line", "blank lines")
    in_quotes = [text for text in strings if len(text) > 1 and text[0] == text[-1] == '"']
    if in_quotes:
        notes.append(
            f"{plural(len(in_quotes), 'candidate is', 'candidates are')} in double quotes, which "
            f"were kept (in a file named .csv they would not be): {quoted(in_quotes)}"
        )
    return strings, notes


def from_csv(text: str, path: str | PathLike[str]) -> _Found:
    """The strings of CSV text, and notes on what was skipped; `path` is for errors."""
    rows = csv_rows(text, path)
    first = next(((line, row) for line, row in rows if row), None)
    if first is None:
        return [], []
    column = _named([cell.strip() for cell in first[1]])
    strings, skipped = [], 0
    if column is None:
        column = 0
        rows = _chain(first, rows)
    for line, row in rows:
        if len(row) > column:
            if row[column] and not row[column].isspace():
                strings.append(original(row[column]))
                continue
        elif row:
            raise DecodeError(
                f"{path}, line {line}: {plural(len(row), 'column', 'columns')}, but candidates are "
                f"in column {column + 1}: check the line"
            )
        skipped += 1
    return strings, _skipped(skipped, "blank line", "blank lines")


def csv_rows(text: str, path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file (RFC 4180) with the lines that they begin on, or DecodeError."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DecodeError(
            f"{path}, line {line}: not CSV: {error}; check that it is the right file"
        ) from None


def _chain(
    first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _named(names: list[str]) -> int | None:
    """Which of these is a name for candidates, if any."""
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in COLUMNS if name in lowered), None)


def _from_parquet(path: str | PathLike[str]) -> _Found:
    with Path(path).expanduser().open("rb") as handle:
        return from_parquet(handle, path)


def from_parquet(handle: BinaryIO, path: str | PathLike[str]) -> _Found:
    """The strings of an open Parquet file, and notes on what was skipped; `path` is for errors."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("candidates", "analysis") from None
    try:
        # A copy without Python: one of Arrow's threads that lets go of a Python file while the
        # interpreter ends would end the process by SIGABRT.
        file = parquet.ParquetFile(pa.BufferReader(handle.read()))
        schema = file.schema_arrow
        texts = [number for number, kind in enumerate(schema.types) if _is_text(kind)]
        column = _named(schema.names)
        if column is None and len(texts) == 1:
            column = texts[0]
        if column is None or column not in texts:
            raise DecodeError(
                f"{path}: expected a text column named {', '.join(COLUMNS[:-1])} or "
                f"{COLUMNS[-1]}, or one text column only; found {_listed(schema)}"
            )
        # Without threads: if memory is short, Arrow's could end the process instead of raising.
        values = file.read(columns=[schema.names[column]], use_threads=False).column(0)
        # As bytes, because Arrow does not check that its strings are UTF-8.
        cells = values.cast(pa.large_binary()).to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DecodeError(f"{path}: cannot be read as Parquet: {reason}") from None
    strings = []
    for row, cell in enumerate(cells, 1):
        try:
            text = (cell or b"").decode()
        except UnicodeDecodeError:
            raise DecodeError(
                f"{path}, row {row}: not UTF-8 text; save the file as UTF-8"
            ) from None
        if text and not text.isspace():
            strings.append(text)
    return strings, _skipped(len(cells) - len(strings), "empty row", "empty rows")


def _is_text(kind: Any) -> bool:
    return str(kind) in {
        "string",
        "large_string",
        "string_view",
        "binary",
        "large_binary",
        "binary_view",
    } or (str(kind).startswith("dictionary<") and _is_text(kind.value_type))


def _listed(schema: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "no columns"


def _skipped(number: int, one: str, many: str) -> list[str]:
    if not number:
        return []
    return [f"{plural(number, f'{one} was', f'{many} were')} skipped"]
