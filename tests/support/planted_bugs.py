"""Clients with one privacy bug each, for auditing the audit. Most were seen in the field.

Each is a `make(params, **shape)` like Encoder itself: a true encoder is made and one of its steps
replaced (`_signal`: value -> B and the memo input, `_permanent`: both -> B', `_instantaneous`:
B' -> S).
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rappor.mechanism import Encoder, Report, Trace, channel
from rappor.mechanism.entropy import KeyedStream
from rappor.mechanism.irr import instantaneous_response
from rappor.mechanism.prr import permanent_response
from rappor.params import Params
from support.audit import Auditable, MakeEncoder

BUGS: dict[str, tuple[MakeEncoder, int]] = {}  # name -> (make, clients needed)


def planted(clients: int = 2000) -> Callable[[MakeEncoder], MakeEncoder]:
    def register(make: MakeEncoder) -> MakeEncoder:
        BUGS[make.__name__] = (make, clients)
        return make

    return register


@planted()
def no_memo(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    encoder._permanent = lambda signal, _memo: permanent_response(params, os.urandom(64))(
        signal, b""
    )
    return encoder


@planted(8000)
def f_too_low_by_two_hundredths(params: Params, **shape: Any) -> Encoder:
    return _with_permanent_of(replace(params, f=params.f - 0.02), params, shape)


@planted(8000)
def f_too_high_by_two_hundredths(params: Params, **shape: Any) -> Encoder:
    return _with_permanent_of(replace(params, f=params.f + 0.02), params, shape)


@planted(20_000)
def f_truncated_to_sevenths_of_a_byte(params: Params, **shape: Any) -> Encoder:
    """google/rappor's threshold: rand128 < f * 128, so f = .1 becomes 13/128."""
    return _with_permanent_of(replace(params, f=-(-params.f * 128 // 1) / 128), params, shape)


@planted()
def p_and_q_swapped(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    true, everything = encoder._instantaneous, (1 << params.k) - 1
    encoder._instantaneous = lambda permanent: true(permanent ^ everything)
    return encoder


@planted(20_000)
def q_too_high_by_a_hundredth(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    encoder._instantaneous = instantaneous_response(
        replace(params, q=params.q + 0.01), shape["entropy"]
    )
    return encoder


def _unrandomised_bit(bit: int) -> MakeEncoder:
    def make(params: Params, **shape: Any) -> Auditable:
        encoder = Encoder(params, **shape)
        true, mask = encoder.encode, 1 << bit % params.k

        class Bare(_Wrapped):
            def encode(self, value: object) -> Report:
                cohort, bits = true(value)
                return Report(cohort, bits & ~mask | encoder._signal(value)[0] & mask)

        return Bare(encoder)

    return make


@planted()
def first_bit_not_randomised(params: Params, **shape: Any) -> Auditable:
    return _unrandomised_bit(0)(params, **shape)


@planted()
def last_bit_not_randomised(params: Params, **shape: Any) -> Auditable:
    return _unrandomised_bit(-1)(params, **shape)


@planted()
def one_sided_noise(params: Params, **shape: Any) -> Encoder:
    """pure-LDP's bug: a 1 is never cleared."""
    encoder = Encoder(params, **shape)
    true = encoder._permanent
    encoder._permanent = lambda signal, memo: true(signal, memo) | signal
    return encoder


@planted()
def no_second_randomization(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    encoder._instantaneous = lambda permanent: permanent
    return encoder


@planted()
def no_first_randomization(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    encoder._permanent = lambda signal, _memo: signal
    return encoder


@planted()
def reports_repeat_themselves(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    encoder._instantaneous = lru_cache(None)(encoder._instantaneous)
    return encoder


@planted()
def reports_repeat_after_a_restart(params: Params, **shape: Any) -> Encoder:
    """Instantaneous randomness from a stream that starts anew with each process."""
    return Encoder(params, **{**shape, "entropy": KeyedStream(shape["secret"]).reader(b"irr")})


@planted()
def secret_not_used(params: Params, **shape: Any) -> Encoder:
    return Encoder(params, **{**shape, "secret": bytes(32)})


@planted()
def value_not_in_the_memo(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    respond = permanent_response(params, shape["secret"])
    encoder._permanent = lambda signal, _memo: respond(signal, b"")
    return encoder


@planted()
def collection_not_in_the_memo(params: Params, **shape: Any) -> Encoder:
    return Encoder(params, **{**shape, "collection": "always the same"})


@planted()
def f_not_in_the_memo(params: Params, **shape: Any) -> Encoder:
    """Measured on the reference client: every bit where two such B' differ is a true bit."""
    encoder = Encoder(params, **shape)
    key = KeyedStream(shape["secret"]).reader(shape["collection"].encode())(64)
    encoder._permanent = permanent_response(params, key)
    return encoder


@planted()
def p_in_the_memo(params: Params, **shape: Any) -> Encoder:
    return Encoder(params, **{**shape, "collection": f"{shape['collection']} {params.p}"})


@planted()
def neighbouring_bits_share_a_coin(params: Params, **shape: Any) -> Encoder:
    encoder = Encoder(params, **shape)
    true, even = encoder._instantaneous, sum(1 << bit for bit in range(0, params.k, 2))

    def shared(permanent: int) -> int:
        zeros, ones = true(0) & even, true((1 << params.k) - 1) & even
        zeros, ones = zeros | zeros << 1, ones | ones << 1
        return zeros & ~permanent | ones & permanent

    encoder._instantaneous = shared
    return encoder


@planted()
def bits_above_the_signal_left_out(params: Params, **shape: Any) -> Encoder:
    """An early exit on the value: nothing is drawn above its highest bit."""
    encoder = Encoder(params, **shape)
    true = encoder._permanent
    encoder._permanent = lambda signal, memo: true(signal, memo) & (1 << signal.bit_length()) - 1
    return encoder


@planted()
def cohort_drawn_for_each_report(params: Params, **shape: Any) -> Auditable:
    encoder = Encoder(params, **shape)

    class Wandering(_Wrapped):
        def encode(self, value: object) -> Report:
            return Report(os.urandom(1)[0] % params.m, encoder.encode(value).bits)

    return Wandering(encoder)


@planted()
def single_step_with_the_joint_rates(params: Params, **shape: Any) -> Encoder:
    """Right p* and q*, but drawn in one step: averaging many reports reveals the value."""
    encoder = Encoder(params, **shape)
    p_star, q_star = map(float, channel(params))
    encoder._permanent = lambda signal, _memo: signal
    joint = replace(params, f=0.0, p=p_star, q=q_star)
    encoder._instantaneous = instantaneous_response(joint, shape["entropy"])
    return encoder


class _Wrapped:
    """An encoder whose `encode` a subclass replaces."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def cohort(self) -> int:
        return self._encoder.cohort

    def encode(self, value: object) -> Report:
        return self._encoder.encode(value)

    def trace(self, value: object) -> Trace:
        return self._encoder.trace(value)


def _with_permanent_of(other: Params, params: Params, shape: dict[str, Any]) -> Encoder:
    """Reports as `params` say, but B' drawn with the f of `other`."""
    encoder = Encoder(params, **shape)
    encoder._permanent = Encoder(other, **shape)._permanent
    return encoder
