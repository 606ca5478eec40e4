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
from support.tuple_strategies import tuple_views, tuples

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
@given(st.data(), st.integers(1, 64))
def test_the_encoding_of_a_view_is_injective(data, m):
    """Two tuples have the same bytes exactly if all fields of the view have the same value."""
    views = data.draw(tuple_views(m))
    one, other = data.draw(tuples(views)), data.draw(tuples(views))
    mixed = {name: data.draw(st.sampled_from([one[name], other[name]])) for name in one}
    for number, view in enumerate(views.views):
        parts = [
            [field.part(value[field.name]) for field in views.fields if field.name in view.fields]
            for value in (one, other, mixed)
        ]
        encoded = [views.encode(number, value) for value in (one, other, mixed)]
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert (encoded[first] == encoded[second]) == (parts[first] == parts[second])


@given(st.data(), st.integers(1, 1024))
def test_every_view_has_cohorts_close_to_its_share(data, m):
    views = data.draw(tuple_views(m))
    cohorts = views.cohorts(m)
    assert sum(cohorts) == m == len(views.table(m))
    assert min(cohorts) >= 1
    for view, number in zip(views.views, cohorts, strict=True):
        if min(other.share * m for other in views.views) >= 1:  # no view needs the minimum
            assert abs(number - view.share * m) < 1
    assert list(views.table(m)) == sorted(views.table(m))


@pytest.mark.slow
@given(st.data(), secrets, st.integers(1, 64))
def test_a_change_outside_the_view_keeps_b_prime_and_the_memo(data, secret, m):
    views = data.draw(tuple_views(m))
    params = Params(64, 2, m, 0.5, 0.25, 0.75)
    encoder = Encoder(
        params, secret=secret, collection="c", kind="tuple", fields=views.fields, views=views.views
    )
    one, other = data.draw(tuples(views)), data.draw(tuples(views))
    outside = {name: (one if name in encoder.view else other)[name] for name in one}
    first, second = encoder.trace(one), encoder.trace(outside)
    assert (first.signal, first.permanent) == (second.signal, second.permanent)


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
