"""A report's bits outside a process: packed bytes and text, as defined in docs/protocol.md.

Packed: bit i is bit i % 8 of byte i // 8, and the unused bits of the last byte are 0. Text (CSV):
one character for each bit, bit k-1 first, as google/rappor writes it.
"""

from __future__ import annotations

from rappor.errors import WireError

# At index n: every value of a last byte that uses n bits, with its padding bits 0.
_LAST_BYTES = [bytes(range(1 << used)) for used in range(8)]


def pack(bits: int, k: int) -> bytes:
    """K bits as ceil(k/8) bytes.

    >>> pack(0b1_0000_0010, 9).hex()
    '0201'
    """
    _check_bits(bits, k)
    return bits.to_bytes((k + 7) // 8, "little")


def unpack(data: bytes, k: int) -> int:
    """The k bits of `pack`. WireError if the length is wrong or a padding bit is set."""
    _check_width(k)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError(f"a packed report is bytes, got {type(data).__name__}")
    if len(data) != (k + 7) // 8:
        raise WireError(f"a report of {k} bits takes {(k + 7) // 8} bytes, got {len(data)}")
    bits = int.from_bytes(data, "little")
    if bits >> k:
        raise WireError(f"a report of {k} bits must leave its last {-k % 8} padding bits 0")
    return bits


def clear_padding(reports: bytes, k: int) -> bool:
    """Whether each of these packed reports of k bits has its padding bits 0.

    >>> clear_padding(bytes([1, 3, 255, 1]), 10), clear_padding(bytes([1, 4, 255, 1]), 10)
    (True, False)
    """
    used, size = k % 8, (k + 7) // 8
    return not used or not reports[size - 1 :: size].translate(None, _LAST_BYTES[used])


def to_text(bits: int, k: int) -> str:
    """K bits as characters, bit k-1 first.

    >>> to_text(2, 8)
    '00000010'
    """
    _check_bits(bits, k)
    return format(bits, f"0{k}b")


def from_text(text: str, k: int) -> int:
    """The bits of `to_text`. WireError unless the text is exactly k characters 0 or 1."""
    _check_width(k)
    if not isinstance(text, str) or len(text) != k or set(text) - {"0", "1"}:
        raise WireError(f"a report of {k} bits is {k} characters 0 or 1")
    return int(text, 2)


def _check_width(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise WireError(f"a report has a whole number of bits from 1 on, got {k!r}")


def _check_bits(bits: int, k: int) -> None:
    _check_width(k)
    if isinstance(bits, bool) or not isinstance(bits, int) or bits < 0 or bits >> k:
        raise WireError(f"bits do not fit a report of {k} bits")
