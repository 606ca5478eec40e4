"""Decoded results as files: google/rappor's results.csv with more columns, JSON, Parquet, charts.

The same input gives the same bytes. Files appear whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rappor.cli.arguments import UsageError

if TYPE_CHECKING:
    from rappor.decoding.exports import Result


def write(found: Result, name: str, *, every: bool) -> None:
    """Write the rows in the format that the end of the name says; "-" is CSV to standard output."""
    from rappor.decoding.exports import columns, csv_lines, document, write_parquet

    if name == "-":
        sys.stdout.flush()
        for line in csv_lines(columns(found, every)):
            sys.stdout.buffer.write(line.encode())  # a file's bytes, on any terminal
        return
    with replacing(name) as path:
        match path.suffix.lower():
            case ".json":
                text = json.dumps(document(found, every=every), indent=2, allow_nan=False)
                path.write_text(text + "\n", encoding="ascii")
            case ".parquet":
                write_parquet(columns(found, every), path)
            case _:
                with path.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(csv_lines(columns(found, every)))


def draw(found: Result, name: str) -> None:
    """Write the chart in the format that the end of the name says."""
    with replacing(name) as path:
        found.plot().save(path)


def target_of(name: str) -> Path:
    """The file of this name, which need not exist; an error where its folder does not."""
    try:
        target = Path(name).expanduser().resolve()
    except RuntimeError:
        raise UsageError(f"{name}: no such home directory") from None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", name)
    if not target.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", name)
    if not target.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "its folder is a file", name)
    return target


@contextmanager
def replacing(name: str, *, private: bool = False) -> Iterator[Path]:
    """A file to write beside the one that it takes the place of once it is whole.

    Args:
        name: what it is to be called.
        private: nobody but its owner may read it.
    """
    target = target_of(name)
    if target.exists() and not target.is_file():  # a pipe or a device
        yield target
        return
    beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        if private:
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield beside
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
