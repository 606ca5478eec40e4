"""CityHash64WithSeed of CityHash 1.0.3, the hash that places Chromium's RAPPOR bits.

Definition: Pike and Alakuijala, google/cityhash release 1.0.3 (revision 00b9287), `src/city.cc`;
Chromium froze the same release as base::legacy::CityHash64WithSeed.

The release matters. 1.0.2 (ClickHouse) differs for inputs longer than 64 bytes, 1.1 for inputs
of 1 to 64 bytes. CityHash is not a cryptographic hash.
"""

from typing import Final

__all__ = ["city_hash_64_with_seed"]

_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F
_K3: Final = 0xC949D7C7509E6557
_MULTIPLIER: Final = 0x9DDFEA08EB382D69
_MASK: Final = (1 << 64) - 1


def city_hash_64_with_seed(data: bytes, seed: int) -> int:
    """Hash bytes under a seed: combine(CityHash64(data) - k2, seed).

    Args:
        data: the bytes to hash, of any length.
        seed: an unsigned 64-bit integer; others are taken modulo 2^64, as in C++.

    Returns:
        The hash, 0 <= hash < 2^64.

    >>> city_hash_64_with_seed(b"hello world", 112358)
    4144044770257928618
    """
    return _combine(_city_hash_64(data) - _K2, seed)


def _city_hash_64(data: bytes) -> int:
    """Return CityHash64, whose formula depends on the length of the data."""
    length = len(data)
    if length > 64:
        return _hash_over_64(data)
    if length > 32:
        return _hash_33_to_64(data)
    if length > 16:
        return _hash_17_to_32(data)
    return _hash_0_to_16(data)


def _hash_0_to_16(data: bytes) -> int:
    """Choose among the formulas for short data; no data at all hash to a constant."""
    length = len(data)
    if length > 8:
        return _hash_9_to_16(data)
    if length >= 4:
        return _hash_4_to_8(data)
    if length > 0:
        return _hash_1_to_3(data)
    return _K2


def _hash_1_to_3(data: bytes) -> int:
    """Hash the first, middle and last byte, and the length."""
    length = len(data)
    y = data[0] + (data[length >> 1] << 8)
    z = length + (data[-1] << 2)
    return _shift_mix(y * _K2 ^ z * _K3) * _K2 & _MASK


def _hash_4_to_8(data: bytes) -> int:
    """Hash the first and the last four bytes, which may overlap, and the length."""
    first = int.from_bytes(data[:4], "little")
    last = int.from_bytes(data[-4:], "little")
    return _combine(len(data) + (first << 3), last)


def _hash_9_to_16(data: bytes) -> int:
    """Hash the first and the last eight bytes, which may overlap, and the length."""
    length = len(data)
    last = _word(data, length - 8)
    return _combine(_word(data, 0), _rotate(last + length, length)) ^ last


def _hash_17_to_32(data: bytes) -> int:
    """Hash the first and the last sixteen bytes, which may overlap, and the length."""
    length = len(data)
    a = _word(data, 0) * _K1
    b = _word(data, 8)
    c = _word(data, length - 8) * _K2
    d = _word(data, length - 16) * _K0
    return _combine(
        _rotate(a - b, 43) + _rotate(c, 30) + d,
        a + _rotate(b ^ _K3, 20) - c + length,
    )


def _hash_33_to_64(data: bytes) -> int:
    """Hash the first and the last 32 bytes, each folded to two words, and the length."""
    length = len(data)
    w0, w1, w2, w3 = _four_words(data, 0)
    t0, t1, t2, t3 = _four_words(data, length - 32)
    head_sum, head_mix = _fold(w0 + (length + t2) * _K0, w1, w2, w3)
    tail_sum, tail_mix = _fold(w2 + t0, t1, t2, t3)
    r = _shift_mix((head_sum + tail_mix) * _K2 + (tail_sum + head_mix) * _K0)
    return _shift_mix(r * _K0 + head_mix) * _K2 & _MASK


def _hash_over_64(data: bytes) -> int:
    """Hash the last 64 bytes into seven words of state, then every 64-byte block but the last."""
    length = len(data)
    x = _word(data, length - 40)
    y = _word(data, length - 16) + _word(data, length - 56)
    z = _combine(_word(data, length - 48) + length, _word(data, length - 24))
    v0, v1 = _weak_hash_32(data, length - 64, length, z)
    w0, w1 = _weak_hash_32(data, length - 32, y + _K1, x)
    x = x * _K1 + _word(data, 0)
    # A last block of exactly 64 bytes is already in the state: hence `length - 64`.
    for block in range(0, length - 64, 64):
        x = (_rotate(x + y + v0 + _word(data, block + 8), 37) * _K1 & _MASK) ^ w1
        y = _rotate(y + v1 + _word(data, block + 48), 42) * _K1 + v0 + _word(data, block + 40)
        z = _rotate(z + w0, 33) * _K1
        v0, v1 = _weak_hash_32(data, block, v1 * _K1, x + w0)
        w0, w1 = _weak_hash_32(data, block + 32, z + w1, y + _word(data, block + 16))
        x, z = z, x
    return _combine(_combine(v0, w0) + _shift_mix(y) * _K1 + z, _combine(v1, w1) + x)


def _weak_hash_32(data: bytes, start: int, a: int, b: int) -> tuple[int, int]:
    """Mix 32 bytes and two seeds into two words."""
    w0, w1, w2, w3 = _four_words(data, start)
    first = a + w0
    total = first + w1 + w2
    mixed = _rotate(b + first + w3, 21) + _rotate(total, 44) + first
    return (total + w3) & _MASK, mixed & _MASK


def _fold(a: int, second: int, third: int, z: int) -> tuple[int, int]:
    """Fold four words into their sum and a mix of its partial sums, both modulo 2^64."""
    mixed = _rotate(a + z, 52) + _rotate(a, 37) + _rotate(a + second, 7)
    total = a + second + third
    return (total + z) & _MASK, (mixed + _rotate(total, 31)) & _MASK


def _combine(low: int, high: int) -> int:
    """Hash two words into one: Hash128to64, named HashLen16 in `city.cc`."""
    a = _shift_mix((low ^ high) * _MULTIPLIER)
    b = _shift_mix((high ^ a) * _MULTIPLIER)
    return b * _MULTIPLIER & _MASK


def _shift_mix(value: int) -> int:
    """Reduce modulo 2^64, then fold the top 17 bits onto the bottom ones."""
    value &= _MASK
    return value ^ (value >> 47)


def _rotate(value: int, shift: int) -> int:
    """Reduce modulo 2^64, then rotate right by 0 < shift < 64 bits."""
    value &= _MASK
    return (value >> shift) | (value << (64 - shift)) & _MASK


def _four_words(data: bytes, start: int) -> tuple[int, int, int, int]:
    """Read four consecutive words."""
    w0, w1, w2, w3 = (_word(data, start + offset) for offset in (0, 8, 16, 24))
    return w0, w1, w2, w3


def _word(data: bytes, start: int) -> int:
    """Read eight bytes, the lowest first."""
    return int.from_bytes(data[start : start + 8], "little")
