"""Categories, booleans, free bits, ranges: which bit, and what is refused without being shown."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rappor.errors import EncodeError, ParamsError
from rappor.mechanism.predicates import (
    Ranges,
    boolean_bit,
    category_bit,
    category_index,
    free_bits,
)

MARKER = "hunter2-marker"


# Categories.


def test_each_category_has_its_own_bit_in_the_order_given() -> None:
    index = category_index(["red", "green", "", "blé"])
    assert [category_bit(value, index) for value in ("red", "green", "", "blé")] == [1, 2, 4, 8]


@pytest.mark.parametrize(
    "categories",
    ["abc", b"abc", {"a", "b"}, {"a": 1}, None, 5, iter(["a"]), [], (), ["a", 1], ["a", None]],
    ids=lambda categories: type(categories).__name__,
)
def test_categories_must_be_a_list_of_strings(categories: Any) -> None:
    with pytest.raises(ParamsError, match=r"categories must be a (non-empty )?list of strings"):
        category_index(categories)


def test_categories_must_be_distinct() -> None:
    with pytest.raises(ParamsError, match="distinct"):
        category_index(["a", "b", "a"])


@pytest.mark.parametrize("value", [MARKER, MARKER.encode(), None, 0, True, ["red"], "Red", "red "])
def test_an_unlisted_category_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(EncodeError, match="value is not one of the 2 categories") as caught:
        category_bit(value, category_index(["red", "green"]))
    assert MARKER not in str(caught.value)


# Booleans.


def test_booleans_are_one_bit() -> None:
    assert [boolean_bit(False), boolean_bit(True)] == [0, 1]


@pytest.mark.parametrize("value", [0, 1, "true", MARKER, None, 1.0, [], b"1"], ids=repr)
def test_only_true_and_false_are_booleans(value: object) -> None:
    with pytest.raises(EncodeError, match=f"must be True or False, got {type(value).__name__}$"):
        boolean_bit(value)


# Free bits.


def test_free_bits_are_an_integer_or_truth_values_from_bit_0() -> None:
    for value in range(16):
        listed = [bool(value >> bit & 1) for bit in range(4)]
        assert free_bits(value, 4) == value
        assert free_bits(listed, 4) == value
        assert free_bits(tuple(map(int, listed)), 4) == value


@pytest.mark.parametrize("value", [16, -1, 1 << 100], ids=repr)
def test_integers_with_more_bits_are_refused(value: int) -> None:
    with pytest.raises(EncodeError, match=r"at most 4 bits$"):
        free_bits(value, 4)


@pytest.mark.parametrize(
    "value",
    [
        [],
        [1, 0, 1],
        [1, 0, 1, 0, 1],
        [0, 1, 2, 0],
        [0, 1, -1, 0],
        [0, 1, 0.5, 0],
        [0, 1, None, 0],
        [0, 1, MARKER, 0],
        [0, 1, math.nan, 0],
        "0101",
        b"\0\1\0\1",
        bytearray(4),
        {0, 1},
        None,
        True,
        3.0,
        MARKER,
    ],
    ids=repr,
)
def test_what_is_not_k_truth_values_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(EncodeError, match="value must be 4 truth values") as caught:
        free_bits(value, 4)
    assert MARKER not in str(caught.value)


# Ranges.


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (-math.inf, 0),
        (-(10**400), 0),
        (17, 0),
        (math.nextafter(18, 0), 0),
        (Fraction(18 * 10**30 - 1, 10**30), 0),
        (18, 1),
        (18.0, 1),
        (Fraction(18), 1),
        (math.nextafter(18, 99), 1),
        (math.nextafter(65, 0), 1),
        (65, 2),
        (10**400, 2),
        (math.inf, 2),
        (-0.0, 0),
        (np.float32(18), 1),
        (np.int8(17), 0),
        (np.uint64(2**64 - 1), 2),
        (np.float64("inf"), 2),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_range_holds_its_lower_edge_and_not_its_upper(number: Any, expected: int) -> None:
    assert Ranges((18, 65)).range_of(number) == expected


def test_the_whole_line_is_covered_once() -> None:
    ranges = Ranges((-1.5, 0, 2, 1e300))
    points = [-1e308, -1.5, -1, -0.0, 5e-324, 2, 3, 1e300, 1e308]
    assert [ranges.range_of(point) for point in points] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert ranges.count == 5 == len(ranges.labels)


def test_edges_are_compared_exactly() -> None:
    third = Ranges((Fraction(1, 3),))
    assert third.range_of(1 / 3) == 0  # the float lies just below the rational
    assert third.range_of(Fraction(1, 3)) == 1
    tenth = Ranges((0.1,))
    assert tenth.range_of(Fraction(1, 10)) == 0  # the float 0.1 lies just above 1/10
    assert tenth.range_of(0.1) == 1
    huge = Ranges((2**53 + 1, 10**400))
    assert [huge.range_of(2**53 + step) for step in (0, 1)] == [0, 1]
    assert [huge.range_of(10**400 + step) for step in (-1, 0)] == [1, 2]


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_numpy_integers_are_compared_as_exactly_as_pythons(kind: Callable[[int], Any]) -> None:
    big = 2**53 + 1  # no float holds it
    assert Ranges((big,)).range_of(kind(big)) == 1
    assert Ranges((kind(big),)).range_of(big - 1) == 0
    assert Ranges((kind(big),)) == Ranges((big,))


@pytest.mark.parametrize("number", [math.nan, np.float64("nan")])
def test_nan_is_in_no_range(number: float) -> None:
    with pytest.raises(EncodeError, match="not-a-number"):
        Ranges((0,)).range_of(number)


@pytest.mark.parametrize(
    "number", [MARKER, MARKER.encode(), None, True, 1j, Decimal(1), [1]], ids=repr
)
def test_what_is_no_number_is_in_no_range_and_not_shown(number: object) -> None:
    with pytest.raises(EncodeError, match=f"number, got {type(number).__name__}$") as caught:
        Ranges((0,)).range_of(number)
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize(
    "edges", [(), (1, 1), (2, 1), (0, -0.0), (0.1, Fraction(0.1)), (1, 3, 2)], ids=repr
)
def test_edges_must_increase(edges: tuple[Any, ...]) -> None:
    with pytest.raises(ParamsError, match="strictly increasing"):
        Ranges(edges)


@pytest.mark.parametrize(
    "edge", [math.nan, math.inf, -math.inf, "1", None, True, 1j, Decimal(1)], ids=repr
)
def test_edges_must_be_finite_numbers(edge: Any) -> None:
    with pytest.raises(ParamsError, match="edges must be finite numbers") as caught:
        Ranges((edge,))
    assert repr(edge) in str(caught.value)


def test_edges_must_be_a_collection() -> None:
    with pytest.raises(ParamsError, match="edges"):
        Ranges(5)  # type: ignore[arg-type]


def test_edges_may_come_from_an_iterator() -> None:
    assert Ranges(iter([1, 2])).edges == (Fraction(1), Fraction(2))


def test_ranges_are_frozen_values() -> None:
    ranges = Ranges((1, 2.5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        ranges.edges = ()  # type: ignore[misc]
    assert ranges == Ranges([1.0, Fraction(5, 2)])
    assert hash(ranges) == hash(Ranges((1, 2.5)))
    assert pickle.loads(pickle.dumps(ranges)) == ranges


# Magnitudes.


def test_magnitudes_are_powers_of_the_base() -> None:
    assert Ranges.magnitudes() == Ranges([10**power for power in range(7)])
    assert Ranges.magnitudes(2, -2, 1).edges == (Fraction(1, 4), Fraction(1, 2), 1, 2)
    assert Ranges.magnitudes(10, -1, -1).edges == (Fraction(1, 10),)
    assert Ranges.magnitudes(2, 3, 3).labels == ("< 8", ">= 8")


def test_a_power_of_the_base_starts_its_magnitude() -> None:
    ranges = Ranges.magnitudes(10, 0, 20)
    for power in range(21):
        assert ranges.range_of(10**power - 1) == power
        assert ranges.range_of(10**power) == power + 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1, 0, 1), "base"),
        ((0, 0, 1), "base"),
        ((2.5, 0, 1), "base"),
        ((True, 0, 1), "base"),
        ((2**16 + 1, 0, 1), "base"),
        ((10, 0.5, 1), "low"),
        ((10, -4097, 1), "low"),
        ((10, 2, 1), "high"),
        ((10, 0, 4097), "high"),
        ((10, 0, None), "high"),
    ],
)
def test_magnitudes_out_of_range_are_refused_by_name(
    arguments: tuple[Any, ...], field: str
) -> None:
    with pytest.raises(ParamsError, match=f"^{field} must be a whole number from"):
        Ranges.magnitudes(*arguments)


# Cumulative predicates.


def test_cumulative_bits_say_at_least_edge_i() -> None:
    edges = (10, 20, 30)
    ranges = Ranges(edges)
    for number in (-math.inf, 9, 10, 19.5, 20, 29, 30, 31, math.inf):
        bits = ranges.cumulative(number)
        assert [bool(bits >> i & 1) for i in range(3)] == [number >= edge for edge in edges]


def test_cumulative_bits_fit_as_many_bits_as_edges() -> None:
    ranges = Ranges(range(1, 9))
    assert free_bits(ranges.cumulative(math.inf), 8) == 255
    with pytest.raises(EncodeError):
        ranges.cumulative(math.nan)
