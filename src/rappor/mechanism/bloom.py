"""Bloom filters: (value, cohort) -> bit positions, in the dialect asked for (§2, step 1)."""

from __future__ import annotations

from collections.abc import Iterable

from rappor.checks import encodable, whole
from rappor.errors import EncodeError, ParamsError
from rappor.mechanism.dialects import make_place
from rappor.params import Params, check_params


def value_bytes(value: object) -> bytes:
    """A string value as bytes: str as UTF-8 without normalisation, bytes unchanged."""
    if isinstance(value, str):
        if not encodable(value):
            raise EncodeError("value is not Unicode text: it holds half a surrogate pair")
        return str.encode(value, "utf-8")
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value)
        except (ValueError, NotImplementedError):
            pass  # a released view
    raise EncodeError(f"value must be str or bytes, got {type(value).__name__}")


def bloom_positions(
    value: str | bytes, cohort: int, params: Params, dialect: str = "rappor-v1"
) -> tuple[int, ...]:
    """The h bit numbers of a value in a cohort, in hash order, with duplicates.

    `rappor-v1` has no duplicates; the other dialects can have some. The chromium dialect reduces
    the cohort modulo m; all others need 0 <= cohort < m.

    >>> bloom_positions("Test", 0, Params(8, 4, 1, 0.5, 0.5, 0.75), "chromium")
    (3, 1, 5, 1)
    """
    check_string_params(params)
    highest = None if type(dialect) is str and dialect == "chromium" else params.m - 1
    place = make_place(dialect, whole("cohort", cohort, 0, highest, private=True), params)
    return tuple(place(value_bytes(value)))


def check_string_params(params: Params) -> None:
    """Refuse params whose filter would be full for every string."""
    check_params(params)
    if params.h >= params.k:
        raise ParamsError(
            f"strings need h < k, got h = {params.h}, k = {params.k}: every filter would be full"
        )


def filter_bits(positions: Iterable[int]) -> int:
    """The filter B with these positions set, as an integer.

    >>> bin(filter_bits((3, 1, 5, 1)))
    '0b101010'
    """
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits
