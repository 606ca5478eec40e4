"""Views of tuples: fields, the allotment of cohorts, and the canonical encoding."""

import pickle

import pytest

from rappor.errors import EncodeError, ParamsError
from rappor.mechanism import Field, Ranges, View, Views

HOMEPAGE = Field("homepage", "string")
CHANNEL = Field("channel", "category", categories=("stable", "beta"))
ACTIVE = Field("active", "boolean")
AGE = Field("age", "ordinal", ranges=Ranges((18, 65)))
FIELDS = (HOMEPAGE, CHANNEL, ACTIVE, AGE)
VALUE = {"homepage": "é", "channel": "beta", "active": True, "age": 20}


def both(*shares):
    every = (View(("homepage", "channel"), shares[0]), View(("homepage",), shares[1]))
    return Views((HOMEPAGE, CHANNEL), (*every, *(View(("channel",), s) for s in shares[2:])))


def test_each_kind_of_field_has_its_canonical_bytes():
    parts = [field.part(VALUE[field.name]) for field in FIELDS]
    assert parts == [b"\xc3\xa9", b"beta", b"true", b"1"]


def test_numbers_of_one_range_have_one_encoding():
    views = Views(FIELDS)
    assert views.encode(0, VALUE) == views.encode(0, {**VALUE, "age": 64.9})
    assert views.encode(0, VALUE) != views.encode(0, {**VALUE, "age": 65})


def test_parts_are_joined_in_the_order_of_the_view_with_their_lengths():
    views = Views((HOMEPAGE, CHANNEL), (View(("channel", "homepage"), 1),))
    assert views.encode(0, {"homepage": "x", "channel": "beta"}) == b"\0\0\0\x04beta\0\0\0\x01x"


def test_fields_outside_the_view_do_not_change_its_encoding():
    views = Views(FIELDS)
    other = {"homepage": "é", "channel": "stable", "active": False, "age": 99}
    assert views.encode(1, VALUE) == views.encode(1, other) == b"\0\0\0\x02\xc3\xa9"


def test_a_decoder_needs_only_the_parts_of_the_view():
    assert Views(FIELDS).encode_parts(1, {"homepage": b"x"}) == b"\0\0\0\x01x"


def test_the_default_is_the_whole_tuple_and_the_first_field_alone():
    views = Views(FIELDS).views
    assert views == (View(("homepage", "channel", "active", "age"), 0.8), View(("homepage",), 0.2))


@pytest.mark.parametrize(
    ("shares", "m", "cohorts"),
    [
        ((0.8, 0.2), 10, (8, 2)),
        ((0.8, 0.2), 8, (6, 2)),
        ((0.8, 0.2), 16, (13, 3)),
        ((0.8, 0.2), 2, (1, 1)),
        ((0.5, 0.5), 3, (2, 1)),
        ((0.999, 0.0005, 0.0005), 4, (2, 1, 1)),
        ((0.6, 0.3, 0.1), 1024, (614, 307, 103)),
    ],
)
def test_cohorts_are_allotted_by_largest_remainder(shares, m, cohorts):
    views = both(*shares)
    assert views.cohorts(m) == cohorts
    assert views.table(m) == tuple(v for v, count in enumerate(cohorts) for _ in range(count))


def test_the_number_of_cohorts_of_each_view_is_its_own_share():
    """A definition for clients has the numbers only: they make the same table again."""
    for m in (2, 3, 5, 8, 16, 29, 64, 97):
        for first in range(1, m):
            assert both(first / m, (m - first) / m).cohorts(m) == (first, m - first)


def test_every_view_needs_a_cohort():
    with pytest.raises(ParamsError, match="m must be at least 2 for 2 views, got m = 1"):
        both(0.8, 0.2).table(1)


@pytest.mark.parametrize(
    "value",
    [
        {"homepage": "x"},
        {"homepage": "x", "channel": "beta", "more": 1},
        {"homepage": "x", "chanel": "beta"},
        ("x", "beta"),
        None,
    ],
)
def test_a_value_has_exactly_the_fields(value):
    with pytest.raises(EncodeError, match=r"a mapping with the fields homepage, channel$"):
        both(0.8, 0.2).encode(0, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"homepage": 3}, "field homepage: value must be str or bytes, got int"),
        ({"channel": "nightly"}, "field channel: value is not one of the 2 categories"),
        ({"active": 1}, "field active: value must be True or False, got int"),
        ({"age": "old"}, "field age: value must be a number, got str"),
    ],
)
@pytest.mark.parametrize("view", [0, 1])
def test_every_field_is_checked_in_every_view_and_never_shown(change, message, view):
    with pytest.raises(EncodeError, match=message) as caught:
        Views(FIELDS).encode(view, {**VALUE, **change})
    assert "nightly" not in str(caught.value)
    assert "old" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Field("Homepage", "string"), "1 to 32 of a-z"),
        (lambda: Field("a", "bits"), "kind must be one of string, category, boolean, ordinal"),
        (lambda: Field("a", "category"), "categories are missing for kind 'category'"),
        (lambda: Field("a", "string", categories=("x",)), "categories belong to kind 'category'"),
        (lambda: Field("a", "category", categories=("x", "x")), "field a: .* listed twice"),
        (lambda: Field("a", "ordinal"), "ranges are missing for kind 'ordinal'"),
        (lambda: Field("a", "ordinal", ranges=(1, 2)), "ranges must be rappor.Ranges"),
        (lambda: View((), 1), "a view must list names of fields"),
        (lambda: View(("a", "a"), 1), "each field once"),
        (lambda: View(("a",), 0), "share must be a number above 0"),
        (lambda: View(("a",), 1.5), "share must be a number above 0"),
        (lambda: Views((HOMEPAGE,)), "2 to 4 fields"),
        (lambda: Views((HOMEPAGE, "channel")), "a list of rappor.Field"),
        (lambda: Views((HOMEPAGE, HOMEPAGE)), "distinct names"),
        (lambda: Views(FIELDS, ("homepage",)), "a list of rappor.View"),
        (lambda: Views(FIELDS[:2], (View(("age",), 1),)), "'age' is not one of homepage, channel"),
        (lambda: Views(FIELDS[:2], (View(("homepage",), 1),)), "field channel is in no view"),
        (lambda: both(0.5, 0.2), "add up to 1, got 0.7"),
        (
            lambda: Views(
                FIELDS[:2],
                (View(("homepage", "channel"), 0.5), View(("channel", "homepage"), 0.5)),
            ),
            "two have the same fields",
        ),
    ],
)
def test_malformed_fields_and_views_are_refused(make, message):
    with pytest.raises(ParamsError, match=message):
        make()


def test_views_go_to_other_processes_and_serve_as_keys():
    views = Views(FIELDS)
    assert pickle.loads(pickle.dumps(views)) == views
    assert hash(views) == hash(Views(list(FIELDS)))
