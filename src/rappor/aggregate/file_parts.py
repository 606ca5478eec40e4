"""Pieces of files of reports: the reports in them, and the malformed lines.

A reason says what is wrong with a line and never shows its content: no bits, no client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rappor.params import Params
from rappor.typing import ByteArray, IntArray

SHOWN = 20
_REASONS = 100  # different reasons that are counted separately: bounds the memory
_OTHER = "something else is wrong"


class NotAReport(Exception):
    """A line that is not a report; the message is the reason."""


@dataclass(slots=True)
class MalformedLines:
    """Malformed lines: how many, for which reasons, and the first few with their numbers."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, line: int, reason: str) -> None:
        """Count a malformed line."""
        self.count += 1
        known = reason in self.reasons or len(self.reasons) < _REASONS
        self.reasons[reason if known else _OTHER] += 1
        if len(self.first) < SHOWN:
            self.first.append((line, reason))


@dataclass(frozen=True, slots=True)
class FilePart:
    """Reports of one piece of a file.

    Attributes:
        packed: shape (n, ceil(k/8)).
        cohorts: shape (n,), each from 0 to m-1.
        lines: lines (rows in Parquet) in the piece; the next piece continues the numbers.
        wrong: its malformed lines, numbered from 1 within the piece.
    """

    packed: ByteArray
    cohorts: IntArray
    lines: int
    wrong: MalformedLines


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A piece of a file, read but not yet parsed; `run` may be called in another thread."""

    size: int
    run: Callable[[], FilePart]


class PackedReports:
    """Reports collected one at a time: the slow path."""

    __slots__ = ("_cohorts", "_packed", "params")

    def __init__(self, params: Params) -> None:
        self.params = params
        self._cohorts: list[int] = []
        self._packed: list[bytes] = []

    def add(self, cohort: int, bits: int) -> None:
        """Keep one report."""
        self._cohorts.append(cohort)
        self._packed.append(bits.to_bytes((self.params.k + 7) // 8, "little"))

    def arrays(self) -> tuple[ByteArray, IntArray]:
        """What `FilePart` holds."""
        packed = np.frombuffer(b"".join(self._packed), np.uint8)
        return packed.reshape(-1, (self.params.k + 7) // 8), np.array(self._cohorts, np.int64)


def bits_from(text: str, k: int) -> int:
    """The bits of a report written as text, bit k-1 first."""
    if len(text) != k:
        raise NotAReport(wrong_length(len(text), k))
    if text.strip("01"):  # cheaper than a set
        raise NotAReport(WRONG_BITS)
    return int(text, 2)


def cohort_from(number: int, m: int) -> int:
    """The cohort, or NotAReport if it is out of range."""
    if not 0 <= number < m:
        raise NotAReport(wrong_cohort(m))
    return number


WRONG_BITS = "the bits are not all 0 or 1"
NO_COHORT = "the cohort is not a whole number"


def wrong_length(found: int, k: int) -> str:
    """The reason for a report with another number of bits."""
    return f"the report has {found} bits, the params have k = {k} (params of another collection?)"


def wrong_cohort(m: int) -> str:
    """The reason for a cohort that is out of range."""
    return f"the cohort is not from 0 to {m - 1} (params of another collection?)"
