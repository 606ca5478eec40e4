"""Dialects: how a string is placed onto bits. Named, frozen, never changed once released.

`rappor-v1` is this project's own; `google`, `google-java` and `chromium` are those of the clients
in the field. docs/protocol.md specifies all four.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import insort
from collections.abc import Callable

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.mechanism.cityhash import city_hash_64_with_seed
from rappor.params import MAX_H, Params

Place = Callable[[bytes], tuple[int, ...]]  # a value's h bit numbers, in hash order

_MASK = 0xFFFFFFFF
_TWEAK = 0x9E3779B9  # 2^32 / golden ratio
# Odd multipliers of well-tried 32-bit mixers: MurmurHash3's finaliser, then two primes of xxHash32.
_M1, _M2, _M3, _M4 = 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F, 0x9E3779B1
_first_words = struct.Struct(">4I").unpack_from
_value_hash = hashlib.sha256(b"rappor-v1 bloom\0")


def tweak(cohort: int, index: int) -> int:
    """The public 32-bit constant of hash function `index` in `cohort`, different for each pair."""
    return (cohort * MAX_H + index + 1) * _TWEAK & _MASK


def rappor_v1(cohort: int, params: Params) -> Place:
    """H distinct bits, uniform over all ordered choices (each position within 2^-32)."""
    steps = [(tweak(cohort, index), params.k - index) for index in range(params.h)]

    def place(value: bytes) -> tuple[int, ...]:
        state = _value_hash.copy()
        state.update(value)
        a, b, c, d = _first_words(state.digest())
        chosen: list[int] = []
        ordered: list[int] = []
        for x, free in steps:
            x = (x + a) * _M1 & _MASK
            x = ((x ^ x >> 15) + b) * _M2 & _MASK
            x = ((x ^ x >> 15) + c) * _M3 & _MASK
            x = ((x ^ x >> 15) + d) * _M4 & _MASK
            position = x * free >> 32  # uniform over the bits that are still free
            for earlier in ordered:
                if position >= earlier:
                    position += 1
            chosen.append(position)
            insort(ordered, position)
        return tuple(chosen)

    return place


def google(cohort: int, params: Params) -> Place:
    """google/rappor's Python, C++ and R: bytes of one MD5, two for each hash where k > 256."""
    k, hashes = params.k, range(params.h)

    def place(value: bytes) -> tuple[int, ...]:
        digest = _google_digest(value, cohort)
        if k <= 256:
            return tuple(digest[i] % k for i in hashes)
        return tuple((digest[2 * i] | digest[2 * i + 1] << 8) % k for i in hashes)

    return place


def google_java(cohort: int, params: Params) -> Place:
    """google/rappor's Java client: big-endian 16-bit words of one MD5."""
    k, hashes = params.k, range(params.h)

    def place(value: bytes) -> tuple[int, ...]:
        digest = _google_digest(value, cohort)
        return tuple((digest[2 * i] << 8 | digest[2 * i + 1]) % k for i in hashes)

    return place


def _google_digest(value: bytes, cohort: int) -> bytes:
    return hashlib.md5(cohort.to_bytes(4, "big") + value, usedforsecurity=False).digest()


def chromium(cohort: int, params: Params) -> Place:
    """Chromium's client: the low 32 bits of CityHash64WithSeed, one seed for each hash."""
    first = cohort % params.m * params.h
    k, seeds = params.k, range(first, first + params.h)

    def place(value: bytes) -> tuple[int, ...]:
        return tuple((city_hash_64_with_seed(value, seed) & _MASK) % k for seed in seeds)

    return place


DIALECTS: dict[str, Callable[[int, Params], Place]] = {
    "rappor-v1": rappor_v1,
    "google": google,
    "google-java": google_java,
    "chromium": chromium,
}


def make_place(dialect: str, cohort: int, params: Params) -> Place:
    """The placement function of a dialect; ParamsError where it is unknown or cannot serve h."""
    make = DIALECTS.get(dialect) if isinstance(dialect, str) else None
    if make is None:
        raise ParamsError(f"dialect must be one of {', '.join(DIALECTS)}; got {show(dialect)}")
    two_bytes = dialect == "google-java" or (dialect == "google" and params.k > 256)
    if two_bytes and params.h > 8:
        raise ParamsError(
            f"h must be at most 8 in dialect {dialect!r} with k = {params.k}, got h = {params.h}: "
            "it takes two of MD5's 16 bytes for each hash"
        )
    return make(cohort, params)
