"""Laws of collections and periods, for any that can be made."""

import datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rappor.collection import Collection, check_period, days_of, diff, lint, period_of
from rappor.collection.client_json import OPTIONAL, REQUIRED
from rappor.collection.template import commented
from rappor.errors import ParamsError
from rappor.mechanism import DIALECTS, Ranges
from rappor.params import Params
from support.tuple_strategies import tuple_views

DAYS = st.dates(datetime.date(1, 1, 8), datetime.date(9999, 12, 20))
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=40
)
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,62}", fullmatch=True)
EDGES = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.fractions(max_denominator=10**6),
)
NOISE = st.sampled_from([(0.5, 0.5, 0.75), (0.75, 0.5, 0.75), (0.1, 0.0, 0.9), (5e-324, 0.1, 1.0)])


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    kind = draw(st.sampled_from(["string", "category", "boolean", "ordinal", "bits", "tuple"]))
    given: dict[str, Any] = {}
    k, h, m = draw(st.integers(2, 64)), 1, draw(st.integers(1, 1024))
    if kind == "tuple":
        made = draw(tuple_views(m))
        given |= {"fields": made.fields, "views": made.views}
    if kind in ("string", "tuple"):
        h = draw(st.integers(1, min(8, k - 1)))
        given["dialect"] = draw(st.sampled_from(list(DIALECTS)))
    elif kind == "category":
        listed = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
                          min_size=1, max_size=k, unique=True)  # fmt: skip
        given["categories"] = draw(listed)
    elif kind == "ordinal":
        edges = draw(st.lists(EDGES, min_size=1, max_size=k - 1))
        given["ranges"] = Ranges(sorted({Fraction(edge) for edge in edges}))
    elif kind == "boolean":
        k = 1
    period = draw(st.sampled_from(["day", "week"]))
    days = sorted(draw(st.sets(st.dates(datetime.date(2020, 1, 1)), max_size=3)))
    firsts = sorted({period_of(period, day) for day in days})
    values = st.lists(st.from_regex(r"[A-Za-z0-9]{1,9}", fullmatch=True).filter(
        lambda value: value != "other"), min_size=1, max_size=3, unique=True)  # fmt: skip
    dimension = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)
    return Collection(
        name=draw(NAMES),
        version=draw(st.integers(1, 65535)),
        kind=kind,
        params=Params(k, h, m, *draw(NOISE)),
        description=draw(TEXTS),
        owner=draw(TEXTS),
        sensitivity=draw(st.sampled_from(["low", "medium", "high"])),
        reviews=draw(st.lists(TEXTS, max_size=2)),
        expires=draw(st.none() | st.dates()),
        on_expiry=draw(st.sampled_from(["delete", "keep-counts"])),
        platform=draw(st.sampled_from(["device", "web"])),
        period=period,
        dimensions=draw(st.dictionaries(dimension, values, max_size=3)),
        keep_reports_days=draw(st.integers(0, 3650)),
        reports_per_period=draw(st.integers(1, 9)),
        max_values=draw(st.integers(1, 99)),
        max_epsilon=draw(st.floats(1e-300, 1e300)),
        group=draw(st.none() | NAMES),
        null_reports=draw(st.booleans()),
        schedule=[(first, 0.25, 0.5) for first in firsts],
        expected_reports=draw(st.none() | st.integers(1, 10**12)),
        values=draw(st.sampled_from(["fixed", "slow", "fast"])),
        shared=draw(st.booleans()),
        clients_per_person=draw(st.integers(1, 9)),
        account_secret=draw(st.booleans()),
        upload=draw(st.none() | TEXTS),
        **given,
    )


@pytest.mark.slow
@given(collections())
def test_toml_reads_back_as_the_same_collection(collection: Collection) -> None:
    again = Collection.from_toml(collection.to_toml())
    assert again == collection
    assert again.memo_digest == collection.memo_digest
    assert Collection.from_toml(commented(collection)) == collection


@pytest.mark.slow
@given(collections())
def test_clients_read_what_was_exported_for_them(collection: Collection) -> None:
    text = collection.to_client_json()
    again = Collection.from_client_json(text)
    for name in {*REQUIRED, *OPTIONAL} - {"views"}:
        assert getattr(again, name) == getattr(collection, name), name
    for one, other in zip(again.views or (), collection.views or (), strict=True):
        assert one.fields == other.fields  # clients read the cohorts of a view, not its share
    assert again.memo_digest == collection.memo_digest
    assert again.to_client_json() == text


def check_judgement(one: Collection, other: Collection) -> None:
    for finding in lint(one, [other], datetime.date(2026, 11, 16)):
        assert finding.severity in ("error", "warning")
        assert finding.way_out
    found = diff(one, Collection.from_toml(one.to_toml()))
    assert found.allowed
    assert found.changes == ()


@pytest.mark.slow
@settings(max_examples=40)
@given(collections(), collections())
def test_any_collection_can_be_judged_and_compared(one: Collection, other: Collection) -> None:
    check_judgement(one, other)


@pytest.mark.long
@settings(max_examples=200)
@given(collections(), collections())
def test_any_of_many_collections_can_be_judged_and_compared(
    one: Collection, other: Collection
) -> None:
    check_judgement(one, other)


@pytest.mark.slow
@given(collections(), st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_a_cell_is_declared_whatever_a_client_holds(
    collection: Collection, held: dict[str, str]
) -> None:
    cell = collection.cell(held)
    assert [name for name, _ in cell] == sorted(collection.dimensions)
    for name, value in cell:
        assert value == "other" or value in collection.dimensions[name]
    assert collection.cell(dict(cell)) == cell


SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=5))
KEYS = st.sampled_from(["name", "version", "kind", "expires", "ranges", "dimensions", "schedule",
                        "params", "max_epsilon", "categories", "reviews", "zzz"])  # fmt: skip


def literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + "".join(sign for sign in value if sign.isalnum()) + "'"
    return repr(value)


@pytest.mark.slow
@given(st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=4))
def test_a_definition_with_odd_values_is_refused_and_nothing_else(odd: dict[str, Any]) -> None:
    base: dict[str, str] = {
        "name": "'homepage'", "version": "1", "kind": "'string'",
        "params": "{ preset = 'windows' }",
    }  # fmt: skip
    for key, value in odd.items():
        listed = isinstance(value, list)
        base[key] = f"[{', '.join(map(literal, value))}]" if listed else literal(value)
    text = "\n".join(f"{key} = {value}" for key, value in base.items())
    try:
        made = Collection.from_toml(text)
    except ParamsError:
        return
    assert Collection.from_toml(made.to_toml()) == made


@given(st.text(max_size=60))
def test_any_text_is_a_definition_or_refused(text: str) -> None:
    with pytest.raises(ParamsError):
        Collection.from_toml(text)


@given(DAYS, st.sampled_from(["day", "week"]))
def test_a_day_lies_in_its_period_and_periods_sort_as_their_text(
    day: datetime.date, kind: str
) -> None:
    period = period_of(kind, day)
    first, last = days_of(period)
    assert first <= day <= last
    assert check_period(kind, period) == period
    before = period_of(kind, first - datetime.timedelta(days=1))
    assert before < period
    assert days_of(before)[1] == first - datetime.timedelta(days=1)
