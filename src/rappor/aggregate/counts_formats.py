"""Counts in files: google/rappor's counts.csv, and Parquet and npz with everything about them.

counts.csv has m rows; column 0 holds the reports of a cohort, column i+1 its bit i. It is read
strictly and exactly: 64-bit whole numbers as digits, never through a float. Parquet and npz also
carry one JSON object with the parameters, kind, dialect, collection, version and
reports_per_client, so that reading needs nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from rappor.checks import show
from rappor.errors import DecodeError, MissingExtraError, ParamsError
from rappor.files import replacing
from rappor.formats import read_text
from rappor.google_files import file_kind
from rappor.params import Params
from rappor.typing import IntArray

if TYPE_CHECKING:
    from rappor.aggregate.pair_counts import PairCounts

_FORMAT = 1
_KEY = b"rappor.counts"
_ABOUT = ("kind", "dialect", "collection", "version", "reports_per_client")
_LARGEST = 2**63 - 1


def write_npz(
    path: str | PathLike[str], totals: IntArray, ones: IntArray, about: dict[str, Any]
) -> None:
    """Write an npz file of plain arrays: totals, ones, about (JSON)."""
    # numpy gets an open file: to a path without .npz it would add that ending.
    with replacing(Path(path).expanduser().resolve()) as draft, draft.open("wb") as file:
        np.savez_compressed(file, totals=totals, ones=ones, about=np.array(_to_json(about)))


def read_npz(path: str | PathLike[str]) -> tuple[IntArray, IntArray, dict[str, Any]]:
    """Totals, ones and the rest by name; nothing is unpickled."""
    # Opened here, because numpy does not close a file that it cannot read.
    with _reading(path), Path(path).expanduser().open("rb") as file:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise DecodeError(
                f"{path}: a single array, not counts written by to_npz; name those of rappor "
                "aggregate or simulate"
            )
        with found as arrays:
            if not {"totals", "ones", "about"} <= set(arrays.files):
                raise DecodeError(
                    f"{path}: an npz file without totals, ones and about; name one of rappor "
                    "aggregate or simulate"
                )
            totals, ones, about = arrays["totals"], arrays["ones"], str(arrays["about"])
    return totals, ones, _from_json(about, path)


def write_pair_npz(path: str | PathLike[str], pairs: PairCounts) -> None:
    """Write an npz file of the counts of two variables: totals, first, second, both, about."""
    sides = (pairs.first, pairs.second)
    texts = [
        _to_json({name: getattr(side, name) for name in ("params", *_ABOUT)}) for side in sides
    ]
    with replacing(Path(path).expanduser().resolve()) as draft, draft.open("wb") as file:
        np.savez_compressed(
            file,
            totals=pairs.totals,
            first=pairs.first.ones,
            second=pairs.second.ones,
            both=pairs.both,
            about=np.array(texts),
        )


def read_pair_npz(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Any], IntArray]:
    """What the two Counts are made of, and the pairs of bits; nothing is unpickled."""
    with _reading(path), Path(path).expanduser().open("rb") as file:
        found = np.load(file, allow_pickle=False)
        names = {"totals", "first", "second", "both", "about"}
        if not isinstance(found, np.lib.npyio.NpzFile) or not names <= set(found.files):
            raise DecodeError(
                f"{path}: not pair counts; name a file that rappor associate --save wrote"
            )
        with found as arrays:
            read = {name: arrays[name] for name in names}
    texts = read["about"].tolist()
    if not isinstance(texts, list) or len(texts) != 2:
        raise DecodeError(f"{path}: the description of the counts cannot be read")
    sides = [
        {"totals": read["totals"], "ones": read[name], **_from_json(text, path)}
        for name, text in zip(("first", "second"), texts, strict=True)
    ]
    return sides[0], sides[1], read["both"]


def write_parquet(
    path: str | PathLike[str], totals: IntArray, ones: IntArray, about: dict[str, Any]
) -> None:
    """Write a Parquet file: a row for each cohort with its reports and a list of k counts."""
    pa, parquet = _pyarrow()
    m, k = ones.shape
    lists = pa.FixedSizeListArray.from_arrays(pa.array(ones.reshape(-1)), k)
    columns = {"cohort": np.arange(m), "reports": totals, "ones": lists}
    table = pa.table(columns).replace_schema_metadata({_KEY: _to_json(about).encode()})
    with replacing(Path(path).expanduser().resolve()) as draft, draft.open("wb") as file:
        parquet.write_table(table, file)


def read_parquet(path: str | PathLike[str]) -> tuple[IntArray, IntArray, dict[str, Any]]:
    """Totals, ones and the rest by name."""
    pa, parquet = _pyarrow()
    with _reading(path), Path(path).expanduser().open("rb") as file:
        table = parquet.read_table(file)
        described = (table.schema.metadata or {}).get(_KEY)
        if described is None:
            raise DecodeError(
                f"{path}: a Parquet file, but not counts written by to_parquet; to count reports, "
                "run rappor aggregate"
            )
        about = _from_json(described.decode("utf-8", "replace"), path)
        k = about["params"].k
        if table.schema.names != ["cohort", "reports", "ones"]:
            raise DecodeError(f"{path}: expected the columns cohort, reports and ones")
        if table["ones"].type != pa.list_(pa.int64(), k) or any(c.null_count for c in table):
            raise DecodeError(f"{path}: expected {k} counts in each row, and none missing")
        if table["cohort"].to_pylist() != list(range(about["params"].m)):
            raise DecodeError(f"{path}: expected the cohorts 0 to {about['params'].m - 1} in order")
        ones = table["ones"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return table["reports"].to_numpy(), ones.reshape(-1, k), about


def _to_json(about: dict[str, Any]) -> str:
    named = {name: about[name] for name in _ABOUT}
    return json.dumps({"format": _FORMAT, "params": about["params"].to_dict(), **named})


def _from_json(text: str, path: str | PathLike[str]) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if found["format"] != _FORMAT:
            raise DecodeError(
                f"{path}: counts of a format that this version does not know; read them with the "
                "rappor that wrote them"
            )
        return {"params": Params.from_dict(found["params"])} | {n: found[n] for n in _ABOUT}
    except ParamsError as error:
        raise DecodeError(f"{path}: {error}") from None
    except DecodeError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DecodeError(f"{path}: the description of the counts cannot be read") from None


@contextlib.contextmanager
def _reading(path: str | PathLike[str]) -> Iterator[None]:
    """Turn every error that the libraries raise for a damaged file into DecodeError."""
    try:
        yield
    except DecodeError:
        raise
    except FileNotFoundError as error:
        raise DecodeError(f"cannot read {path}: {error.strerror}") from error
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        NotImplementedError,  # from zipfile, for an unknown compression
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        if isinstance(error, OSError) and error.strerror:
            raise DecodeError(f"cannot read {path}: {error.strerror}") from error
        raise DecodeError(
            f"{path}: damaged, or not a file of counts; count the reports again, or name another "
            "file"
        ) from None


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    return pyarrow, pyarrow.parquet


def read_counts(path: str | PathLike[str], params: Params) -> tuple[IntArray, IntArray]:
    """N_j of shape (m,) and c_ij of shape (m, k), or DecodeError with file, line and reason."""
    try:
        text = read_text(path)
    except ParamsError as error:  # says which file, and why it cannot be read
        raise DecodeError(str(error)) from error.__cause__
    rows: list[list[int]] = []
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in lines:
            known = None if rows else file_kind(cells)
            if known is not None:
                raise DecodeError(f"{path} {known}")
            if any(map(str.strip, cells)):
                rows.append(_row(cells, params, len(rows), f"{path}, line {lines.line_num}"))
    except csv.Error as error:
        raise DecodeError(
            f"{path}, line {lines.line_num}: not CSV: {error}; check that it is the right file"
        ) from None
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
            f"is set in {most} of them: count the reports again"
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
    """Write counts.csv to a file, or to an open text stream."""
    if isinstance(target, (str, PathLike)):
        with (
            replacing(Path(target).expanduser().resolve()) as draft,
            draft.open("w", encoding="ascii", newline="\n") as file,
        ):
            write_counts(file, totals, ones)
        return
    for reports, bits in zip(totals.tolist(), ones.tolist(), strict=True):
        target.write(",".join(map(str, [reports, *bits])) + "\n")
