"""Any parameters, any value: what holds for every client."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappor import Encoder, bloom_positions
from rappor.mechanism import DIALECTS, filter_bits
from rappor.mechanism.entropy import derive_key
from rappor.mechanism.prr import flip_probability, permanent_response
from rappor.params import Params
from rappor.testing import SeededEntropy
from support.params_strategies import valid_params

values = st.one_of(st.text(), st.binary()).filter(
    lambda value: isinstance(value, bytes) or value.isascii() or _is_text(value)
)
secrets = st.binary(min_size=1, max_size=80)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def for_strings(params: Params) -> bool:
    return params.h < params.k


@pytest.mark.slow
@given(valid_params().filter(for_strings), values, st.data())
def test_rappor_v1_places_h_distinct_bits(params, value, data):
    cohort = data.draw(st.integers(0, params.m - 1))
    positions = bloom_positions(value, cohort, params)
    assert len(set(positions)) == params.h
    assert all(0 <= position < params.k for position in positions)


@pytest.mark.slow
@given(valid_params().filter(for_strings), values, st.sampled_from(sorted(DIALECTS)), st.data())
def test_every_dialect_places_h_bits_within_k(params, value, dialect, data):
    if dialect.startswith("google") and params.h > 8:
        return
    cohort = data.draw(st.integers(0, params.m - 1))
    positions = bloom_positions(value, cohort, params, dialect)
    assert len(positions) == params.h
    assert all(0 <= position < params.k for position in positions)


@pytest.mark.slow
@given(valid_params().filter(for_strings), values, secrets)
def test_a_client_has_one_memo_and_reports_within_its_bits(params, value, secret):
    made = [
        Encoder(params, secret=secret, collection="c", entropy=SeededEntropy(n)) for n in range(2)
    ]
    first, again = (encoder.trace(value) for encoder in made)
    assert (first.signal, first.permanent) == (again.signal, again.permanent)
    assert first.signal == filter_bits(bloom_positions(value, made[0].cohort, params))
    report = made[0].encode(value)
    assert 0 <= report.bits < 1 << params.k
    assert report.cohort == made[0].cohort
    if (params.p, params.q) == (0, 1):
        assert report.bits == first.permanent
    if params.f == 0:
        assert first.permanent == first.signal


@pytest.mark.slow
@given(valid_params(), secrets, st.binary(max_size=40))
def test_the_permanent_response_follows_the_protocol(params, secret, memo):
    """B' once more, digit by digit, as docs/protocol.md says it."""
    key = derive_key(secret, b"test")
    flip = flip_probability(params)
    digits = flip.denominator.bit_length() - 1
    size = (params.k + 7) // 8
    stream = b"".join(
        hashlib.blake2b(block.to_bytes(4, "big") + memo, key=key).digest()
        for block in range(-(-min(digits, 60) * size // 64) + 1)
    )
    flips = 0
    for bit in range(params.k):
        number = sum(
            (1 - (stream[j * size + bit // 8] >> bit % 8 & 1)) << (digits - 1 - j)
            for j in range(min(digits, 60))
        )
        flips |= (number < flip.numerator) << bit
    assert permanent_response(params, key)(0, memo) == flips
