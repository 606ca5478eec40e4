"""Exact coins, k at a time: each lane of an integer is 1 with exactly the stated probability.

A uniform number U in [0, 1) is drawn for every lane, binary digit by binary digit: one k-bit word
holds one digit of all lanes (a 1 in the word is the digit 0 of U). U is compared with the binary
digits of the probability, so the outcome is exactly U < probability. The number of words and steps
is fixed, except for 1 draw in 1,024, where it depends on the words alone.

The paper asks for exact sampling (§6, citing Mironov's attack on floating-point noise).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Read = Callable[[int], bytes]
Digits = tuple[bool, ...]
Pairs = tuple[tuple[bool, bool], ...]

SHORT = 4  # up to this many digits, one pass over all words is fastest


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
    """The bytes of one word of `lanes` bits in a stream: whole bytes, little-endian."""
    return (lanes + 7) // 8


def first_words(digits: Digits | Pairs, lanes: int) -> int:
    """How many words are always read; more are needed in fewer than 1 of 1,024 draws.

    Each word leaves a lane undecided with probability 1/2. If reading stopped as soon as all lanes
    are decided, the time taken would reveal something about the words, which depend on the value.
    """
    return min(len(digits), 10 + lanes.bit_length())


def last_digit_first(digits: Digits, lanes: int) -> list[tuple[int, bool]]:
    """Each digit with the position (in bits) of its word, last digit first.

    Going from the last digit to the first, the outcome becomes `word | outcome` for the digit 1 and
    `word & outcome` for the digit 0: the first digit in which U differs decides.
    """
    shift = word_bytes(lanes) * 8
    return [(place * shift, digit) for place, digit in enumerate(digits)][::-1]


def flip(digits: Digits, lanes: int, read: Read) -> int:
    """The lanes whose U is below the threshold: one coin for each lane."""
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
    """The lanes whose U is below each of two thresholds; both are compared with the same U.

    `pairs` holds the digits of both thresholds, pair by pair.
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
