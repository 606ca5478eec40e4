"""google/rappor's own clients, re-derived from their published behaviour, to check its vectors.

For tests only. Their permanent response is keyed by the filter, and truncates f to 7 bits: it is
not what this project uses (docs/adr/001-derived-memo.md).
"""

import hmac


def masks(digest: bytes, k: int, f: float) -> tuple[int, int]:
    """(uniform, f_mask): one byte a bit; its low bit is the coin, the rest decides on noise."""
    uniform = sum((digest[i] & 1) << i for i in range(k))
    f_mask = sum(((digest[i] >> 1) < f * 128) << i for i in range(k))
    return uniform, f_mask


def python_masks(secret: bytes, bloom: int, k: int, f: float) -> tuple[int, int]:
    return masks(hmac.digest(secret, bloom.to_bytes(4, "big"), "sha256"), k, f)


def cpp_masks(secret: bytes, encoder_id: str, bloom: int, k: int, f: float) -> tuple[int, int]:
    message = b"\x01" + encoder_id.encode() + bloom.to_bytes(4, "big")
    return masks(hmac.digest(secret, message, "sha256"), k, f)


def cpp_long_masks(secret: bytes, encoder_id: str, bloom: int, k: int, f: float) -> tuple[int, int]:
    message = b"\x01" + encoder_id.encode() + bloom.to_bytes(k // 8, "big")
    return masks(hmac_drbg(secret + message, k), k, f)


def permanent(bloom: int, uniform: int, f_mask: int) -> int:
    return bloom & ~f_mask | uniform & f_mask


def cpp_cohort(secret: bytes, m: int) -> int:
    return int.from_bytes(hmac.digest(secret, b"", "sha256")[:4], "little") % m


def cpp_long_cohort(secret: bytes, m: int) -> int:
    return int.from_bytes(hmac_drbg(secret, 4), "little") % m


def hmac_drbg(seed: bytes, count: int) -> bytes:
    """HMAC-DRBG with SHA-256 (NIST SP 800-90A, 10.1.2), instantiated with `seed`."""
    key, value = bytes(32), b"\x01" * 32
    for marker in (b"\x00", b"\x01"):
        key = hmac.digest(key, value + marker + seed, "sha256")
        value = hmac.digest(key, value, "sha256")
    out = b""
    while len(out) < count:
        value = hmac.digest(key, value, "sha256")
        out += value
    return out[:count]
