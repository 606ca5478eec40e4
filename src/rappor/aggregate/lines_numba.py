"""Lines of reports to packed reports, as machine code: CSV and JSON.

It parses lines that look as expected. It only marks all others (odd spaces, quotes inside quotes,
other members, malformed lines), and the careful readers judge them.

All of it is in one file, because numba's cache notices when the file of a function changes, but not
when the file of a function that it calls does.
"""

from __future__ import annotations

import numpy as np

from rappor.aggregate._engine import compiled
from rappor.typing import ByteArray, IntArray

Int = int | np.int64

_NEWLINE, _RETURN, _QUOTE, _COMMA, _ZERO = 10, 13, 34, 44, 48
_SPACE, _TAB, _COLON, _OPEN, _CLOSE = 32, 9, 58, 123, 125
_COHORT: ByteArray = np.frombuffer(b'"cohort"', np.uint8)
_TEXT: tuple[ByteArray, ByteArray, ByteArray] = (
    np.frombuffer(b'"bits"', np.uint8),
    np.frombuffer(b'"rappor"', np.uint8),
    np.frombuffer(b'"irr"', np.uint8),
)


@compiled
def _bits(data: ByteArray, start: Int, k: Int, row: ByteArray) -> bool:
    """Pack k characters, bit k-1 first, into a row; False if one is neither 0 nor 1."""
    text = data[start : start + k]
    seen = 0
    for byte in range(row.size):
        value = 0
        for bit in range(min(8, k - 8 * byte)):
            digit = text[k - 1 - 8 * byte - bit] ^ _ZERO
            seen |= digit
            value |= digit << bit
        row[byte] = value & 255
    return seen <= 1


@compiled
def _number(data: ByteArray, start: Int) -> tuple[Int, Int]:
    """Up to nine digits: the number and where they end; -1 when there are none."""
    number, at = 0, start
    while at < data.size and at < start + 9 and _ZERO <= data[at] < _ZERO + 10:
        number = 10 * number + (data[at] - _ZERO)
        at += 1
    return (number if at > start else -1), at


@compiled
def _ends(data: ByteArray, at: Int) -> bool:
    """Whether a line ends here, with or without a carriage return."""
    if at + 1 < data.size and data[at] == _RETURN:
        at += 1
    return bool(at >= data.size or data[at] == _NEWLINE)


@compiled
def _line_end(data: ByteArray, at: Int) -> Int:
    """Where a line ends: at its newline, or with the data."""
    while at < data.size and data[at] != _NEWLINE:
        at += 1
    return at


@compiled
def _skip(data: ByteArray, at: Int, quoted: bool) -> Int:
    """The end of a field that is not read."""
    while at < data.size:
        byte = data[at]
        if byte in (_QUOTE, _NEWLINE, _RETURN) or (byte == _COMMA and not quoted):
            break
        at += 1
    return at


@compiled
def _csv_line(
    data: ByteArray, at: Int, layout: IntArray, k: Int, m: Int, row: ByteArray
) -> tuple[Int, Int]:
    """One line: its cohort (-1: for the careful reader) and a place at or before its end."""
    cohort: Int = -1
    columns, cohort_column, bits_column = layout[0], layout[1], layout[2]
    for column in range(columns):
        quoted = bool(at < data.size and data[at] == _QUOTE)
        if quoted:
            at += 1
        if column == bits_column:
            if at + k > data.size or not _bits(data, at, k, row):
                return -1, at
            at += k
        elif column == cohort_column:
            cohort, at = _number(data, at)
            if cohort < 0 or cohort >= m:
                return -1, at
        else:
            at = _skip(data, at, quoted)
        if quoted:
            if at >= data.size or data[at] != _QUOTE:
                return -1, at
            at += 1
        if column < columns - 1:
            if at >= data.size or data[at] != _COMMA:
                return -1, at
            at += 1
    return (cohort if _ends(data, at) else -1), at


