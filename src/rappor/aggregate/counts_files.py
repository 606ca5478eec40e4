"""Counts with all that belongs to them in one file: Parquet and npz.

Both carry, beside the numbers, one JSON object with the parameters, kind, dialect, collection,
version and reports_per_client, so that reading needs nothing else.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rappor.errors import DecodeError, MissingExtraError, ParamsError
from rappor.files import replacing
from rappor.params import Params
from rappor.typing import IntArray

_FORMAT = 1
_KEY = b"rappor.counts"
_ABOUT = ("kind", "dialect", "collection", "version", "reports_per_client")


def write_npz(
    path: str | PathLike[str], totals: IntArray, ones: IntArray, about: dict[str, Any]
) -> None:
    """Write an npz file of plain arrays: totals, ones, about (JSON)."""
    # numpy gets an open file: to a path without .npz it would add that ending.
    with replacing(Path(path).expanduser().resolve()) as draft, draft.open("wb") as file:
        np.savez_compressed(file, totals=totals, ones=ones, about=np.array(_to_json(about)))


def read_npz(path: str | PathLike[str]) -> tuple[IntArray, IntArray, dict[str, Any]]:
    """Totals, ones and the rest by name; nothing is ever unpickled."""
    # Opened here: numpy leaves files that it cannot read open.
    with _reading(path), Path(path).expanduser().open("rb") as file:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise DecodeError(f"{path}: a single array, not counts written by to_npz")
        with found as arrays:
            if not {"totals", "ones", "about"} <= set(arrays.files):
                raise DecodeError(f"{path}: an npz file without totals, ones and about")
            totals, ones, about = arrays["totals"], arrays["ones"], str(arrays["about"])
    return totals, ones, _from_json(about, path)


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
            raise DecodeError(f"{path}: a Parquet file, but not counts written by to_parquet")
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
            raise DecodeError(f"{path}: counts of a format that this version does not know")
        return {"params": Params.from_dict(found["params"])} | {n: found[n] for n in _ABOUT}
    except ParamsError as error:
        raise DecodeError(f"{path}: {error}") from None
    except DecodeError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DecodeError(f"{path}: what the counts are about cannot be read") from None


@contextlib.contextmanager
def _reading(path: str | PathLike[str]) -> Iterator[None]:
    """Turn whatever a damaged file makes the libraries raise into DecodeError."""
    try:
        yield
    except DecodeError:
        raise
    except FileNotFoundError as error:
        raise DecodeError(f"cannot read {path}: {error.strerror}") from None
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        NotImplementedError,  # what zipfile raises on a compression it does not know
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        if isinstance(error, OSError) and error.strerror:
            raise DecodeError(f"cannot read {path}: {error.strerror}") from None
        raise DecodeError(f"{path}: damaged, or not a file of counts") from None


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("aggregate", "analysis") from None
    return pyarrow, pyarrow.parquet
