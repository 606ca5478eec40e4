"""Collection: what is validated, what is derived, what contradicts itself."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest

from rappor.collection import Collection, Phase
from rappor.errors import ParamsError
from rappor.mechanism import Ranges, memo_digest
from rappor.params import Params
from rappor.privacy import epsilon_one

WINDOWS = Params.preset("windows")
SECRET = bytes(range(32))


def made(**given: Any) -> Collection:
    fields = {"name": "homepage", "version": 1, "params": WINDOWS} | given
    return Collection(**fields)


def test_the_smallest_collection_has_the_papers_epsilon_and_caps_it() -> None:
    collection = made()
    assert collection.epsilon_one == pytest.approx(1.07429, abs=1e-5)
    assert collection.epsilon_infinity == pytest.approx(4.39445, abs=1e-5)
    assert collection.max_epsilon == collection.epsilon_infinity
    assert made(max_values=3).max_epsilon == pytest.approx(3 * 4.39445, abs=1e-4)
    assert made(null_reports=True).max_epsilon == pytest.approx(2 * 4.39445, abs=1e-4)
    assert (collection.period, collection.reports_per_period, collection.keep_reports_days) == (
        "day", 1, 0,
    )  # fmt: skip


def test_the_digest_is_that_of_the_memo_and_ignores_p_q_and_version() -> None:
    collection = made()
    assert collection.memo_digest == memo_digest(WINDOWS)
    other = made(version=2, params=dataclasses.replace(WINDOWS, q=0.7))
    assert other.memo_digest == collection.memo_digest
    assert made(params=dataclasses.replace(WINDOWS, f=0.25)).memo_digest != collection.memo_digest


def test_versions_that_share_the_digest_share_the_permanent_response() -> None:
    old, new = made(), made(version=2, params=dataclasses.replace(WINDOWS, q=0.7))
    first = old.encoder(SECRET).trace("example.org").permanent
    assert new.encoder(SECRET).trace("example.org").permanent == first
    assert f"{old.encoder(SECRET).trace('example.com').permanent:032x}" == (
        "87a101820120044b8200262d12180012"  # docs/protocol.md
    )


def test_budget_mode_draws_a_permanent_response_for_each_period() -> None:
    collection = made(budget=True, max_epsilon=10.0)
    with pytest.raises(ParamsError, match="period must be given in budget mode"):
        collection.encoder(SECRET)
    one, two = (
        collection.encoder(SECRET, period).trace("a").permanent
        for period in ("2026-11-16", "2026-11-17")
    )
    assert one != two
    assert collection.epsilon_infinity == math.inf


def test_a_schedule_changes_p_and_q_from_its_periods_on() -> None:
    collection = made(schedule=[("2026-11-20", 0.5, 0.7), ("2026-12-01", 0.5, 0.6)])
    assert collection.schedule[1] == Phase("2026-12-01", 0.5, 0.6)
    found = [collection.params_for(day).q for day in
             ("2026-11-19", "2026-11-20", "2026-11-30", "2026-12-01", "2027-06-01")]  # fmt: skip
    assert found == [0.75, 0.7, 0.7, 0.6, 0.6]
    assert collection.params_for(None) == WINDOWS
    assert collection.encoder(SECRET, "2026-12-05").params.q == 0.6
    assert collection.encoder(SECRET, "2026-12-05").memo_digest == collection.memo_digest
    with pytest.raises(ParamsError, match="period must be a UTC day"):
        collection.params_for("2026-W47")


def test_one_report_costs_what_the_loudest_phase_costs() -> None:
    loud = made(schedule=[("2026-11-20", 0.25, 0.75)])
    assert loud.epsilon_one == epsilon_one(dataclasses.replace(WINDOWS, p=0.25))


def test_a_one_time_collection_costs_one_report_for_ever() -> None:
    once = made(params=dataclasses.replace(WINDOWS, f=0.0), one_time=True)
    assert once.epsilon_one == once.epsilon_infinity == once.max_epsilon < math.inf


def test_dimensions_that_are_not_declared_become_other() -> None:
    collection = made(dimensions={"os": ["mac", "linux"], "country": ["NZ"]})
    assert collection.cell({"os": "mac", "country": "NZ"}) == (("country", "NZ"), ("os", "mac"))
    assert collection.cell({"os": "plan9", "age": "40"}) == (("country", "other"), ("os", "other"))
    for odd in (None, 7, ["mac"], b"mac", float("nan")):
        assert collection.cell({"os": odd}) == (("country", "other"), ("os", "other"))
    assert collection.cells == 6
    assert made().cell({"os": "mac"}) == ()


BAD: list[tuple[str, Mapping[str, Any], str]] = [
    ("name", {"name": "Homepage"}, r"name must be 1 to 63 .* got 'Homepage'"),
    ("long name", {"name": "a" * 64}, "name must be"),
    ("version", {"version": 0}, "version must be a whole number from 1 to 65535, got 0"),
    ("a truth value", {"version": True}, "version must be a whole number"),
    ("params", {"params": {"k": 1}}, "params must be rappor.Params, got dict"),
    ("kind", {"kind": "text"}, "kind must be one of string, category"),
    ("description", {"description": 7}, "description must be a text"),
    ("control", {"owner": "a\x00b"}, "owner must hold no control characters"),
    ("half a pair", {"owner": "\ud800"}, "owner must be a text"),
    ("sensitivity", {"sensitivity": "secret"}, "sensitivity must be one of low, medium, high"),
    ("reviews", {"reviews": "one"}, "reviews must be a list of texts"),
    ("a review", {"reviews": ["ok", 3]}, r"reviews\[1\] must be a text"),
    ("expires", {"expires": "2027-11-16"}, "expires must be a date such as 2027-11-16"),
    ("platform", {"platform": "phone"}, "platform must be one of device, web"),
    ("dialect", {"dialect": "google2"}, "dialect must be one of rappor-v1"),
    ("no categories", {"kind": "category"}, "h must be 1"),
    ("period", {"period": "month"}, "period must be one of day, week; got 'month'"),
    ("days", {"keep_reports_days": -1}, "keep_reports_days must be a whole number from 0"),
    ("reports", {"reports_per_period": 1.5}, "reports_per_period must be a whole number"),
    ("values", {"max_values": 0}, "max_values must be a whole number from 1"),
    ("NaN", {"max_epsilon": float("nan")}, "max_epsilon must be a number above 0, got nan"),
    ("inf", {"max_epsilon": float("inf")}, "max_epsilon must be a number above 0, got inf"),
    ("group", {"group": "A B"}, "group must be 1 to 63"),
    ("null", {"null_reports": 1}, "null_reports must be true or false, got 1"),
    ("expected", {"expected_reports": 0}, "expected_reports must be a whole number from 1"),
    ("how values change", {"values": "often"}, "values must be one of fixed, slow, fast"),
    ("upload", {"upload": 7}, "upload must be a text"),
    ("dimension name", {"dimensions": {"Country": ["NZ"]}}, r"dimensions.Country: a name is"),
    ("no values", {"dimensions": {"os": []}}, "dimensions.os must be 1 to 256 different"),
    ("twice", {"dimensions": {"os": ["a", "a"]}}, "dimensions.os must be 1 to 256 different"),
    ("other", {"dimensions": {"os": ["other"]}}, r"dimensions.os\[0\] must be .* not 'other'"),
    ("key signs", {"dimensions": {"os": ["a", "a=b;c"]}}, r"dimensions.os\[1\] must be 1 to 64"),
    ("a text", {"dimensions": {"os": "mac"}}, "dimensions.os must be a list of texts"),
    ("phase", {"schedule": [("2026-11-20", 0.5)]}, r"schedule\[0\] must be \(first period"),
    ("phase period", {"schedule": [("2026-W47", 0.5, 0.7)]}, r"schedule\[0\]: period must be"),
    ("phase q", {"schedule": [("2026-11-20", 0.5, 0.5)]}, r"schedule\[0\]: p and q must satisfy"),
    ("order", {"schedule": [("2026-11-20", 0.5, 0.7)] * 2}, r"schedule\[1\]: .* come in order"),
    ("one-time noise", {"one_time": True}, "one_time needs f = 0, or p = 0 with q = 1"),
    ("budget twice", {"budget": True, "max_epsilon": 1, "reports_per_period": 2},
     "budget allows one report in a period"),
    ("no end", {"budget": True}, "max_epsilon must be given if ε has no limit"),
    ("ranges of strings", {"ranges": Ranges((1,))}, "ranges belong to kind 'ordinal'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_what_is_wrong_is_refused_by_name(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        made(**given)


@pytest.mark.parametrize("other", ["budget", "null_reports"])
def test_one_time_excludes_modes_of_many_reports(other: str) -> None:
    params = dataclasses.replace(WINDOWS, f=0.0)
    with pytest.raises(ParamsError, match=f"one_time and {other} exclude each other"):
        made(params=params, one_time=True, max_epsilon=1.0, **{other: True})


def test_every_kind_finds_its_parts() -> None:
    one_hot = Params(3, 1, 1, 0.5, 0.5, 0.75)
    category = made(kind="category", params=one_hot, categories=["a", "b", "c"])
    assert category.categories == ("a", "b", "c")
    ordinal = made(kind="ordinal", params=one_hot, ranges=Ranges((18, 65)))
    boolean = made(kind="boolean", params=dataclasses.replace(one_hot, k=1))
    bits = made(kind="bits", params=one_hot)
    for collection, value in ((category, "b"), (ordinal, 40), (boolean, True), (bits, 5)):
        assert collection.encoder(SECRET).encode(value).bits < 1 << collection.params.k
    with pytest.raises(ParamsError, match="k must be at least 4 for 4 categories"):
        made(kind="category", params=one_hot, categories=["a", "b", "c", "d"])


def test_a_collection_does_not_change_and_can_be_a_key() -> None:
    collection = made(dimensions={"os": ["mac"]})
    with pytest.raises(dataclasses.FrozenInstanceError):
        collection.version = 2  # type: ignore[misc]
    assert {collection: 1}[made(dimensions={"os": ["mac"]})] == 1