@compiled
def _blank(data: ByteArray, at: Int) -> Int:
    """The next place that is not a space."""
    while at < data.size and (data[at] == _SPACE or data[at] == _TAB):
        at += 1
    return at


@compiled
def _sign(data: ByteArray, at: Int, sign: int) -> Int:
    """The place after a sign and the spaces around it; -1 if it is missing or `at` is -1."""
    if at < 0:
        return -1
    at = _blank(data, at)
    if at >= data.size or data[at] != sign:
        return -1
    return _blank(data, at + 1)


@compiled
def _word(data: ByteArray, at: Int, word: ByteArray) -> bool:
    """Whether a word stands here."""
    if at < 0 or at + word.size > data.size:
        return False
    others = 0
    for i in range(word.size):
        others += data[at + i] != word[i]
    return others == 0


@compiled
def _cohort_member(data: ByteArray, at: Int) -> tuple[Int, Int]:
    """The member "cohort": its number and the place after it; -1, -1 for anything else."""
    if not _word(data, at, _COHORT):
        return -1, -1
    at = _sign(data, at + _COHORT.size, _COLON)
    if at < 0:
        return -1, -1
    number, end = _number(data, at)
    if number < 0 or (data[at] == _ZERO and end > at + 1):  # JSON has no leading zeros
        return -1, -1
    return number, end


@compiled
def _bits_member(data: ByteArray, at: Int, k: int, row: ByteArray) -> Int:
    """The member with the bits: the place after it; -1 for anything else."""
    size = 0
    for name in _TEXT:
        if _word(data, at, name):
            size = name.size
    if size == 0:
        return -1
    at = _sign(data, at + size, _COLON)
    if at < 0 or at + k + 2 > data.size or data[at] != _QUOTE or data[at + 1 + k] != _QUOTE:
        return -1
    return at + k + 2 if _bits(data, at + 1, k, row) else -1


@compiled
def _json_line(data: ByteArray, at: Int, k: int, m: int, row: ByteArray) -> tuple[Int, Int]:
    """One line: its cohort (-1: for the careful reader) and a place at or before its end."""
    at = _sign(data, at, _OPEN)
    cohort, end = _cohort_member(data, at)
    if cohort >= 0:
        at = _bits_member(data, _sign(data, end, _COMMA), k, row)
    else:
        at = _sign(data, _bits_member(data, at, k, row), _COMMA)
        cohort, at = _cohort_member(data, at)
    at = _sign(data, at, _CLOSE)
    if at < 0 or cohort >= m or not _ends(data, at):
        return -1, 0
    return cohort, at


@compiled
def parse(
    layout: IntArray,
    data: ByteArray,
    start: Int,
    limits: tuple[int, int, int],
    packed: ByteArray,
    cohorts: IntArray,
    odd: IntArray,
) -> tuple[Int, Int, Int, Int]:
    """Parse lines until the data or the room for odd lines ends.

    Args:
        layout: columns, the cohort's column, the bits' column; columns are 0 for JSON.
        data: whole lines, the last one with or without its newline.
        start: where to begin.
        limits: k, m, and the largest number of characters in a line that is not odd.
        packed: receives the reports, shape (room for all of them, ceil(k/8)).
        cohorts: receives their cohorts.
        odd: receives line (from 0), start and end of each odd line, shape (room, 3).

    Returns:
        Where it stopped, lines seen, reports parsed, odd lines.
    """
    k, m, longest = limits
    at: Int = start
    lines = rows = odds = 0
    while at < data.size and odds < len(odd):
        if layout[0] == 0:
            cohort, end = _json_line(data, at, k, m, packed[rows])
        else:
            cohort, end = _csv_line(data, at, layout, k, m, packed[rows])
        end = _line_end(data, end if cohort >= 0 else at)
        if cohort >= 0 and end - at <= longest:
            cohorts[rows] = cohort
            rows += 1
        else:
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = lines, at, end
            odds += 1
        lines += 1
        at = end + 1
    return min(at, data.size), lines, rows, odds
