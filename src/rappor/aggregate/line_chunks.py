"""Pieces of whole lines from files of any size, plain or gzip, in flat memory."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rappor.errors import DecodeError

CHUNK = 8 * 2**20
_HEADER = 2**16
_BOM = b"\xef\xbb\xbf"


class LineFile:
    """A file read in pieces that end where a line ends."""

    __slots__ = ("_file", "_name", "_raw", "_seen")

    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._name, self._raw, self._seen = path, raw, 0
        packed = path.suffix.lower() == ".gz"
        # GzipFile has all that is used here, but is not declared to be an IO[bytes].
        self._file: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]

    def header(self) -> bytes:
        """The first line, without what marks its end."""
        with self._reading():
            line = self._file.readline(_HEADER)
        if not line:
            raise DecodeError(f"{self._name}: the file is empty")
        return line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The rest, as (bytes of the file behind it, whole lines)."""
        rest = b""
        while True:
            with self._reading():
                fresh = self._file.read(CHUNK)
            end = fresh.rfind(b"\n") + 1
            if not fresh:
                if rest:
                    yield self._progress(), rest
                return
            if end:
                yield self._progress(), rest + fresh[:end]
                rest = fresh[end:]
            else:
                rest += fresh
            if len(rest) >= CHUNK:
                raise DecodeError(
                    f"{self._name}: a line of more than {CHUNK // 2**20} MB; are these reports?"
                )

    def _progress(self) -> int:
        before, self._seen = self._seen, self._raw.tell()
        return self._seen - before

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise DecodeError(f"{self._name}: damaged, or not a gzip file") from None


def first_without_bom(chunks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The pieces of a file that has no header, without its byte order mark."""
    for number, (size, data) in enumerate(chunks):
        yield size, data if number else data.removeprefix(_BOM)
