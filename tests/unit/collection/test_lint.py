"""lint: one bad definition for each caution of the paper, each with its own stable code."""

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import pytest

from rappor.collection import Collection, LintFinding, Registry, lint, lint_all
from rappor.collection.findings import errors
from rappor.collection.lint import lint_text
from rappor.collection.template import draft
from rappor.mechanism import Field, Ranges
from rappor.params import Params
from rappor.privacy import add_up, epsilon_one, spend
from rappor.privacy.rounding import up

VECTORS = Path(__file__).parents[2] / "vectors" / "collections"
TODAY = datetime.date(2026, 11, 16)
GOOD = Collection.read(VECTORS / "good.toml")

SPENT = spend(5.0, 365, GOOD.params)  # a day's share of 5 until 2027-11-16
BUDGET: dict[str, Any] = {"budget": True, "max_epsilon": 5.0, "params": SPENT.periods[0]}

CAUTIONS = {  # the numbers are those of docs/paper-map.md; all come from §6.1 of the paper
    "no-expiry": ("R63", "error"),
    "several-clients": ("R64", "error"),
    "correlated-group": ("R65", "error"),
    "joint-predicates": ("R65", "error"),
    "too-much-in-total": ("R66", "error"),
    "small-cells": ("R67", "error"),
    "forgetful-platform": ("R68", "warning"),
    "trackable-value": ("R69", "error"),
    "no-encryption": ("R70", "error"),
    "fast-values": ("R71", "error"),
}


def judged(path: Path) -> tuple[LintFinding, ...]:
    """What lint says about a file, or about a folder."""
    read = Registry.open(path).all() if path.is_dir() else [Collection.read(path)]
    return lint_all(read, TODAY)


def codes(collection: Collection, *others: Collection) -> list[str]:
    return [each.code for each in lint(collection, others, TODAY)]


def changed(**given: Any) -> Collection:
    return dataclasses.replace(GOOD, **given)


def test_there_is_a_bad_definition_for_every_caution_of_the_paper() -> None:
    assert {requirement for requirement, _ in CAUTIONS.values()} == {
        f"R{number}" for number in range(63, 72)
    }
    files = {path.stem for path in VECTORS.iterdir()}
    assert files == {"good", *CAUTIONS}


@pytest.mark.parametrize("code", CAUTIONS)
def test_a_bad_definition_has_its_own_code_and_no_other(code: str) -> None:
    path = VECTORS / code
    found = judged(path if path.is_dir() else path.with_suffix(".toml"))
    _, severity = CAUTIONS[code]
    assert [(each.code, each.source, each.severity) for each in found] == [(code, "§6.1", severity)]
    assert found[0].text.endswith(".")
    assert found[0].way_out.endswith(".")
    assert found[0].collection == "engine v1"


def test_a_good_definition_has_no_finding() -> None:
    assert judged(VECTORS / "good.toml") == ()


