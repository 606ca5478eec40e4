"""Values that need no hashing -> bits: categories, booleans, numbers in ranges, free bits (§2).

Basic RAPPOR gives each of a fixed list of values its own bit; numbers are reported by the range or
the logarithmic magnitude that they are in. Error messages never repeat the value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from rappor.checks import encodable, exact, is_real, show, whole
from rappor.errors import EncodeError, ParamsError


def category_index(categories: Sequence[str]) -> dict[str, int]:
    """Each category's bit, in the order given; ParamsError unless they are distinct strings."""
    if not isinstance(categories, (list, tuple)):
        raise ParamsError("categories must be a list of strings, one for each bit")
    if not categories or not all(type(category) is str for category in categories):
        raise ParamsError("categories must be a non-empty list of strings")
    if not all(map(encodable, categories)):
        raise ParamsError("categories must be Unicode text; one holds half a surrogate pair")
    index = {category: bit for bit, category in enumerate(categories)}
    if len(index) != len(categories):
        raise ParamsError("categories must be distinct; one is listed twice")
    return index


def category_bit(value: object, index: dict[str, int]) -> int:
    """The filter of a category: its one bit."""
    bit = index.get(str.__str__(value)) if isinstance(value, str) else None
    if bit is None:
        raise EncodeError(f"value is not one of the {len(index)} categories of this collection")
    return 1 << bit


def boolean_bit(value: object) -> int:
    """The filter of True or False."""
    if not isinstance(value, bool):
        raise EncodeError(f"value must be True or False, got {type(value).__name__}")
    return int(value)


def free_bits(value: Any, k: int) -> int:
    """Free bits: an integer below 2^k (bit i is bit i), or k truth values, bit 0 first."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = int.__index__(value)  # a plain integer: flags have operators of their own
        if 0 <= number < 1 << k:
            return number
        raise EncodeError(f"value must be a whole number with at most {k} bits")
    listed = isinstance(value, (list, tuple)) and len(value) == k
    if listed and all(type(bit) in (bool, int) and bit in (0, 1) for bit in value):
        return int("".join("1" if bit else "0" for bit in reversed(value)), 2)
    raise EncodeError(f"value must be {k} truth values, bit 0 first, or an integer of {k} bits")


@dataclass(frozen=True, slots=True)
class Ranges:
    """Disjoint ranges that cover all numbers: below the first edge, between, from the last on.

    n edges make n + 1 ranges [edge i-1, edge i), so every number has exactly one.

    >>> Ranges((18, 65)).range_of(18)
    1
    """

    edges: tuple[Fraction, ...]

    def __init__(self, edges: Iterable[float | Fraction]) -> None:
        """Take at least one finite edge, in strictly increasing order."""
        try:
            listed = list(edges)
        except (TypeError, ValueError, NotImplementedError):
            raise ParamsError(f"edges must be a list of numbers, got {show(edges)}") from None
        points = tuple(_edge(edge) for edge in listed)
        if not points or any(low >= high for low, high in pairwise(points)):
            raise ParamsError("edges must be one or more numbers in strictly increasing order")
        object.__setattr__(self, "edges", points)

    @classmethod
    def magnitudes(cls, base: int = 10, low: int = 0, high: int = 6) -> Ranges:
        """Logarithmic magnitudes: edges at base^low, ..., base^high.

        >>> Ranges.magnitudes(10, 0, 3).labels
        ('< 1', '1 to < 10', '10 to < 100', '100 to < 1000', '>= 1000')
        """
        base = whole("base", base, 2, 2**16)
        low = whole("low", low, -4096, 4096)
        high = whole("high", high, low, 4096)
        return cls(Fraction(base) ** power for power in range(low, high + 1))

    @property
    def count(self) -> int:
        """How many ranges there are, which is how many bits they need."""
        return len(self.edges) + 1

    @property
    def labels(self) -> tuple[str, ...]:
        """A short name for each range, lowest first."""
        names = [_label(edge) for edge in self.edges]
        between = [f"{low} to < {high}" for low, high in pairwise(names)]
        return (f"< {names[0]}", *between, f">= {names[-1]}")

    def range_of(self, number: Any) -> int:
        """Which range a number lies in, compared exactly."""
        if not is_real(number):
            raise EncodeError(f"value must be a number, got {type(number).__name__}")
        try:
            point = exact(number)
        except OverflowError:
            point = number  # an infinity, which compares as it should
        except (AttributeError, TypeError, ValueError):
            raise EncodeError("value must be a number, got not-a-number") from None
        return bisect_right(self.edges, point)

    def cumulative(self, number: Any) -> int:
        """The bits of the predicates "at least edge i", for kind `bits`: overlapping by nature.

        >>> bin(Ranges((10, 20, 30)).cumulative(25))
        '0b11'
        """
        return (1 << self.range_of(number)) - 1


def _label(edge: Fraction) -> str:
    longest = max(abs(edge.numerator), edge.denominator).bit_length()
    if edge.denominator == 1 and longest <= 4096:
        return str(edge)
    return f"{float(edge):.6g}" if longest <= 1000 else f"(a number of {longest} bits)"


def _edge(edge: Any) -> Fraction:
    try:
        if is_real(edge):
            return exact(edge)
    except (AttributeError, TypeError, ValueError, OverflowError):
        pass
    raise ParamsError(f"edges must be finite numbers, got {show(edge)}")
