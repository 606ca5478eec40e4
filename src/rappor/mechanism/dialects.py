"""Dialects: how a string is placed onto bits. A released dialect never changes.

`rappor-v1` is the dialect of this project; `google`, `google-java` and `chromium` are those of
existing clients. docs/protocol.md specifies all four.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import lru_cache

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.mechanism.cityhash import city_hash_64_with_seed
from rappor.params import Params

Place = Callable[[bytes], list[int]]  # a value's h bit numbers, in hash order

_MASK = 0xFFFFFFFF
_three_words = struct.Struct(">3I").unpack_from
_value_hash = hashlib.blake2s(b"rappor-v1 value\0")


@lru_cache(maxsize=1 << 14)
def hash_constants(cohort: int, index: int) -> tuple[int, int, int]:
    """The three public 32-bit constants of hash function `index` in `cohort`."""
    label = b"rappor-v1 hash\0" + cohort.to_bytes(4, "big") + index.to_bytes(4, "big")
    a, b, c = _three_words(hashlib.blake2s(label).digest())
    return a, b, c


def rappor_v1(cohort: int, params: Params) -> Place:
    """Place a value on h distinct bits, each uniform over those still free (within 2^-32).

    Three words of the value's hash are mixed with the constants of each hash function. The last one
    is only added, which makes the sum exactly uniform over 32 bits.
    """
    steps = [(*hash_constants(cohort, index), params.k - index) for index in range(params.h)]

    def place(value: bytes) -> list[int]:
        state = _value_hash.copy()
        state.update(value)
        a, b, c = _three_words(state.digest())
        chosen: list[int] = []
        for ka, kb, kc, free in steps:
            mixed = (a ^ ka) * (b ^ kb) + (c ^ kc) & 0xFFFFFFFF
            position = mixed * free >> 32  # uniform over the bits that are still free
            for earlier in sorted(chosen) if len(chosen) > 1 else chosen:
                if position >= earlier:
                    position += 1
            chosen.append(position)
        return chosen

    return place


def google(cohort: int, params: Params) -> Place:
    """google/rappor's Python, C++ and R: bytes of one MD5, two for each hash where k > 256."""
    k, hashes = params.k, range(params.h)

    def place(value: bytes) -> list[int]:
        digest = _google_digest(value, cohort)
        if k <= 256:
            return [digest[i] % k for i in hashes]
        return [(digest[2 * i] | digest[2 * i + 1] << 8) % k for i in hashes]

    return place


def google_java(cohort: int, params: Params) -> Place:
    """google/rappor's Java client: big-endian 16-bit words of one MD5."""
    k, hashes = params.k, range(params.h)

    def place(value: bytes) -> list[int]:
        digest = _google_digest(value, cohort)
        return [(digest[2 * i] << 8 | digest[2 * i + 1]) % k for i in hashes]

    return place


def _google_digest(value: bytes, cohort: int) -> bytes:
    return hashlib.md5(cohort.to_bytes(4, "big") + value, usedforsecurity=False).digest()


def chromium(cohort: int, params: Params) -> Place:
    """Chromium's client: the low 32 bits of CityHash64WithSeed, one seed for each hash."""
    first = cohort % params.m * params.h
    k, seeds = params.k, range(first, first + params.h)

    def place(value: bytes) -> list[int]:
        return [(city_hash_64_with_seed(value, seed) & _MASK) % k for seed in seeds]

    return place


DIALECTS: dict[str, Callable[[int, Params], Place]] = {
    "rappor-v1": rappor_v1,
    "google": google,
    "google-java": google_java,
    "chromium": chromium,
}


def make_place(dialect: str, cohort: int, params: Params) -> Place:
    """The placement function of a dialect; ParamsError if it is unknown, or h is too large."""
    make = DIALECTS.get(dialect) if type(dialect) is str else None
    if make is None:
        raise ParamsError(f"dialect must be one of {', '.join(DIALECTS)}; got {show(dialect)}")
    two_bytes = dialect == "google-java" or (dialect == "google" and params.k > 256)
    if two_bytes and params.h > 8:
        raise ParamsError(
            f"h must be at most 8 in dialect {dialect!r} with k = {params.k}, got h = {params.h}: "
            "it takes two of MD5's 16 bytes for each hash"
        )
    return make(cohort, params)
