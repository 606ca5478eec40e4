"""Exact coins for arrays: 64 lanes a word, each 1 with exactly the probability of a float (§2).

The same as `rappor.mechanism.coin`, for millions of reports. A uniform number U in [0, 1) is drawn
for every lane, one binary digit at a time (a 1 in a word is the digit 0 of U), and compared with
all binary digits of the probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from rappor.mechanism.coin import binary_digits
from rappor.mechanism.prr import flip_probability
from rappor.params import Params

Words = NDArray[np.uint64]
Read = Callable[[int], Words]  # a number of words -> fresh random words
Digit = bool | Words  # one digit for all lanes, or one for each lane
Digits = Sequence[Digit]

SHORT = 8  # up to this many digits, every digit is drawn for every lane
DENSE = 10  # after this many digits, 1 word in 16 has an undecided lane; others are dropped
_AGAIN = 4  # digits between two rounds of dropping decided words


def reader(generator: np.random.Generator) -> Read:
    """A source of random words from a generator."""
    highest = 2**64 - 1
    return lambda number: generator.integers(0, highest, number, np.uint64, endpoint=True)


def below(digits: Digits, words: int, read: Read) -> Words:
    """The lanes whose U is below the probability with these binary digits, shape (words,).

    Args:
        digits: the binary digits after the point, first to last; each for all lanes, or an array
            (words,) with a bit for each lane.
        words: how many words to make.
        read: the source of random words.
    """
    if len(digits) <= SHORT:
        return _from_the_last(digits, words, read)
    ones = np.zeros(words, np.uint64)
    undecided = np.full(words, 2**64 - 1, np.uint64)
    for digit in digits[:DENSE]:
        _compare(digit, read(words), ones, undecided)
    places = np.flatnonzero(undecided)
    few, left = ones[places], undecided[places]
    for number, digit in enumerate(digits[DENSE:]):
        if number % _AGAIN == 0:
            ones[places] = few
            still = np.flatnonzero(left)
            places, few, left = places[still], few[still], left[still]
        if len(places) == 0:
            break
        own = digit[places] if isinstance(digit, np.ndarray) else digit
        _compare(own, read(len(places)), few, left)
    ones[places] = few
    return ones


def _from_the_last(digits: Digits, words: int, read: Read) -> Words:
    """From the last digit back: `word | outcome` for the digit 1, `word & outcome` for 0."""
    ones = np.zeros(words, np.uint64)
    for digit in reversed(digits):
        word = read(words)
        if isinstance(digit, np.ndarray):
            either = word | ones
            either &= digit
            ones &= word
            ones |= either
        elif digit:
            ones |= word
        else:
            ones &= word
    return ones


def _compare(digit: Digit, word: Words, ones: Words, undecided: Words) -> None:
    """Compare one digit: U's 0 with a 1 is below, U's 1 with a 0 is not, equal stays undecided."""
    if isinstance(digit, np.ndarray):
        ones |= undecided & word & digit
        word ^= digit
        undecided &= word
    elif digit:
        ones |= undecided & word
        undecided &= ~word
    else:
        undecided &= word


def flips(params: Params, words: int, read: Read) -> Words | None:
    """The bits that the permanent response flips, each with probability f/2; None if f = 0."""
    digits = binary_digits(flip_probability(params))
    return below(digits, words, read) if digits else None


def responses(params: Params, permanent: Words, read: Read) -> Words:
    """The instantaneous response: 1 with probability q if B' is 1, with p if it is 0."""
    _, p, q = params.exact
    low = binary_digits(p)
    if q == 1:
        return below(low, len(permanent), read) | permanent
    pairs = list(zip_longest(low, binary_digits(q), fillvalue=False))
    otherwise = ~permanent if any(in_p and not in_q for in_p, in_q in pairs) else permanent
    digits: list[Digit] = [
        in_p if in_p is in_q else permanent if in_q else otherwise for in_p, in_q in pairs
    ]
    return below(digits, len(permanent), read)
