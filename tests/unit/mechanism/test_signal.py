"""Signal: what a value of each kind becomes, what stands for it in the memo, what stays hidden."""

import traceback
from typing import Any

import pytest

from rappor import Encoder, Params, Ranges
from rappor.errors import EncodeError, ParamsError
from rappor.mechanism import DIALECTS, bloom_positions, filter_bits
from rappor.mechanism.signal import signal_of
from rappor.typing import Kind

MARKER = "hunter2-marker"
SECRET = b"sekrit-marker-0123456789abcdefgh"


def params(k: int, h: int = 1, m: int = 4, f: float = 0.5) -> Params:
    return Params(k, h, m, f, 0.25, 0.75)


def signal(
    value: object,
    given: Params,
    kind: Kind = "string",
    dialect: str = "rappor-v1",
    categories: Any = None,
    ranges: Any = None,
) -> tuple[int, bytes]:
    """B and the memo input of a value in cohort 3."""
    return signal_of(given, kind, dialect, 3, categories, ranges)(value)


def encoder(given: Params, **options: Any) -> Encoder:
    return Encoder(given, **({"secret": SECRET, "collection": "test"} | options))


# What a value becomes.


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("value", ["", "example.com", "naïve ☃ 𝄞", "a\0b"])
def test_a_string_is_its_bloom_filter_and_its_utf_8_bytes(value: str, dialect: str) -> None:
    given = params(64, 3)
    bits = filter_bits(bloom_positions(value, 3, given, dialect))
    assert signal(value, given, dialect=dialect) == (bits, value.encode())


def test_bytes_are_taken_as_they_are() -> None:
    given = params(64, 2)
    expected = signal("é", given)
    assert expected[1] == b"\xc3\xa9"
    for same in (b"\xc3\xa9", bytearray(b"\xc3\xa9"), memoryview(b"\xc3\xa9")):
        assert signal(same, given) == expected


def test_strings_are_not_normalised() -> None:
    given = params(64, 2)
    assert signal("e\u0301", given)[1] != signal("\u00e9", given)[1]


def test_other_kinds_are_memoized_by_their_bits() -> None:
    categories = [f"c{number}" for number in range(10)]
    assert signal("c9", params(10), "category", categories=categories) == (1 << 9, b"\x00\x02")
    assert signal(25, params(3), "ordinal", ranges=Ranges((10, 20))) == (4, b"\x04")
    assert signal(True, params(1), "boolean") == (1, b"\x01")
    assert signal(False, params(1), "boolean") == (0, b"\x00")
    assert signal(0x1FF, params(9, 3), "bits") == (0x1FF, b"\xff\x01")
    assert signal([True] + [False] * 8, params(9), "bits") == (1, b"\x01\x00")


def test_fewer_categories_than_bits_leave_bits_unused() -> None:
    assert signal("b", params(100), "category", categories=["a", "b"])[0] == 2


# The memo.


def test_two_numbers_in_one_range_share_their_permanent_response() -> None:
    made = encoder(params(256), kind="ordinal", ranges=Ranges(range(1, 256)))
    assert len({made.trace(number).permanent for number in (7, 7.25, 7.999)}) == 1


def test_numbers_in_different_ranges_have_independent_permanent_responses() -> None:
    made = encoder(params(256), kind="ordinal", ranges=Ranges(range(1, 256)))
    flips = []
    for number in (7, 8):
        trace = made.trace(number)
        flips.append(trace.permanent ^ trace.signal)
    # Two independent bits with f/2 = 1/4 differ with probability 3/8: 96 of 256, sd 7.75.
    assert 96 - 5 * 7.75 < (flips[0] ^ flips[1]).bit_count() < 96 + 5 * 7.75


def test_one_string_has_one_permanent_response_as_str_and_as_bytes() -> None:
    made = encoder(params(256, 2))
    assert made.trace("é").permanent == made.trace("é".encode()).permanent


def test_values_that_collide_in_the_filter_still_have_memos_of_their_own() -> None:
    given = Params(2, 1, 1, 0.5, 0.25, 0.75)
    made = encoder(given, cohort=0)
    traces = [made.trace(str(number)) for number in range(64)]
    flips = {trace.signal: set() for trace in traces}  # type: dict[int, set[int]]
    for trace in traces:
        flips[trace.signal].add(trace.permanent ^ trace.signal)
    assert all(len(seen) > 1 for seen in flips.values())


# What does not fit is refused when the encoder is made.


