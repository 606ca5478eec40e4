"""(u, d) of every kind, against all pairs of values for small k (R3, R28)."""

from itertools import combinations, product
from typing import Any, get_args

import pytest

from rappor.errors import ParamsError
from rappor.mechanism.kinds import KINDS, BitChange, check_kind, extreme_changes
from rappor.params import Params
from rappor.typing import Kind


def params(k: int, h: int = 1) -> Params:
    return Params(k, h, 1, 0.5, 0.25, 0.75)


def filters(kind: str, k: int, h: int) -> list[int]:
    """Every true filter that a value of the kind can have."""
    match kind:
        case "string" | "tuple":
            return [sum(1 << bit for bit in bits) for bits in combinations(range(k), h)]
        case "category" | "ordinal":
            return [1 << bit for bit in range(k)]
        case "boolean":
            return [0, 1]
        case _:
            return list(range(1 << k))


def changes_between_all_values(kind: str, k: int, h: int) -> set[tuple[int, int]]:
    return {
        ((after & ~before).bit_count(), (before & ~after).bit_count())
        for before, after in product(filters(kind, k, h), repeat=2)
    }


# ε grows with u and with d, and (k, 0), (0, k) bound bits because ε is linear in (u, d).
@pytest.mark.parametrize(
    ("kind", "k", "h"),
    [
        ("string", 4, 2),
        ("string", 6, 3),
        ("string", 5, 1),
        ("tuple", 4, 2),
        ("category", 4, 1),
        ("ordinal", 3, 1),
        ("boolean", 1, 1),
    ],
)
def test_changes_are_the_extremes_over_all_pairs_of_values(kind: str, k: int, h: int) -> None:
    listed = set(extreme_changes(kind, params(k, h)))
    found = changes_between_all_values(kind, k, h)
    assert listed <= found
    for up, down in found:
        assert any(up <= change.up and down <= change.down for change in listed)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_free_bits_lie_between_all_up_and_all_down(k: int) -> None:
    listed = set(extreme_changes("bits", params(k)))
    found = changes_between_all_values("bits", k, 1)
    assert listed == {(k, 0), (0, k)}
    assert listed <= found
    assert max(up + down for up, down in found) == k


def test_a_string_filter_too_small_for_two_disjoint_values_is_bounded_safely() -> None:
    assert extreme_changes("string", params(3, 2)) == (BitChange(2, 2),)
    assert max(changes_between_all_values("string", 3, 2)) == (1, 1)


def test_the_six_kinds() -> None:
    assert list(KINDS) == ["string", "category", "boolean", "ordinal", "bits", "tuple"]
    assert all(check_kind(kind) == kind for kind in KINDS)


@pytest.mark.parametrize("kind", ["String", "", None, 3, ["string"], "strings"], ids=repr)
def test_an_unknown_kind_is_refused_with_the_kinds(kind: Any) -> None:
    expected = "kind must be one of string, category, boolean, ordinal, bits, tuple"
    with pytest.raises(ParamsError, match=expected) as caught:
        check_kind(kind)
    assert repr(kind) in str(caught.value)
    with pytest.raises(ParamsError, match=expected):
        extreme_changes(kind, params(8))


def test_the_type_of_a_kind_lists_the_kinds() -> None:
    assert get_args(Kind) == tuple(KINDS)
