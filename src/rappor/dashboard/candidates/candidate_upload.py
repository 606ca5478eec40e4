"""A pasted or uploaded list of candidates: read line by line, and nothing is dropped in silence.

Repetitions are merged and counted. Lines that are not text are left out and reported by number, so
that one bad line does not spoil the list.

Large lists and Parquet files are read by another process with limited memory and time: a Parquet
file of 20 kB can make a reader take gigabytes, and 32 MB of line breaks are a gigabyte of Python
objects.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from rappor.checks import encodable, plural
from rappor.dashboard.limits import limit, no_core_dumps
from rappor.decoding.candidate_files import from_csv, from_lines, from_parquet
from rappor.decoding.candidates import Candidates
from rappor.errors import DecodeError, ParamsError, RapporError

MAX_STRINGS = 1_000_000
MAX_BYTES = 32 * 10**6
MAX_LETTERS = 4096  # of one string; a longer one is a file in the wrong place
FORMS = {"lines": "One string on each line", "csv": "CSV"}
LISTED = 20  # lines that are reported by number
PARQUET = b"PAR1"
_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_ROWS = 2**16  # that are checked together
_ROOM = 16  # how much more other columns and repetitions may take than the strings
MAX_MEMORY = 2**30  # bytes on top of what the process has when it begins to read
MAX_SECONDS = 60
AT_ONCE = 2
_SMALL = 2**20  # bytes of text that are read without another process
_reading = threading.BoundedSemaphore(AT_ONCE)
TOO_MUCH = (
    "this file cannot be read within the limits of {memory} MB of memory and {seconds} seconds: it "
    "is damaged, or unpacks to far more than a list may have"
)


class UnreadableLine(NamedTuple):
    """A line (or a string of a table) that cannot be a candidate, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class CandidateUpload:
    """An uploaded list.

    Attributes:
        strings: distinct and sorted.
        read: the number of strings that were read, with repetitions.
        merged: the number of repetitions.
        unreadable: the first 20 of the lines that were left out.
        left_out: the number of lines that were left out.
        notes: further remarks.
    """

    strings: tuple[str, ...] = field(repr=False)
    read: int
    merged: int
    unreadable: tuple[UnreadableLine, ...] = ()
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the strings."""
        return digest_of(self.strings)

    @property
    def words(self) -> str:
        r"""How many strings were read.

        >>> parse_upload(b"a.org\nb.org\na.org\n").words
        '3 read · 1 duplicate merged'
        """
        parts = [f"{self.read:,} read"]
        if self.merged:
            parts.append(plural(self.merged, "duplicate merged", "duplicates merged"))
        if self.left_out:
            parts.append(plural(self.left_out, "unreadable line", "unreadable lines"))
        return " · ".join(parts)


def digest_of(strings: Iterable[str]) -> str:
    """A digest of a list."""
    state = blake2b(digest_size=16, person=b"rappor-list")
    for text in strings:
        state.update(text.encode() + b"\n")
    return state.hexdigest()


def parse_upload(data: bytes, form: str = "lines") -> CandidateUpload:
    """The candidates in pasted or uploaded bytes; Parquet is recognised by its first bytes.

    Raises:
        ParamsError: too large, too many strings, or nothing to read; names the limit.
    """
    if form not in FORMS:
        raise ParamsError(f"form must be one of {', '.join(FORMS)}; got {form!r}")
    if len(data) > MAX_BYTES:
        raise ParamsError(
            f"a list may have {MAX_BYTES // 10**6} MB; this one has {len(data) / 1e6:,.1f} MB"
        )
    try:
        if data.startswith(PARQUET):
            texts, notes = _from_parquet(data)
            if sum(map(len, texts)) > MAX_BYTES:  # whatever the file says about itself
                raise ParamsError(
                    f"a list may have {MAX_BYTES // 10**6} MB; this one unpacks to more"
                )
            good, bad = _rows(texts)
        elif form == "csv":
            texts, notes = from_csv(_csv(data), "the list")
            good, bad = _rows(texts)
        else:
            text, bad = _lines(data)
            good, notes = from_lines(text)
    except DecodeError as error:
        raise ParamsError(str(error)) from None
    if not good:
        what = "nothing could be read" if bad else "there is nothing in it"
        raise ParamsError(f"a list has at least one string, but {what}{_first(bad)}")
    if len(good) > MAX_STRINGS:
        raise ParamsError(f"a list may have {MAX_STRINGS:,} strings; this one has {len(good):,}")
    distinct = list(dict.fromkeys(good))  # `words` says how many were merged
    merged = len(good) - len(distinct)
    found = Candidates.of(distinct)
    said = (*notes, *found.notes)
    return CandidateUpload(found.strings, len(good), merged, tuple(bad[:LISTED]), len(bad), said)


def _lines(data: bytes) -> tuple[str, list[UnreadableLine]]:
    """The lines that can be candidates, as one text, and the others."""
    bad, lines = [], []
    for number, line in enumerate(data.removeprefix(_MARK).split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            bad.append(UnreadableLine(f"line {number}", "not UTF-8 text"))
            continue
        if why := _wrong(text.removesuffix("\r")):
            bad.append(UnreadableLine(f"line {number}", why))
        else:
            lines.append(text)
    return "\n".join(lines), bad


def _rows(texts: Iterable[str]) -> tuple[list[str], list[UnreadableLine]]:
    """The strings of a table that can be candidates, and the others."""
    good, bad = [], []
    for number, text in enumerate(texts, 1):
        if why := _wrong(text):
            bad.append(UnreadableLine(f"string {number}", why))
        else:
            good.append(text)
    return good, bad


def _wrong(text: str) -> str:
    """Why a text cannot be a candidate; empty if it can."""
    if len(text) > MAX_LETTERS:
        return f"longer than {MAX_LETTERS:,} characters"
    if "\0" in text or "\n" in text or "\r" in text:
        return "with a line break or a zero byte in it"
    return "" if encodable(text) else "half a surrogate pair"


def _csv(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParamsError(f"line {line} is not UTF-8 text: CSV is read as a whole") from None


def _from_parquet(data: bytes) -> tuple[list[str], list[str]]:
    check_size(data, MAX_STRINGS, MAX_BYTES)
    return from_parquet(io.BytesIO(data), "the list")


def _first(bad: Sequence[UnreadableLine]) -> str:
    return f": {bad[0].where} is {bad[0].why}" if bad else ""


class ListDifference(NamedTuple):
    """The strings that two lists do not share: their numbers, and a few by name."""

    added: int
    removed: int
    some_added: tuple[str, ...]
    some_removed: tuple[str, ...]


def difference(before: Iterable[str], after: Iterable[str], some: int = 50) -> ListDifference:
    """The difference of two lists.

    >>> difference(["a", "b"], ["b", "c", "d"])
    ListDifference(added=2, removed=1, some_added=('c', 'd'), some_removed=('a',))
    """
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    return ListDifference(len(added), len(removed), tuple(added[:some]), tuple(removed[:some]))


def check_size(data: bytes, max_strings: int, max_bytes: int) -> None:
    """Raise ParamsError if a Parquet file unpacks to a list beyond the limits.

    A file that cannot be read passes: reading it says what is wrong.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(io.BytesIO(data))
        if about.num_rows > max_strings:
            raise ParamsError(
                f"a list may have {max_strings:,} strings; this one has {about.num_rows:,}"
            )
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        _check(sum(group.total_byte_size for group in groups), _ROOM * max_bytes, max_bytes)
        names = [about.schema.column(number).path for number in range(about.num_columns)]
        file = parquet.ParquetFile(io.BytesIO(data), read_dictionary=names)
        for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types, strict=True):
            if pa.types.is_dictionary(kind):
                _check(_letters(file, name), max_bytes, max_bytes)
    except (pa.ArrowException, OSError):
        return