@pytest.mark.parametrize(
    ("given", "options", "reason"),
    [
        (params(2, 2), {}, "strings need h < k, got h = 2, k = 2"),
        (params(1), {}, "strings need h < k"),
        (params(8), {"kind": "nope"}, "kind must be one of"),
        (params(8), {"kind": None}, "kind must be one of"),
        (params(8), {"dialect": "nope"}, "dialect must be one of"),
        (params(8), {"dialect": None}, "dialect must be one of"),
        (params(8), {"dialect": "\ud800"}, "dialect must be one of"),
        (params(64, 9), {"dialect": "google-java"}, "h must be at most 8"),
        (params(257, 9), {"dialect": "google"}, "h must be at most 8"),
        (params(8), {"categories": ["a"]}, "categories belong to kind 'category'"),
        (params(8), {"ranges": Ranges((1,))}, "ranges belong to kind 'ordinal'"),
        (params(8), {"kind": "category"}, "needs categories"),
        (params(8), {"kind": "category", "categories": "abc"}, "list of strings"),
        (params(8), {"kind": "category", "categories": 5}, "list of strings"),
        (params(8), {"kind": "category", "categories": []}, "non-empty list of strings"),
        (params(8), {"kind": "category", "categories": ["a", 1]}, "list of strings"),
        (params(8), {"kind": "category", "categories": ["a", "a"]}, "distinct"),
        (params(8), {"kind": "category", "categories": ["\ud800", "b"]}, "categor"),
        (params(1), {"kind": "category", "categories": ["a", "b"]}, "k must be at least 2"),
        (params(8, 2), {"kind": "category", "categories": ["a"]}, "h must be 1, got 2"),
        (params(8), {"kind": "ordinal"}, "needs ranges"),
        (params(8), {"kind": "ordinal", "ranges": (1, 2)}, "ranges"),
        (params(8), {"kind": "ordinal", "categories": ["a"]}, "categories belong"),
        (params(2), {"kind": "ordinal", "ranges": Ranges((1, 2))}, "k must be at least 3"),
        (params(8, 2), {"kind": "ordinal", "ranges": Ranges((1,))}, "h must be 1"),
        (params(2), {"kind": "boolean"}, "k must be 1 for kind 'boolean', got k = 2"),
        (params(8), {"cohort": 4}, "cohort must be a whole number from 0 to 3, got 4"),
        (params(8), {"cohort": -1}, "cohort must be a whole number"),
        (params(8), {"cohort": True}, "cohort must be a whole number"),
        (params(8), {"collection": ""}, "collection must be a non-empty string"),
        (params(8), {"collection": None}, "collection must be a non-empty string"),
        (params(8), {"collection": "\ud800"}, "collection"),
        (params(8), {"period": ""}, "period must be a non-empty string"),
        (params(8), {"period": 7}, "period must be a non-empty string"),
        (params(8), {"period": "\ud800"}, "period"),
        (None, {}, "params must be rappor.Params, got NoneType"),
        ({"k": 8}, {}, "params must be rappor.Params, got dict"),
    ],
    ids=lambda part: repr(part)[:60],
)
def test_what_does_not_fit_is_refused(given: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParamsError, match=reason):
        encoder(given, **options)


def test_edges_of_any_size_can_be_encoded() -> None:
    huge = Ranges.magnitudes(2**16, 1023, 1024)  # past what Python turns into decimal digits
    made = encoder(params(3), kind="ordinal", ranges=huge)
    assert made.trace(2**16384).signal == 0b100


@pytest.mark.parametrize("secret", [b"", None, "text", bytearray(b"x"), 7])
def test_a_secret_that_is_none_is_refused(secret: Any) -> None:
    with pytest.raises(ParamsError, match="secret must be non-empty bytes"):
        encoder(params(8), secret=secret)


# Nothing gives a value or a secret away.

MARKED_VALUES = [
    (params(64, 2), {}, MARKER + "\ud800"),
    (params(64, 2), {}, [MARKER]),
    (params(64, 2), {}, None),
    (params(2), {"kind": "category", "categories": ["a", "b"]}, MARKER),
    (params(2), {"kind": "category", "categories": ["a", "b"]}, MARKER + "\ud800"),
    (params(1), {"kind": "boolean"}, MARKER),
    (params(2), {"kind": "ordinal", "ranges": Ranges((1,))}, MARKER),
    (params(2), {"kind": "ordinal", "ranges": Ranges((1,))}, float("nan")),
    (params(4), {"kind": "bits"}, MARKER),
    (params(4), {"kind": "bits"}, [MARKER] * 4),
    (params(4), {"kind": "bits"}, 987654321),
]


@pytest.mark.parametrize("method", ["encode", "trace"])
@pytest.mark.parametrize(("given", "options", "value"), MARKED_VALUES)
def test_neither_message_nor_traceback_shows_the_value_or_the_secret(
    given: Params, options: dict[str, Any], value: object, method: str
) -> None:
    made = encoder(given, **options)
    with pytest.raises(EncodeError) as caught:
        getattr(made, method)(value)
    printed = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    for hidden in (MARKER, "987654321", "sekrit-marker", SECRET.hex()):
        assert hidden not in printed


def test_half_a_surrogate_pair_is_refused_as_such() -> None:
    made = encoder(params(64, 2))
    with pytest.raises(EncodeError, match="half a surrogate pair"):
        made.encode("\ud83d")
    assert made.encode("\U0001f600").cohort == made.cohort


def test_a_refused_secret_is_not_shown() -> None:
    with pytest.raises(ParamsError) as caught:
        encoder(params(8), secret=SECRET.decode())
    assert "sekrit" not in "".join(traceback.format_exception(caught.value))


def test_repr_and_attributes_show_neither_secret_nor_value() -> None:
    made = encoder(params(64, 2))
    made.encode(MARKER)
    assert repr(made) == f"Encoder({params(64, 2)}, collection='test', kind='string')"
    assert not hasattr(made, "secret")
    shown = [repr(getattr(made, name)) for name in dir(made) if not name.startswith("__")]
    for text in [*shown, str(made), f"{made}"]:
        for hidden in (MARKER, "sekrit-marker", SECRET.hex()):
            assert hidden not in text
