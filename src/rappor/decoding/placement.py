"""Where candidates' bits are, for all of them at once (§2, step 1).

Bit for bit what `rappor.mechanism.dialects` does for one value: each dialect is written here a
second time, for arrays, and tests hold the two together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rappor.mechanism.bloom import check_string_params
from rappor.mechanism.cityhash import _K2, _MULTIPLIER, _city_hash_64
from rappor.mechanism.dialects import _value_hash, hash_constants, make_place
from rappor.params import Params

Positions = NDArray[np.uint16]
Progress = Callable[[int], object]  # told how many placements (one value, one cohort) are new

# Values at a time: their scratch arrays stay in the processor's cache, and memory stays small.
CHUNK = 1 << 14

_KEPT_BITS = np.uint64(47)


def place_all(
    values: Sequence[bytes], params: Params, dialect: str, progress: Progress | None = None
) -> Positions:
    """The bits of every value in every cohort, in hash order, duplicates kept.

    Args:
        values: M values as bytes.
        params: k, h and m are used.
        dialect: one of `rappor.mechanism.DIALECTS`.
        progress: called now and then with the placements made since the last call; they add up to
            M * m.

    Returns:
        Shape (m * h, M), C-contiguous; row j * h + l is the bit of hash l in cohort j.

    >>> place_all([b"V_1", b"V_2"], Params(128, 2, 16, 0.5, 0.5, 0.75), "google")[:4].tolist()
    [[56, 120], [7, 85], [87, 125], [28, 65]]
    """
    check_string_params(params)
    make_place(dialect, 0, params)  # refuses a dialect that is unknown or cannot serve h
    placed = np.empty((params.m * params.h, len(values)), np.uint16)
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        out = placed[:, start : start + len(chunk)]
        for cohorts in _PLACERS[dialect](chunk, params, out):
            if progress is not None:
                progress(cohorts * len(chunk))
    return placed


def _rappor_v1(values: Sequence[bytes], params: Params, out: Positions) -> Iterator[int]:
    """One BLAKE2s for each value, then 32-bit arithmetic; h distinct bits."""
    digests = bytearray()
    for value in values:
        state = _value_hash.copy()
        state.update(value)
        digests += state.digest()[:12]
    a, b, c = np.frombuffer(digests, ">u4").reshape(-1, 3).astype(np.uint32).T.copy()
    mixed, other = np.empty_like(a), np.empty_like(a)
    wide = np.empty(len(a), np.uint64)
    for cohort in range(params.m):
        ordered: list[Positions] = []  # the bits taken so far, ascending for each value
        for index in range(params.h):
            ka, kb, kc = (np.uint32(word) for word in hash_constants(cohort, index))
            np.bitwise_xor(a, ka, out=mixed)
            np.bitwise_xor(b, kb, out=other)
            mixed *= other
            np.bitwise_xor(c, kc, out=other)
            mixed += other
            wide[:] = mixed
            wide *= np.uint64(params.k - index)
            wide >>= np.uint64(32)
            position = wide.astype(np.uint16)
            for earlier in ordered:
                position += position >= earlier
            out[cohort * params.h + index] = position
            if index + 1 < params.h:
                ordered = _inserted(ordered, position)
    yield params.m


def _inserted(ordered: list[Positions], position: Positions) -> list[Positions]:
    """Ascending rows with one more, sorted in by compare and exchange."""
    grown = []
    for row in ordered:
        grown.append(np.minimum(row, position))
        position = np.maximum(row, position)
    return [*grown, position]


def _google(values: Sequence[bytes], params: Params, out: Positions) -> Iterator[int]:
    """Bytes of one MD5 for each value and cohort, two for each hash where k > 256."""
    words = "u1" if params.k <= 256 else "<u2"
    return _md5_words(values, params, out, words)


def _google_java(values: Sequence[bytes], params: Params, out: Positions) -> Iterator[int]:
    """Big-endian 16-bit words of one MD5 for each value and cohort."""
    return _md5_words(values, params, out, ">u2")


def _md5_words(
    values: Sequence[bytes], params: Params, out: Positions, words: str
) -> Iterator[int]:
    h, k = params.h, np.uint16(params.k)
    for cohort in range(params.m):
        copy = hashlib.md5(cohort.to_bytes(4, "big"), usedforsecurity=False).copy
        digests = bytearray()
        for value in values:
            state = copy()
            state.update(value)
            digests += state.digest()
        found = np.frombuffer(digests, words).reshape(len(values), -1)[:, :h]
        np.remainder(found.T.astype(np.uint16), k, out=out[cohort * h : cohort * h + h])
        yield 1


def _chromium(values: Sequence[bytes], params: Params, out: Positions) -> Iterator[int]:
    """The low 32 bits of CityHash64WithSeed: the value is hashed once, then mixed with each seed.

    Seeds run through the cohorts: hash l of cohort j has the seed j * h + l, which is its row.
    """
    hashes = [(_city_hash_64(value) - _K2) % 2**64 for value in values]
    low = np.array(hashes, np.uint64)
    multiplier, k = np.uint64(_MULTIPLIER), np.uint64(params.k)
    for seed, row in enumerate(out):
        high = np.uint64(seed)
        mixed = _shift_mix((low ^ high) * multiplier)
        mixed = _shift_mix((mixed ^ high) * multiplier) * multiplier
        row[:] = (mixed & np.uint64(0xFFFFFFFF)) % k
    yield params.m


def _shift_mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return words ^ (words >> _KEPT_BITS)


_PLACERS: dict[str, Callable[[Sequence[bytes], Params, Positions], Iterator[int]]] = {
    "rappor-v1": _rappor_v1,
    "google": _google,
    "google-java": _google_java,
    "chromium": _chromium,
}
