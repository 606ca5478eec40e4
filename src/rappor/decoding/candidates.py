"""Candidates: the strings that reports are tested for, distinct and in one fixed order (§4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

from rappor.checks import plural, show
from rappor.errors import DecodeError

_EXAMPLES = 3  # strings that a note quotes


@dataclass(frozen=True, slots=True)
class Candidates:
    """M distinct strings, sorted by their UTF-8 bytes.

    The order is fixed so that a result does not depend on the order in which they were given.

    Attributes:
        strings: the candidates.
        merged: how many of those given were repetitions of others and were dropped.
        repeated: the first few strings that were given more than once.
        notes: what a reader should know about the list, in plain English.
    """

    strings: tuple[str, ...]
    merged: int = 0
    repeated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Iterable[str | bytes] | Candidates) -> Candidates:
        """The candidates among these strings (bytes as UTF-8), or DecodeError.

        >>> Candidates.of(["b.org", "a.org", b"b.org"]).strings
        ('a.org', 'b.org')
        """
        if isinstance(given, Candidates):
            return given
        if isinstance(given, (str, bytes)):
            raise DecodeError("candidates must be a list of strings, got one string")
        try:
            texts = [
                text if type(text) is str else _text(number, text)
                for number, text in enumerate(given, 1)
            ]
        except TypeError:
            raise DecodeError(f"candidates must be a list of strings, got {show(given)}") from None
        return collected(texts)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Candidates:
        """The candidates in a file: .txt (one a line), .csv or .parquet; see docs/candidates.md."""
        from rappor.decoding.candidate_files import read_strings

        texts, notes = read_strings(path)
        try:
            return collected(texts, notes)
        except DecodeError as error:
            raise DecodeError(f"{path}: {error}") from None

    def encoded(self) -> list[bytes]:
        """The candidates as the bytes that clients hash."""
        return [text.encode() for text in self.strings]

    def __len__(self) -> int:
        return len(self.strings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings)


def collected(texts: Sequence[str], notes: Sequence[str] = ()) -> Candidates:
    """Candidates of texts that may repeat, with notes on what was done to them."""
    # Sorting by code points is sorting by UTF-8 bytes: UTF-8 was made that way.
    strings = sorted(set(texts))
    if not strings:
        raise DecodeError("no candidates: give at least one string to look for")
    for text in strings:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DecodeError(
                f"a candidate is half a surrogate pair, {show(text)}: leave it out"
            ) from None
    merged = len(texts) - len(strings)
    repeated = _repeated(texts) if merged else ()
    all_notes = list(notes)
    if merged:
        all_notes.append(
            f"{plural(merged, 'duplicate candidate was', 'duplicate candidates were')} merged, "
            f"such as {quoted(repeated)}"
        )
    spaced = [text for text in strings if text != text.strip()]
    if spaced:
        all_notes.append(
            f"{plural(len(spaced), 'candidate has', 'candidates have')} spaces before or after, "
            f"which were kept: {quoted(spaced)}"
        )
    if strings[0] == "":
        all_notes.append("the empty string is one of the candidates")
    return Candidates(tuple(strings), merged, tuple(repeated[:_EXAMPLES]), tuple(all_notes))


def _repeated(texts: Sequence[str]) -> list[str]:
    """The first few strings that are there more than once, in the order of their repetition."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for text in texts:
        if text in seen:
            found[text] = None
            if len(found) > _EXAMPLES:
                break
        seen.add(text)
    return list(found)


def _text(number: int, given: object) -> str:
    if isinstance(given, str):
        return str(given)
    if isinstance(given, (bytes, bytearray, memoryview)):
        try:
            return bytes(given).decode()
        except UnicodeDecodeError:
            raise DecodeError(
                f"candidate {number} is not UTF-8 text; give it as UTF-8, or leave it out"
            ) from None
    raise DecodeError(f"candidate {number} must be str or bytes, got {type(given).__name__}")


def quoted(strings: Sequence[str]) -> str:
    """A few of the strings, quoted and cut to a sane length.

    >>> quoted(["a", "b", "c", "d"])
    "'a', 'b', 'c', ..."
    """
    shown = ", ".join(show(text) for text in strings[:_EXAMPLES])
    return shown + (", ..." if len(strings) > _EXAMPLES else "")