def _letters(file: Any, name: str) -> int:
    """The bytes of all texts of a column, counted without unpacking repetitions."""
    import pyarrow.compute as pc

    size = 0
    for batch in file.iter_batches(_ROWS, columns=[name]):
        column = batch.column(0)
        lengths = pc.binary_length(column.dictionary).cast("int64")
        size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    return size


def _check(size: int, limit: int, max_bytes: int) -> None:
    if size > limit:
        raise ParamsError(
            f"a list may have {max_bytes // 10**6} MB; this one unpacks to {size / 1e6:,.1f} MB"
        )


def read_upload(
    data: bytes, form: str = "lines", *, memory: int = MAX_MEMORY, seconds: int = MAX_SECONDS
) -> CandidateUpload:
    """The candidates in pasted or uploaded bytes; see `parse_upload`.

    Args:
        data: the uploaded bytes.
        form: how to read texts, a key of FORMS.
        memory: bytes that reading may take.
        seconds: computing time; twice as long by the clock.

    Raises:
        ParamsError: what `parse_upload` raises, or the limits were reached.
    """
    if len(data) <= _SMALL and not data.startswith(PARQUET):
        return parse_upload(data, form)
    if not _reading.acquire(blocking=False):  # a waiting thread would be missing for pages
        raise ParamsError(f"{AT_ONCE} lists are being read: try again later")
    try:
        return _read_elsewhere(data, form, memory, seconds)
    finally:
        _reading.release()


def _read_elsewhere(data: bytes, form: str, memory: int, seconds: int) -> CandidateUpload:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, memory, seconds), daemon=True)
    process.start()
    theirs.close()
    answer: Any = None
    try:
        with suppress(EOFError, OSError):  # the process was killed, or ran out of memory
            ours.send((data, form))
            if ours.poll(2 * seconds):
                answer = ours.recv()
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()
    if isinstance(answer, CandidateUpload):
        return answer
    limits = TOO_MUCH.format(memory=memory // 2**20, seconds=seconds)
    raise ParamsError(answer if isinstance(answer, str) else limits)


def _main(line: Connection, memory: int, seconds: int) -> None:
    """Read one list, and send the list or an error; the limits may end the process before."""
    no_core_dumps()
    # Set before Arrow is loaded: its other allocators reserve a gigabyte at the start.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    import pyarrow as pa
    import pyarrow.compute  # loaded before memory is measured
    import pyarrow.parquet

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    data, form = line.recv()
    limit(memory, seconds)
    answer: CandidateUpload | str | None = None
    try:
        answer = parse_upload(data, form)
    except RapporError as error:
        answer = str(error)
    except MemoryError:
        pass
    line.send(answer)
