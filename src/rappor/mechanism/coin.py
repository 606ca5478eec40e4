"""Exact coins, k at a time: each lane of an integer is 1 with exactly the stated probability.

A uniform number U in [0, 1) is drawn for every lane, binary digit by binary digit, one k-bit word
for one digit of all lanes (a word's 1 is the digit 0 of U). U is compared with the probability's
own binary digits, so the outcome is U < probability without any rounding. How many words are read
and how many steps are taken is fixed, but for 1 draw in 1,024, where it depends on the words alone.

The paper asks for exact sampling (§6, citing Mironov's attack on floating-point noise).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Read = Callable[[int], bytes]
Digits = tuple[bool, ...]
Pairs = tuple[tuple[bool, bool], ...]

SHORT = 4  # up to this many digits, a fold over all words is the fastest way


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


def first_words(digits: Digits | Pairs, lanes: int) -> int:
    """How many words are always read, decided or not: more are needed less than 1 time in 1,024.

    A lane stays undecided with probability 1/2 a word. Stopping as soon as all are decided would
    let the time taken tell something of the words, which for a memo belong to the value.
    """
    return min(len(digits), 10 + lanes.bit_length())


def last_digit_first(digits: Digits, lanes: int) -> list[tuple[int, bool]]:
    """Each digit with its word's place (in bits) in the words read at once, the last one first.

    From the last digit back, the outcome is `word | outcome` for the digit 1 and `word & outcome`
    for the digit 0: the earliest digit where U differs decides.
    """
    shift = word_bytes(lanes) * 8
    return [(place * shift, digit) for place, digit in enumerate(digits)][::-1]


def flip(digits: Digits, lanes: int, read: Read) -> int:
    """Which lanes' U lie below one threshold: the outcome of one coin a lane."""
    always, size = first_words(digits, lanes), word_bytes(lanes)
    shift = size * 8
    ones, undecided = 0, (1 << lanes) - 1
    words = int.from_bytes(read(always * size), "little")
    for digit in digits[:always]:
        hit = undecided & words
        if digit:
            ones |= hit
            undecided ^= hit
        else:
            undecided = hit
        words >>= shift
    for digit in digits[always:]:
        if not undecided:
            break
        word = int.from_bytes(read(size), "little")
        ones |= undecided & word if digit else 0
        undecided &= ~word if digit else word
    return ones


def flip_two(pairs: Pairs, lanes: int, read: Read) -> tuple[int, int]:
    """Which lanes' U lie below each of two thresholds: one U a lane, compared with both.

    `pairs` has the digits of both, place by place.
    """
    always, size = first_words(pairs, lanes), word_bytes(lanes)
    shift = size * 8
    below_low = below_high = 0
    open_low = open_high = (1 << lanes) - 1
    words = int.from_bytes(read(always * size), "little")
    for in_low, in_high in pairs[:always]:
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
        words >>= shift
    for in_low, in_high in pairs[always:]:
        if not (open_low or open_high):
            break
        word = int.from_bytes(read(size), "little")
        below_low |= open_low & word if in_low else 0
        below_high |= open_high & word if in_high else 0
        open_low &= ~word if in_low else word
        open_high &= ~word if in_high else word
    return below_low, below_high
