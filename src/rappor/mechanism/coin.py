"""Exact coins, k at a time: each lane of an integer is 1 with exactly the stated probability.

A uniform number U in [0, 1) is drawn for every lane, binary digit by binary digit, one k-bit word
for one digit of all lanes (a word's 1 is the digit 0 of U). U is compared with the probability's
own binary digits, so the outcome is U < probability without any rounding. Which words are read
depends on the words alone, never on the value being reported.

The paper asks for exact sampling (§6, citing Mironov's attack on floating-point noise).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Read = Callable[[int], bytes]

SHORT = 4  # up to this many digits, all words are read at once and no early stop is looked for
_CHUNK_WORDS = 12  # words read at a time otherwise: 128 lanes need about 9 ...
_CHUNK_BYTES = 256  # ... but no more than this at once, where words are long


def binary_digits(probability: Fraction) -> tuple[bool, ...]:
    """The binary digits after the point of a dyadic rational in [0, 1).

    >>> binary_digits(Fraction(3, 4))
    (True, True)
    """
    numerator, denominator = probability.numerator, probability.denominator
    length = denominator.bit_length() - 1
    if denominator != 1 << length or not 0 <= probability < 1:
        raise ValueError(f"not a dyadic rational in [0, 1): {probability}")
    return tuple(bool(numerator >> place & 1) for place in reversed(range(length)))


def word_bytes(lanes: int) -> int:
    """Bytes that one word of `lanes` bits takes in a stream: whole bytes."""
    return (lanes + 7) // 8


class Coins:
    """`lanes` independent coins that show 1 with one exact probability."""

    __slots__ = (
        "_all",
        "_chunk_bytes",
        "_chunk_words",
        "_digits",
        "_shift",
        "_start",
        "short_bytes",
    )

    def __init__(self, probability: Fraction, lanes: int) -> None:
        """Prepare the digits of a dyadic probability in [0, 1]."""
        everything = (1 << lanes) - 1
        certain = probability == 1
        self._digits = () if certain else binary_digits(probability)
        self._start = everything if certain else 0
        self._all = everything
        size = word_bytes(lanes)
        self._shift = size * 8
        self._chunk_words = max(1, min(_CHUNK_WORDS, _CHUNK_BYTES // size))
        self._chunk_bytes = self._chunk_words * size
        # What a flip reads when that is a fixed number of bytes, else None.
        self.short_bytes = len(self._digits) * size if len(self._digits) <= SHORT else None

    def flip_short(self, words: int) -> int:
        """The outcome from all words at once, the first in the lowest bytes."""
        ones, undecided = self._start, self._all
        for digit in self._digits:
            hit = undecided & words
            if digit:
                ones |= hit
                undecided ^= hit
            else:
                undecided = hit
            words >>= self._shift
        return ones

    def flip(self, read: Read) -> int:
        """The outcome, reading words only until every lane is decided.

        The same stream gives the same outcome as `flip_short`.
        """
        ones, undecided = self._start, self._all
        words = left = 0
        shift = self._shift
        for digit in self._digits:
            if not left:
                words = int.from_bytes(read(self._chunk_bytes), "little")
                left = self._chunk_words
            hit = undecided & words
            words >>= shift
            left -= 1
            if digit:
                ones |= hit
                undecided ^= hit
            else:
                undecided = hit
            if not undecided:
                break
        return ones