def test_each_way_out_is_one() -> None:
    """What the findings tell people to do makes them go away."""
    ways: list[Collection] = [
        changed(clients_per_person=3, account_secret=True),
        changed(platform="web", account_secret=True),
        changed(upload="https://example.org/v1/reports"),
        changed(upload="http://localhost:8080/v1/reports"),
        changed(upload="http://[::1]:8080/"),
        changed(values="fast", **BUDGET),
        changed(values="slow", max_values=2, max_epsilon=8.8),
        changed(shared=True, **BUDGET),
        changed(dimensions={"os": ("mac", "linux")}),
    ]
    assert [codes(each) for each in ways] == [[]] * len(ways)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"description": " "}, ["no-description"]),
        ({"owner": ""}, ["no-owner"]),
        ({"sensitivity": "high"}, ["no-review"]),
        ({"sensitivity": "high", "reviews": ["https://example.org/7"]}, []),
        ({"expires": TODAY}, ["expired"]),
        ({"expires": TODAY + datetime.timedelta(days=1)}, ["expires-soon"]),
        ({"expires": TODAY + datetime.timedelta(days=14)}, ["expires-soon"]),
        ({"expires": TODAY + datetime.timedelta(days=15)}, []),
        ({"on_expiry": "keep-counts"}, ["counts-kept"]),
        ({"expires": TODAY + datetime.timedelta(days=800)}, ["expires-far-away"]),
        ({"keep_reports_days": 90}, []),
        ({"keep_reports_days": 91}, ["reports-kept-long"]),
        ({"expected_reports": None}, ["no-expected-reports"]),
        ({"expected_reports": 800}, []),
        ({"expected_reports": 799}, ["small-cells"]),
        ({"upload": "ftp://example.org"}, ["no-encryption"]),
        ({"upload": "//"}, ["no-encryption"]),
        ({"upload": "http://localhost.example.org/"}, ["no-encryption"]),
        ({"upload": "http://[bad"}, ["no-encryption"]),
        ({"values": "slow"}, ["values-run-out"]),
        ({"max_epsilon": 1.0}, ["cap-below-one-report"]),
        ({"params": Params(128, 2, 8, 0.5, 0.0, 1.0)}, ["linkable-reports"]),
        ({"params": Params(128, 2, 8, 0.0, 0.5, 0.75), "max_epsilon": 5.0},
         ["no-permanent-noise"]),
        ({"params": Params(128, 2, 8, 0.0, 0.5, 0.75), "max_epsilon": 5.0, "one_time": True}, []),
        ({"params": Params(128, 4, 8, 0.1, 0.5, 0.75), "max_epsilon": 20.0}, ["large-epsilon"]),
        ({"schedule": [("2026-12-01", 0.5, 0.7)]}, []),
        ({"schedule": [("2026-12-01", 0.5, 0.8)]}, ["schedule-grows"]),
        ({"schedule": [("2026-12-01", 0.5, 0.6), ("2027-01-01", 0.5, 0.7)]}, ["schedule-grows"]),
    ],
)  # fmt: skip
def test_plain_sense_has_codes_too(given: dict[str, Any], expected: list[str]) -> None:
    assert codes(changed(**given)) == expected


def test_bits_that_nobody_uses_and_nulls_that_look_like_values_are_warned_of() -> None:
    one_hot = Params(4, 1, 1, 0.5, 0.5, 0.75)
    shape = {"params": one_hot, "max_epsilon": 5.0}
    assert codes(changed(kind="category", categories=("a", "b"), **shape)) == ["unused-bits"]
    assert codes(changed(kind="category", categories=tuple("abcd"), **shape)) == []
    assert codes(changed(kind="ordinal", ranges=Ranges((1, 2)), **shape)) == ["unused-bits"]
    boolean = {"kind": "boolean", "params": Params(1, 1, 1, 0.5, 0.5, 0.75), "max_epsilon": 3.0}
    assert codes(changed(null_reports=True, **boolean)) == ["null-is-a-value"]


def test_one_time_reports_of_several_devices_add_up_whatever_they_share() -> None:
    given = {"one_time": True, "clients_per_person": 2, "account_secret": True}
    drawn = changed(params=Params(128, 2, 8, 0.0, 0.5, 0.75), max_epsilon=2.2, **given)
    assert codes(drawn) == ["several-one-time"]
    kept = changed(params=Params(128, 2, 8, 0.5, 0.0, 1.0), **given)
    assert codes(kept) == []


def test_the_joint_epsilon_of_a_group_is_shown_and_is_an_error_above_ten() -> None:
    one, two = changed(group="search"), changed(name="start_page", group="search")
    (found,) = lint(one, [two], TODAY)
    assert (found.code, found.severity) == ("correlated-group", "warning")
    assert "ε = 8.789" in found.text  # 2 x 4.39445, rounded up
    third = changed(name="new_tab", group="search")
    (found,) = lint(one, [two, third], TODAY)
    assert (found.code, found.severity) == ("correlated-group", "error")
    assert "ε = 13.184" in found.text
    assert codes(one, changed(name="other", group="else")) == []


BITS = Params(2, 1, 1, 0.5, 0.5, 0.75)


def test_a_group_of_different_questions_is_told_to_be_one_tuple() -> None:
    page = changed(name="page", group="g")
    channel: dict[str, Any] = {"kind": "category", "params": BITS, "max_epsilon": 2.2}
    beta = changed(name="beta", group="g", categories=("yes", "no"), **channel)
    (found,) = lint(page, [beta], TODAY)
    assert 'one tuple (kind = "tuple") with the fields page, beta' in found.way_out
    fields = (Field("page", "string"), Field("beta", "category", categories=("yes", "no")))
    assert codes(changed(kind="tuple", fields=fields)) == []  # the way out is one


