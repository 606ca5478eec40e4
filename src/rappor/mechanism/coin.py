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
Digits = tuple[bool, ...]

SHORT = 4  # up to this many digits, all words are read at once and no early stop is looked for
_CHUNK_WORDS = 12  # words read at a time otherwise: 128 lanes need 8.3 on average ...
_CHUNK_BYTES = 256  # ... but no more than this at once, where words are long


def binary_digits(probability: Fraction) -> Digits:
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
    """Bytes that one word of `lanes` bits takes in a stream: whole bytes, little-endian."""
    return (lanes + 7) // 8


def batch_words(lanes: int) -> int:
    """How many words to read at a time when it is not known how many will be needed."""
    return max(1, min(_CHUNK_WORDS, _CHUNK_BYTES // word_bytes(lanes)))


def last_digit_first(digits: Digits, lanes: int) -> list[tuple[int, bool]]:
    """Each digit with its word's place (in bits) in the words read at once, the last one first.

    From the last digit back, the outcome is `word | outcome` for the digit 1 and `word & outcome`
    for the digit 0: the earliest digit where U differs decides.
    """
    shift = word_bytes(lanes) * 8
    return [(place * shift, digit) for place, digit in enumerate(digits)][::-1]


def flip(digits: Digits, lanes: int, read: Read) -> int:
    """Which lanes' U lie below one threshold, reading words only until all are decided."""
    shift, batch = word_bytes(lanes) * 8, batch_words(lanes)
    ones, undecided = 0, (1 << lanes) - 1
    words = left = 0
    for digit in digits:
        if not left:
            words = int.from_bytes(read(batch * shift // 8), "little")
            left = batch
        hit = undecided & words
        if digit:
            ones |= hit
            undecided ^= hit
        else:
            undecided = hit
        if not undecided:
            break
        words >>= shift
        left -= 1
    return ones


def flip_two(low: Digits, high: Digits, lanes: int, read: Read) -> tuple[int, int]:
    """Which lanes' U lie below each of two thresholds: one U a lane, compared with both.

    Both have equally many digits. Once their digits have differed, a lane is undecided for one of
    them at most.
    """
    shift, batch = word_bytes(lanes) * 8, batch_words(lanes)
    below_low = below_high = 0
    open_low = open_high = (1 << lanes) - 1
    words = left = 0
    for in_low, in_high in zip(low, high, strict=True):
        if not left:
            words = int.from_bytes(read(batch * shift // 8), "little")
            left = batch
        hit = open_low & words
        if in_low:
            below_low |= hit
            open_low ^= hit
        else:
            open_low = hit
        hit = open_high & words
        if in_high:
            below_high |= hit
            open_high ^= hit
        else:
            open_high = hit
        if not open_low and not open_high:
            break
        words >>= shift
        left -= 1
    return below_low, below_high
