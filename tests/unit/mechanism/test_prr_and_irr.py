"""PRR and IRR, exhaustively: all entropy, all filters, against the channel of Lemma 1."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from rappor import Encoder, EntropyError, Params
from rappor.mechanism import channel, expected_ones
from rappor.mechanism.channel import ones_variance
from rappor.mechanism.irr import instantaneous_response
from rappor.mechanism.prr import flip_probability, permanent_response
from rappor.testing import ScriptedEntropy, SeededEntropy

K = 2


def irr_law(params: Params, permanent: int) -> dict[int, Fraction]:
    """The exact law of S given B', from every possible string of entropy of the short path."""
    digits = max(Fraction(params.p).denominator, Fraction(params.q).denominator).bit_length() - 1
    law = Counter()
    for words in product(range(1 << params.k), repeat=digits):
        respond = instantaneous_response(params, ScriptedEntropy(bytes(words)))
        law[respond(permanent)] += Fraction(1, (1 << params.k) ** digits)
    return law


@pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.75), (0.25, 0.75), (0.0, 0.5), (0.125, 0.25), (0.75, 0.875), (0.375, 0.5)]
)
@pytest.mark.parametrize("permanent", range(1 << K))
def test_irr_is_exact_over_all_entropy(p, q, permanent):
    params = Params(K, 1, 1, 0.5, p, q)
    law = irr_law(params, permanent)
    for report in range(1 << K):
        expected = Fraction(1)
        for bit in range(K):
            one = Fraction(q if permanent >> bit & 1 else p)
            expected *= one if report >> bit & 1 else 1 - one
        assert law.get(report, 0) == expected


def test_irr_with_q_one_keeps_ones_and_with_p_zero_keeps_zeros():
    exact = instantaneous_response(Params(16, 2, 1, 0.5, 0.0, 1.0), SeededEntropy(1))
    assert all(exact(bits) == bits for bits in range(0, 1 << 16, 97))
    ones = instantaneous_response(Params(16, 2, 1, 0.5, 0.3, 1.0), SeededEntropy(1))
    assert all(ones(0xF0F0) & 0xF0F0 == 0xF0F0 for _ in range(100))
    zeros = instantaneous_response(Params(16, 2, 1, 0.5, 0.0, 0.3), SeededEntropy(1))
    assert all(zeros(0xF0F0) & 0x0F0F == 0 for _ in range(100))


@pytest.mark.parametrize("k", [1, 8, 9, 128, 1000])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.75), (0.0625, 0.9375), (0.0, 0.5)])
def test_irr_draws_the_same_amount_for_every_value(k, p, q):
    asked = []

    def counting(count: int) -> bytes:
        asked.append(count)
        return SeededEntropy(len(asked))(count)

    respond = instantaneous_response(Params(k, 1, 1, 0.5, p, q), counting)
    for permanent in (0, 1, (1 << k) - 1):
        respond(permanent)
    assert len(set(asked)) == 1


def test_the_general_irr_reads_the_same_words_whatever_the_value():
    params = Params(128, 2, 1, 0.5, 0.1234567, 0.8734234)
    read = []
    for permanent in (0, 1, (1 << 128) - 1, 0xDEADBEEF):
        asked = []
        source = SeededEntropy(5)
        instantaneous_response(params, lambda n, a=asked, s=source: a.append(n) or s(n))(permanent)
        read.append(asked)
    assert all(each == read[0] for each in read)


def test_prr_flips_bits_whatever_they_are():
    params = Params(128, 2, 1, 0.3, 0.5, 0.75)
    respond = permanent_response(params, bytes(64))
    flips = respond(0, b"value")
    for signal in (1, 1 << 127, (1 << 128) - 1, 0xABCDEF):
        assert respond(signal, b"value") == signal ^ flips


def test_prr_is_a_function_of_key_and_memo():
    params = Params(64, 2, 1, 0.5, 0.5, 0.75)
    one = permanent_response(params, b"k" * 64)
    again = permanent_response(params, b"k" * 64)
    other = permanent_response(params, b"l" * 64)
    assert one(0, b"a") == again(0, b"a")
    assert len({one(0, b"a"), one(0, b"b"), other(0, b"a")}) == 3


def test_prr_without_f_is_the_identity():
    respond = permanent_response(Params(64, 2, 1, 0.0, 0.5, 0.75), bytes(64))
    assert all(respond(signal, b"x") == signal for signal in range(0, 1 << 20, 9999))


@pytest.mark.parametrize("f", [0.5, 0.75, 0.25, 0.125, 0.1, 0.2001, 1e-9, 1 - 2**-53])
def test_flip_probability_is_exactly_half_of_f(f):
    assert flip_probability(Params(8, 1, 1, f, 0.5, 0.75)) == Fraction(f) / 2


def test_lemma_1_is_the_composition_of_both_steps():
    for f, p, q in [(0.5, 0.5, 0.75), (0.75, 0.5, 0.75), (0.1, 0.2, 0.9), (0.0, 0.25, 0.5)]:
        params = Params(8, 1, 1, f, p, q)
        a, low, high = Fraction(f) / 2, Fraction(p), Fraction(q)
        assert channel(params).p_star == (1 - a) * low + a * high
        assert channel(params).q_star == (1 - a) * high + a * low


def test_the_published_report_has_the_expected_number_of_ones():
    assert expected_ones(Params.preset("life-of-a-report"), 4) == Fraction(289, 2)


@pytest.mark.parametrize("signal", [0b0000, 0b0110, 0b1111])
def test_mean_and_variance_of_the_ones_are_those_over_every_report(signal):
    params = Params(4, 2, 1, 0.5, 0.25, 0.75)
    p_star, q_star = channel(params)
    moments = [Fraction(0)] * 3
    for report in range(16):
        chance = Fraction(1)
        for bit in range(4):
            one = q_star if signal >> bit & 1 else p_star
            chance *= one if report >> bit & 1 else 1 - one
        for power in range(3):
            moments[power] += chance * report.bit_count() ** power
    assert moments[0] == 1
    assert moments[1] == expected_ones(params, signal.bit_count())
    assert moments[2] - moments[1] ** 2 == ones_variance(params, signal.bit_count())


class NoEntropy:
    def __call__(self, count: int, /) -> bytes:
        raise OSError("no entropy today")


@pytest.mark.parametrize("p", [0.5, 0.1])
def test_without_entropy_nothing_is_reported(p):
    params = Params(16, 2, 1, 0.5, p, 0.75)
    encoder = Encoder(params, secret=bytes(32), collection="c", entropy=NoEntropy())
    for act in (lambda: encoder.encode("v"), encoder.encode_null, lambda: encoder.trace("v")):
        with pytest.raises(EntropyError):
            act()