@pytest.mark.parametrize(
    "others",
    [
        [{"kind": "category", "categories": ("a", "b"), "params": BITS}] * 2,  # one question
        [{"kind": "bits"}],  # predicates cannot be a field
        [{}] * 4,  # five fields are too many
    ],
)
def test_a_group_that_cannot_be_one_tuple_is_not_told_to(others: list[dict[str, Any]]) -> None:
    rest = [changed(name=f"c{n}", group="g", **each) for n, each in enumerate(others)]
    found = next(
        each for each in lint(changed(group="g"), rest, TODAY) if each.code == "correlated-group"
    )
    assert "tuple" not in found.way_out


def test_a_field_that_another_collection_asks_for_is_warned_of() -> None:
    fields = (Field("page", "string"), Field("beta", "category", categories=("yes", "no")))
    both = changed(name="install", kind="tuple", fields=fields)
    assert codes(both, changed(name="page")) == ["field-asked-twice"]
    listed: dict[str, Any] = {"kind": "category", "params": BITS, "max_epsilon": 2.2}
    assert codes(both, changed(name="c", categories=("no", "yes"), **listed)) == [
        "field-asked-twice"
    ]
    assert codes(both, changed(name="c", categories=("no", "perhaps"), **listed)) == []
    grouped = dataclasses.replace(both, group="g")
    assert codes(grouped, changed(name="page", group="g")) == ["correlated-group"]


def test_identical_lists_without_a_group_are_warned_of() -> None:
    shape = {"kind": "category", "params": Params(2, 1, 1, 0.5, 0.5, 0.75), "max_epsilon": 2.2}
    one = changed(categories=("a", "b"), **shape)
    two = changed(name="two", categories=("b", "a"), **shape)
    assert codes(one, two) == ["identical-predicates"]
    grouped = [dataclasses.replace(each, group="g") for each in (one, two)]
    assert codes(*grouped) == ["correlated-group"]


def test_one_client_has_one_ledger_over_all_collections() -> None:
    six = [changed(name=f"c{number}") for number in range(6)]
    assert codes(*six) == []  # 6 x 4.394 = 26.4
    seventh = changed(name="c6")
    (found,) = lint(seventh, six, TODAY)
    assert (found.code, found.source) == ("too-much-in-total", "§6.1")
    assert "all 7 collections may spend ε = 30.762" in found.text
    many = [changed(name=f"c{n}", max_epsilon=1.1) for n in range(21)]
    assert codes(*many[:20]) == []
    assert codes(*many) == ["too-much-in-total"]


def test_older_versions_of_a_collection_are_not_counted_beside_it() -> None:
    history = [changed(version=number) for number in range(1, 9)]
    assert codes(history[-1], *history) == []
    assert lint_all(history, TODAY) == ()


def test_what_holds_for_all_together_is_said_once() -> None:
    found = lint_all([changed(name=f"c{number}", group="g") for number in range(8)], TODAY)
    assert sorted(each.code for each in found) == ["correlated-group", "too-much-in-total"]


def test_errors_come_first_and_can_be_taken_out() -> None:
    found = lint(changed(platform="web", owner="", expires=None), today=TODAY)
    assert [each.severity for each in found] == ["error", "error", "warning"]
    assert [each.code for each in errors(found)] == ["no-owner", "no-expiry"]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("string", {}),
        ("boolean", {}),
        ("category", {"categories": ("light", "dark")}),
        ("ordinal", {"ranges": Ranges((18, 65))}),
        ("bits", {"params": Params(3, 1, 1, 0.5, 0.5, 0.75)}),
        ("string", {"dimensions": {"country": ("NZ", "AU")}, "params": Params.preset("chrome")}),
    ],
)  # fmt: skip
def test_a_new_collection_of_every_kind_lints_clean(kind: str, given: dict[str, Any]) -> None:
    made = draft("thing", kind=kind, owner="someone", today=TODAY, **given)
    assert lint(made, today=TODAY) == ()


def test_today_is_the_clock_of_the_machine_when_none_is_given() -> None:
    past = changed(expires=datetime.date(2020, 1, 1))
    assert [each.code for each in lint(past)] == ["expired"]


