"""Array coins are exact: all outcomes counted for short probabilities, and the client's own code
on the same words for long ones."""

from fractions import Fraction

import numpy as np
import pytest

from rappor import Params
from rappor.mechanism.coin import binary_digits, flip, flip_two
from rappor.mechanism.irr import _threshold_digits
from rappor.simulate import coins

LANES = 64
ALL = 2**64 - 1


class Enumerated:
    """Words in which lane n of 2^digits lanes has U = n / 2^digits, the first digit first.

    When fewer words are asked for, only those with undecided lanes are left: `left` names them.
    """

    def __init__(self, digits: int, left: tuple[int, ...] = (), copies: int = 1) -> None:
        lanes = np.arange(2**digits, dtype=np.uint64)
        self.words = max(1, 2**digits // LANES)
        self.digits, self.left, self.next = digits, left, 0
        self.table = []
        for place in range(digits):
            zero = ((lanes >> np.uint64(digits - 1 - place)) & np.uint64(1)) == 0
            padded = np.zeros(self.words * LANES, bool)
            padded[: len(lanes)] = zero
            packed = np.packbits(padded, bitorder="little").view(np.uint64)
            self.table.append(np.tile(packed, copies))

    def __call__(self, number: int) -> np.ndarray:
        words = self.table[self.next]
        self.next += 1
        if number == len(words):
            return words.copy()
        assert number == len(self.left)
        return words[list(self.left)].copy()


def ones(words: np.ndarray) -> int:
    return int(np.bitwise_count(words).sum())


class Backwards(Enumerated):
    """The same, the last digit first: the order in which short probabilities read."""

    def __call__(self, number: int) -> np.ndarray:
        self.next += 1
        return self.table[self.digits - self.next].copy()


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 6, 8])
def test_short_probabilities_are_exact_over_all_outcomes(digits):
    whole = 2**digits
    for numerator in range(whole):
        exact = tuple(bool(numerator >> place & 1) for place in reversed(range(digits)))
        read = Backwards(digits)
        mask = ALL if whole >= LANES else (1 << whole) - 1
        found = coins.below(exact, read.words, read) & np.uint64(mask)
        assert ones(found) == numerator


@pytest.mark.parametrize("numerator", [1, 2, 1365, 2730, 2048, 3071, 4095])
def test_long_probabilities_are_exact_over_all_outcomes(numerator):
    """12 digits: after 10 of them, one word of 64 still has an undecided lane."""
    exact = tuple(bool(numerator >> place & 1) for place in reversed(range(12)))
    read = Enumerated(12, left=(numerator >> 6,))
    assert ones(coins.below(exact, read.words, read)) == numerator
    assert read.next == 12


def test_the_count_of_outcomes_tells_a_neighbouring_probability_apart():
    read = Enumerated(12, left=(1366 >> 6,))
    exact = tuple(bool(1366 >> place & 1) for place in reversed(range(12)))
    assert ones(coins.below(exact, read.words, read)) != 1365


@pytest.mark.parametrize(("p", "q"), [(1, 2), (0, 63), (13, 47), (31, 32)])
def test_each_lane_has_its_own_threshold_exactly(p, q):
    """6 digits, 64 lanes: one word of zeros in B', one of ones."""
    params = Params(64, 1, 1, 0.5, p / 64, q / 64)
    used = max(Fraction(p, 64).denominator, Fraction(q, 64).denominator).bit_length() - 1
    read = Backwards(used, copies=2)
    permanent = np.array([0, ALL], np.uint64)
    found = coins.responses(params, permanent, read)
    assert [ones(found[:1]), ones(found[1:])] == [p * 2**used // 64, q * 2**used // 64]


def test_each_lane_has_its_own_long_threshold_exactly():
    p, q = 1365, 3001
    params = Params(64, 1, 1, 0.5, p / 4096, q / 4096)
    read = Enumerated(12, left=(p >> 6, 64 + (q >> 6)), copies=2)
    permanent = np.repeat(np.array([0, ALL], np.uint64), 64)
    found = coins.responses(params, permanent, read)
    assert [ones(found[:64]), ones(found[64:])] == [p, q]


class Same:
    """The same random words for the client's code and for the array's."""

    def __init__(self, seed: int) -> None:
        self._words = np.random.default_rng(seed).integers(0, ALL, 4000, np.uint64, endpoint=True)
        self._next = 0

    def array(self, number: int) -> np.ndarray:
        start, self._next = self._next, self._next + number
        return self._words[start : self._next].copy()

    def client(self, size: int) -> bytes:
        return self.array(size // 8).tobytes()


FLOATS = [0.1, 0.3, 1 / 3, 0.45, 0.7654321, 5e-324, 1e-5, 1 - 2**-53, 0.2239]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("probability", FLOATS)
def test_long_coins_are_the_clients_own_on_the_same_words(probability, seed):
    digits = binary_digits(Fraction(probability))
    theirs = flip(digits, LANES, Same(seed).client)
    ours = coins.below(digits, 1, Same(seed).array)
    assert int(ours[0]) == theirs


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("p", "q"), [(0.1, 0.3), (0.2239, 0.5307), (1e-5, 1 - 2**-53)])
def test_instantaneous_responses_are_the_clients_own_on_the_same_words(p, q, seed):
    params = Params(LANES, 1, 1, 0.5, p, q)
    permanent = int(np.random.default_rng(seed).integers(0, ALL, dtype=np.uint64))
    below_p, below_q = flip_two(_threshold_digits(params), LANES, Same(seed).client)
    ours = coins.responses(params, np.array([permanent], np.uint64), Same(seed).array)
    assert int(ours[0]) == below_p | permanent & below_q


@pytest.mark.parametrize("probability", FLOATS)
def test_the_last_digit_of_a_float_decides(probability):
    """Lane 0 draws U = probability, which is not below it; lane 1 one last digit less, which is."""
    digits = binary_digits(Fraction(probability))
    less = Fraction(probability) - Fraction(1, 2 ** len(digits))
    lower = binary_digits(less) if less else ()
    lower = lower + (False,) * (len(digits) - len(lower))
    pairs = list(zip(digits, lower, strict=True))
    words = iter(np.uint64((not a) | (not b) << 1) for a, b in pairs)

    def read(number: int) -> np.ndarray:
        assert number == 1
        return np.array([next(words)], np.uint64)

    found = int(coins.below(digits, 1, read)[0]) & 3
    assert found == 0b10


def test_a_coin_of_probability_0_reads_nothing():
    def read(number: int) -> np.ndarray:
        raise AssertionError("no words are needed")

    assert coins.below((), 3, read).tolist() == [0, 0, 0]
    assert coins.flips(Params(8, 1, 1, 0.0, 0.5, 0.75), 3, read) is None
    surely = coins.responses(Params(8, 1, 1, 0.5, 0.0, 1.0), np.array([5], np.uint64), read)
    assert surely.tolist() == [5]
