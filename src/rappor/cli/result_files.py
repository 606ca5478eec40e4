"""Decoded results as files: google/rappor's results.csv with more columns, JSON, Parquet, charts.

The same input gives the same bytes. Files appear whole or not at all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor import files
from rappor.cli.paths import target_of

if TYPE_CHECKING:
    from rappor.decoding.exports import Also
    from rappor.decoding.result import Decoded


def write(
    found: Decoded,
    name: str,
    *,
    every: bool,
    also: Also | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write the rows in the format of the name's suffix; "-" prints CSV.

    Args:
        found: the result.
        name: the file.
        every: also the rows that were not detected.
        also: further columns.
        facts: what was decoded, for JSON.
    """
    from rappor.decoding.exports import Also, columns, csv_lines, document, write_parquet

    also = also or Also()

    if name == "-":
        sys.stdout.flush()
        for line in csv_lines(columns(found, every, also)):
            sys.stdout.buffer.write(
                line.encode()
            )  # the bytes of a file, whatever the terminal's encoding
        return
    with replacing(name) as path:
        match path.suffix.lower():
            case ".json":
                whole = dict(facts or {}) | document(found, every=every, also=also)
                text = json.dumps(whole, indent=2, allow_nan=False)
                path.write_text(text + "\n", encoding="ascii")
            case ".parquet":
                write_parquet(columns(found, every, also), path)
            case _:
                with path.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(csv_lines(columns(found, every, also)))


def draw(found: Decoded, name: str, truth: Mapping[str, int] | None = None) -> None:
    """Write the chart in the format of the name's suffix, with the truth if it is known."""
    with replacing(name) as path:
        found.plot(truth).save(path)


@contextmanager
def replacing(name: str, *, private: bool = False) -> Iterator[Path]:
    """A path to write to; the finished file replaces the named one.

    Args:
        name: the file, as given on the command line.
        private: let only the owner read the new file.
    """
    with files.replacing(target_of(name), private=private) as draft:
        yield draft