def test_a_budget_lasts_to_the_end_or_is_warned_of() -> None:
    assert codes(changed(**BUDGET)) == []
    assert codes(changed(**(BUDGET | {"max_epsilon": 4.9}))) == ["budget-runs-out"]
    assert lint(changed(**BUDGET), today=TODAY + datetime.timedelta(days=100)) == ()
    (earlier,) = lint(changed(**BUDGET), today=TODAY - datetime.timedelta(days=9))
    assert "until 2027-11-16 costs ε = 5.12" in earlier.text
    late = changed(budget=True, max_epsilon=11.0, schedule=[("2026-11-26", 0.5, 0.501)])
    # 10 days at 1.0743, then 355 at the ε of q = .501
    (found,) = lint(late, today=TODAY)
    each = epsilon_one(late.params_for("2026-12-01"))
    assert f"ε = {up(add_up([(late.epsilon_one, 10), (each, 355)]))}" in found.text
    past = lint(late, today=datetime.date(2026, 11, 26))
    assert past == ()  # only the quiet phase is left


# A definition that would let anyone fill the disk.


def errors_with(dimensions: int, values: int) -> list[str]:
    made = Collection(
        "homepage",
        1,
        Params.preset("windows"),
        description="the page that opens first",
        owner="team@example.org",
        expires=datetime.date(2027, 6, 1),
        dimensions={
            f"d{number}": tuple(f"v{each}" for each in range(values))
            for number in range(dimensions)
        },
    )
    return [each.code for each in lint(made, today=TODAY) if each.severity == "error"]


def test_dimensions_that_multiply_are_an_error_although_nobody_expects_a_number() -> None:
    assert errors_with(2, 30) == []
    assert errors_with(6, 30) == ["small-cells"]
    assert errors_with(8, 100) == ["small-cells"]


def test_counts_that_are_too_large_for_a_collector_are_named() -> None:
    """The definition of an attack: a report of 512 bytes rewrote 32 KB, a batch of them 33 MB."""

    def severities(values: int, **given: int) -> list[str]:
        large = changed(
            params=dataclasses.replace(GOOD.params, **given),
            dimensions={"region": tuple(f"r{i}" for i in range(values))} if values else {},
            expected_reports=10**9,
        )
        return [each.severity for each in lint(large, (), TODAY) if each.code == "large-counts"]

    assert severities(32, k=4096, m=1024) == ["error"]
    assert severities(0, k=4096, m=1024) == ["warning"]  # 32 MiB
    assert severities(0, k=4096, m=256) == []  # 8 MiB
    assert severities(250, k=128, m=32) == []  # countries of the world, as Chrome had it
    assert severities(250, k=256, m=64) == ["warning"]


MINIMAL = 'name = "theme"\nversion = 1\nkind = "string"\nparams = { preset = "windows" }\n'


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", ["values-not-stated"]),
        ("null_reports = true", ["values-not-stated"]),
        ('values = "fixed"', []),
        ("max_values = 1", []),
        ("most_values = 3", ["renamed-field"]),
        ("budget = true\nmax_epsilon = 5", []),
    ],
)
def test_a_default_that_silences_changed_values_is_chosen_and_not_inherited(
    more: str, found: list[str]
) -> None:
    text = MINIMAL + more
    assert [finding.code for finding in lint_text(Collection.from_toml(text), text)] == found


def test_the_finding_says_what_happens_and_what_each_value_costs() -> None:
    (finding,) = lint_text(Collection.from_toml(MINIMAL), MINIMAL)
    assert finding.severity == "warning"
    assert finding.text.endswith("after a change it falls silent.")
    assert finding.way_out.endswith("Each value costs ε = 4.395.")
    text = MINIMAL + "null_reports = true"
    (finding,) = lint_text(Collection.from_toml(text), text)
    assert finding.text.endswith("after a change it sends null reports.")


def test_a_drafted_collection_states_how_its_values_change() -> None:
    text = draft("theme", owner="us").to_toml()
    assert list(lint_text(Collection.from_toml(text), text)) == []


def test_a_web_collection_is_told_what_cleared_storage_costs() -> None:
    """A year with a clearing a month, in ε; and for one-time reports, that they are repeated."""
    (found,) = lint(changed(platform="web"), today=TODAY)
    assert f"costs up to ε = {up(GOOD.max_epsilon)} again" in found.text
    assert f"ε = {up(add_up([(GOOD.max_epsilon, 12)]))}." in found.text
    assert "account_secret = true" in found.way_out
    once = changed(
        platform="web", one_time=True, params=Params(128, 2, 8, 0, 0.5, 0.75), max_epsilon=2.2
    )
    (found,) = lint(once, today=TODAY)
    assert "reports again" in found.text
    assert f"ε = {up(add_up([(2.2, 12)]))}." in found.text
