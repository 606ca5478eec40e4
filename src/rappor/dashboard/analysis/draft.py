"""A list of candidates as it was pasted or uploaded: read line by line, nothing dropped in silence.

Repetitions are merged and counted. Lines that are no text are reported by their number and left
out, so that one bad line does not cost the rest.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from rappor.checks import encodable, plural
from rappor.dashboard.analysis.unpacking import check_size
from rappor.decoding.candidate_files import from_csv, from_lines, from_parquet
from rappor.decoding.candidates import Candidates
from rappor.errors import DecodeError, ParamsError

MOST_STRINGS = 1_000_000
MOST_BYTES = 32 * 10**6
MOST_LETTERS = 4096  # of one string: longer ones are a file in the wrong place
FORMS = {"lines": "One string on each line", "csv": "CSV"}
LISTED = 20  # lines that are reported by number
PARQUET = b"PAR1"
_MARK = b"\xef\xbb\xbf"  # of UTF-8, before the first line


class UnreadableUpload(NamedTuple):
    """A line (or a string of a table) that is no candidate, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was read.

    Attributes:
        strings: distinct, sorted as candidates are.
        read: strings that were read, repetitions counted.
        merged: repetitions.
        unreadable: lines left out, the first 20 of them.
        left_out: how many those are in all.
        notes: what else there is to say.
    """

    strings: tuple[str, ...] = field(repr=False)
    read: int
    merged: int
    unreadable: tuple[UnreadableUpload, ...] = ()
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Another one for another list."""
        return digest_of(self.strings)

    @property
    def words(self) -> str:
        r"""How much was read.

        >>> read_draft(b"a.org\nb.org\na.org\n").words
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


def read_draft(data: bytes, form: str = "lines") -> Draft:
    """The candidates in pasted or uploaded bytes; Parquet is known by its first bytes.

    Raises:
        ParamsError: too large, too many, or nothing to read; says the limit.
    """
    if form not in FORMS:
        raise ParamsError(f"form must be one of {', '.join(FORMS)}; got {form!r}")
    if len(data) > MOST_BYTES:
        raise ParamsError(
            f"a list may have {MOST_BYTES // 10**6} MB; this one has {len(data) / 1e6:,.1f} MB"
        )
    try:
        if data.startswith(PARQUET):
            texts, notes = _from_parquet(data)
            if sum(map(len, texts)) > MOST_BYTES:  # whatever the file says about itself
                raise ParamsError(
                    f"a list may have {MOST_BYTES // 10**6} MB; this one unpacks to more"
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
    if len(good) > MOST_STRINGS:
        raise ParamsError(f"a list may have {MOST_STRINGS:,} strings; this one has {len(good):,}")
    distinct = list(dict.fromkeys(good))  # `words` says how many were merged
    merged = len(good) - len(distinct)
    found = Candidates.of(distinct)
    said = (*notes, *found.notes)
    return Draft(found.strings, len(good), merged, tuple(bad[:LISTED]), len(bad), said)


def _lines(data: bytes) -> tuple[str, list[UnreadableUpload]]:
    """The text of all lines that can be candidates, and the others."""
    bad, lines = [], []
    for number, line in enumerate(data.removeprefix(_MARK).split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            bad.append(UnreadableUpload(f"line {number}", "not UTF-8 text"))
            continue
        if why := _wrong(text.removesuffix("\r")):
            bad.append(UnreadableUpload(f"line {number}", why))
        else:
            lines.append(text)
    return "\n".join(lines), bad


def _rows(texts: Iterable[str]) -> tuple[list[str], list[UnreadableUpload]]:
    """Strings of a table that can be candidates, and the others."""
    good, bad = [], []
    for number, text in enumerate(texts, 1):
        if why := _wrong(text):
            bad.append(UnreadableUpload(f"string {number}", why))
        else:
            good.append(text)
    return good, bad


def _wrong(text: str) -> str:
    """Why a text can be no candidate; empty where it can."""
    if len(text) > MOST_LETTERS:
        return f"longer than {MOST_LETTERS:,} characters"
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
    check_size(data, MOST_STRINGS, MOST_BYTES)
    return from_parquet(io.BytesIO(data), "the list")


def _first(bad: Sequence[UnreadableUpload]) -> str:
    return f": {bad[0].where} is {bad[0].why}" if bad else ""


class ListDifference(NamedTuple):
    """What one list has that another has not; a few of each by name."""

    added: int
    removed: int
    some_added: tuple[str, ...]
    some_removed: tuple[str, ...]


def difference(before: Iterable[str], after: Iterable[str], some: int = 50) -> ListDifference:
    """What changed from one list to another.

    >>> difference(["a", "b"], ["b", "c", "d"])
    Difference(added=2, removed=1, some_added=('c', 'd'), some_removed=('a',))
    """
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    return ListDifference(len(added), len(removed), tuple(added[:some]), tuple(removed[:some]))
