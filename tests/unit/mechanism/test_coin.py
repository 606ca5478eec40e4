"""Exact coins: every possible stream of random words, counted."""

from collections import Counter
from fractions import Fraction
from itertools import product, zip_longest

import pytest

from rappor.mechanism.coin import binary_digits, flip, flip_two, last_digit_first, word_bytes
from rappor.testing import ScriptedEntropy


def pairs_of(low: Fraction, high: Fraction):
    return tuple(zip_longest(binary_digits(low), binary_digits(high), fillvalue=False))


def short(digits, lanes, stream: bytes) -> int:
    """The fold that the short paths of PRR and IRR use."""
    words = int.from_bytes(stream, "little")
    outcome = 0
    for place, digit in last_digit_first(digits, lanes):
        outcome = words >> place | outcome if digit else words >> place & outcome
    return outcome & (1 << lanes) - 1


@pytest.mark.parametrize("numerator", range(16))
def test_every_stream_of_four_words_gives_exactly_the_probability(numerator):
    probability = Fraction(numerator, 16)
    digits = binary_digits(probability)
    outcomes = Counter()
    for words in product((0, 1), repeat=4):
        padded = bytes(words) + bytes(8)  # a batch is 12 words
        outcomes[flip(digits, 1, ScriptedEntropy(padded))] += 1
    assert Fraction(outcomes[1], 16) == probability


@pytest.mark.parametrize(("low", "high"), [(n, d) for n in range(8) for d in range(n + 1, 8)])
def test_every_stream_gives_both_probabilities_and_their_order(low, high):
    pairs = pairs_of(Fraction(low, 8), Fraction(high, 8))
    found = Counter()
    for words in product((0, 1), repeat=3):
        found[flip_two(pairs, 1, ScriptedEntropy(bytes(words)))] += 1
    assert Fraction(sum(n for (a, _), n in found.items() if a), 8) == Fraction(low, 8)
    assert Fraction(sum(n for (_, b), n in found.items() if b), 8) == Fraction(high, 8)
    assert found[1, 0] == 0  # below the lower threshold is below the higher one


@pytest.mark.parametrize("lanes", [1, 7, 8, 9, 64, 128, 1000])
@pytest.mark.parametrize("numerator", range(1, 16))
def test_the_short_and_the_general_path_agree_on_the_same_stream(lanes, numerator):
    digits = binary_digits(Fraction(numerator, 16))
    stream = bytes((i * 89 + numerator * 31 + lanes * 7 + i * i) % 256 for i in range(20_000))
    assert flip(digits, lanes, ScriptedEntropy(stream)) == short(digits, lanes, stream)


def test_lanes_use_their_own_bit_of_every_word():
    digits = binary_digits(Fraction(1, 4))
    for lane in range(9):
        word = (1 << lane).to_bytes(2, "little")
        assert flip(digits, 9, ScriptedEntropy(word * 12)) == 1 << lane


def test_a_tiny_probability_is_exact_to_the_last_digit():
    digits = binary_digits(Fraction(5e-324))
    assert (len(digits), digits[-1], sum(digits)) == (1074, True, 1)
    # U = 0.000... for 1074 digits is below it; a single 1 anywhere is not.
    assert flip(digits, 1, lambda count: b"\x01" * count) == 1
    assert flip(digits, 1, ScriptedEntropy(b"\x01" * 11 + b"\x00")) == 0


def test_a_late_decision_is_exact_for_two_thresholds():
    low, high = Fraction(5e-324), Fraction(2**-60)
    pairs = pairs_of(low, high)
    zeros = lambda count: b"\x01" * count  # noqa: E731 - every digit of U is 0
    assert flip_two(pairs, 1, zeros) == (1, 1)
    # U = 2^-60 exactly: not below q, not below p. U = 2^-61: below q only.
    for place, expected in ((60, (0, 0)), (61, (0, 1))):
        stream = b"\x01" * (place - 1) + b"\x00" + b"\x01" * 1100
        assert flip_two(pairs, 1, ScriptedEntropy(stream)) == expected


@pytest.mark.parametrize("lanes", [1, 8, 128, 1000])
def test_the_number_of_words_does_not_tell_when_lanes_were_decided(lanes):
    digits = binary_digits(Fraction(0.1))
    expected = (10 + lanes.bit_length()) * word_bytes(lanes)
    for fill in (b"\x00", b"\xaa"):  # decided at once, and late
        asked = []

        def read(count: int, fill=fill, asked=asked) -> bytes:
            asked.append(count)
            return (fill * word_bytes(lanes) + bytes(word_bytes(lanes))) * (count // 2) + fill

        flip(digits, lanes, lambda count, read=read: read(count)[:count])
        assert asked == [expected]


@pytest.mark.parametrize("bad", [Fraction(1, 3), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
def test_only_dyadic_rationals_below_one_have_digits(bad):
    with pytest.raises(ValueError, match="dyadic"):
        binary_digits(bad)


@pytest.mark.parametrize(("lanes", "size"), [(1, 1), (8, 1), (9, 2), (4096, 512)])
def test_words_take_whole_bytes(lanes, size):
    assert word_bytes(lanes) == size
