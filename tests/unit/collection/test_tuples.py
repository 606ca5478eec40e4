"""Definitions of kind tuple: TOML, changes, lint, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from rappor.collection import Collection, diff, lint
from rappor.collection.template import commented, draft
from rappor.decoding.tuple_design import fields_of, tuple_design
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism import Encoder, Field, Ranges, View
from rappor.params import Params

TOML = """
name = "install"
version = 1
kind = "tuple"

[params]
preset = "windows"

[[fields]]
name = "homepage"
kind = "string"

[[fields]]
name = "channel"
kind = "category"
categories = ["stable", "beta"]

[[fields]]
name = "age"
kind = "ordinal"
ranges = { edges = [18, "1000/3"] }
"""
VIEWS = """
[[views]]
fields = ["channel", "homepage"]
share = 0.5

[[views]]
fields = ["age"]
share = 0.5
"""
FIELDS = (
    Field("homepage", "string"),
    Field("channel", "category", ("stable", "beta")),
)
INSTALL = Collection("install", 1, Params.preset("windows"), kind="tuple", fields=FIELDS)


def test_fields_and_views_are_read_and_written_again() -> None:
    collection = Collection.from_toml(TOML + VIEWS)
    assert collection.fields is not None
    assert [field.name for field in collection.fields] == ["homepage", "channel", "age"]
    assert collection.views == (View(("channel", "homepage"), 0.5), View(("age",), 0.5))
    assert Collection.from_toml(collection.to_toml()) == collection
    assert Collection.from_toml(commented(collection)) == collection


def test_without_views_the_default_is_written_out() -> None:
    collection = Collection.from_toml(TOML)
    assert collection.views == (
        View(("homepage", "channel", "age"), 0.8),
        View(("homepage",), 0.2),
    )
    assert Collection.from_toml(collection.to_toml()) == collection


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOML.replace('kind = "string"', 'kind = "bits"'), r"fields\[0\]: .*one of string"),
        (TOML.replace('name = "age"\n', ""), r"fields\[2\]\.name is missing"),
        (TOML.replace('categories = ["stable", "beta"]\n', ""), r"fields\[1\]: .*missing for kind"),
        (TOML.replace("edges = [18,", "edges = [1000,"), r"fields\[2\]: ranges\.edges"),
        (TOML + VIEWS.replace("share = 0.5", "share = 0.4"), "add up to 1, got 0.8"),
        (TOML + VIEWS.replace('["age"]', '["ages"]'), "'ages' is not one of"),
        (TOML + VIEWS.replace('["age"]', '"age"'), r"views\[1\]: a view must list"),
        (TOML + VIEWS.replace("share", "shares"), r"views\[0\]\.shares is not one of"),
        (TOML.replace("[[fields]]", "[[field]]"), "field is not a key .*did you mean fields"),
        (TOML.replace('kind = "tuple"', 'kind = "string"'), "fields belong to kind 'tuple'"),
        (TOML.replace('preset = "windows"', "k=8\nh=1\nm=1\nf=0.5\np=0.5\nq=0.75"), "m must be"),
        (TOML.split("[[fields]]", maxsplit=1)[0], "fields belong to kind 'tuple', which needs"),
        (TOML.split("[[fields]]", maxsplit=1)[0] + VIEWS, "views need fields"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_path(text: str, message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        Collection.from_toml(text)


@pytest.mark.parametrize(
    "change",
    [
        {"fields": (FIELDS[0], Field("channel", "category", ("beta", "stable")))},
        {"fields": (FIELDS[0], Field("release", "category", ("stable", "beta")))},
        {"fields": (FIELDS[0], Field("channel", "ordinal", ranges=Ranges((1,))))},
        {"views": (View(("channel", "homepage"), 0.8), View(("homepage",), 0.2))},
        {"views": (View(("homepage",), 0.2), View(("homepage", "channel"), 0.8))},
        {"views": (View(("homepage", "channel"), 0.5), View(("homepage",), 0.5))},
        {"views": (View(("homepage", "channel"), 0.8), View(("channel",), 0.2))},
    ],
)
def test_a_change_of_fields_or_views_is_a_new_permanent_response(change: dict[str, object]) -> None:
    start = {"views": None} if "fields" in change else {}
    changed = replace(INSTALL, **start, **change)
    found = diff(INSTALL, changed)
    assert not found.same_memo
    assert "give it version 2" in found.refusal
    assert found.epsilon_after > found.epsilon_before


def test_shares_that_leave_the_cohorts_alone_keep_the_permanent_response() -> None:
    views = (View(("homepage", "channel"), 0.75), View(("homepage",), 0.25))
    changed = replace(INSTALL, views=views, version=2)  # 6 and 2 of 8 cohorts, as with .8 and .2
    found = diff(INSTALL, changed)
    assert found.same_memo
    assert found.allowed
    assert found.cost == "B', p and q stay the same: one value costs no more ε than before."


def test_a_draft_of_a_tuple_lints_clean() -> None:
    made = draft("install", kind="tuple", fields=FIELDS, owner="web team")
    assert lint(made) == ()


STRINGS = tuple(Field(name, "string") for name in ("homepage", "referrer", "search"))
CHANNEL = Field("channel", "category", ("stable", "beta"))


@pytest.mark.parametrize(
    ("fields", "views", "pairs"),
    [
        (STRINGS[:2], [], None),
        ((*STRINGS[:2], CHANNEL), [], "homepage × channel, referrer × channel"),
        (STRINGS, [], "homepage × referrer, homepage × search, referrer × search"),
        (STRINGS, ["homepage referrer", "search"], None),  # nobody asked for the others
        (STRINGS[:2], ["homepage", "referrer"], "homepage × referrer"),
        ((STRINGS[0], CHANNEL, Field("beta", "boolean")), [], "channel × beta"),
        (
            (Field("beta", "boolean"), CHANNEL, Field("age", "ordinal", ranges=Ranges((9,)))),
            [],
            None,
        ),
        (STRINGS, ["homepage referrer", "homepage search", "referrer search"], None),
    ],
)
def test_pairs_of_fields_that_no_view_serves_are_warned_of(
    fields: tuple[Field, ...], views: list[str], pairs: str | None
) -> None:
    listed = tuple(View(tuple(names.split()), 1 / len(views)) for names in views)
    made = draft("install", kind="tuple", fields=fields, views=listed or None, owner="web team")
    found = [finding for finding in lint(made) if finding.code == "pair-without-view"]
    assert [finding.severity for finding in found] == ["warning"] * (pairs is not None)
    if pairs is not None:
        assert found[0].text.startswith(f"No view serves {pairs}: ")
        first, second = pairs.split(", ")[0].split(" × ")
        assert f"such as {first} and {second}" in found[0].way_out
        assert made.tuple_views is not None
        strings = {field.name for field in STRINGS}
        values = {name: ["a", "b"] if name in strings else None for name in (first, second)}
        chosen = fields_of(made.tuple_views, (first, second), values)
        with pytest.raises(DecodeError, match="collect with a view of"):
            tuple_design(made.params, np.ones(made.params.m), made.tuple_views, chosen, None)


def test_two_collections_of_the_same_fields_are_noticed() -> None:
    made = draft("install", kind="tuple", fields=FIELDS, owner="web team")
    twin = replace(made, name="setup")
    assert "identical-predicates" in [finding.code for finding in lint(made, [twin])]


def test_clients_read_the_cohorts_of_views() -> None:
    text = INSTALL.to_client_json()
    assert '"views":[{"cohorts":6,"fields":["homepage","channel"]}' in text
    again = Collection.from_client_json(text)
    assert again.memo_digest == INSTALL.memo_digest
    assert again.to_client_json() == text


def test_the_encoder_of_a_collection_is_that_of_its_fields_and_views() -> None:
    secret = bytes(range(32))
    own = Encoder(
        INSTALL.params, secret=secret, collection="install", kind="tuple", fields=list(FIELDS)
    )
    made = INSTALL.encoder(secret)
    value = {"homepage": "a.org", "channel": "beta"}
    assert made.memo_digest == own.memo_digest == INSTALL.memo_digest
    assert made.trace(value)[:2] == own.trace(value)[:2]
    assert made.view == own.view
