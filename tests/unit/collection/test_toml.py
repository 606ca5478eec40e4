"""A collection's TOML: what is read, and what is refused with the path of its key."""

import datetime
import json
from fractions import Fraction
from pathlib import Path

import pytest

from rappor.collection import Collection, Registry
from rappor.errors import ParamsError
from rappor.params import Params

SMALL = 'name = "homepage"\nversion = 1\nkind = "string"\n'
PRESET = '[params]\npreset = "windows"\n'
SIX = "[params]\nk = 8\nh = 2\nm = 4\nf = 0.5\np = 0.5\nq = 0.75\n"

FULL = """
name = "age"
version = 7
kind = "ordinal"
description = "How old accounts are, by magnitude."
owner = "accounts@example.org"
sensitivity = "high"
reviews = ["https://example.org/review/12"]
expires = 2027-06-30
platform = "web"
dialect = "google"
period = "week"
keep_reports_days = 30
reports_per_period = 2
max_values = 3
max_epsilon = 6.5
group = "accounts"
null_reports = true
expected_reports = 100000
values = "slow"
shared = true
clients_per_person = 2
account_secret = true
upload = "https://example.org/v1/reports"

[params]
k = 5
h = 1
m = 1
f = 0.5
p = 0.5
q = 0.75

[ranges]
magnitudes = { base = 10, low = -1, high = 2 }

[dimensions]
country = ["NZ", "AU"]

[[schedule]]
from = "2026-W50"
p = 0.5
q = 0.7
"""


def test_every_field_is_read_and_written_back() -> None:
    collection = Collection.from_toml(FULL)
    assert collection.expires == datetime.date(2027, 6, 30)
    assert collection.ranges is not None
    assert collection.ranges.edges == (Fraction(1, 10), 1, 10, 100)
    assert collection.params == Params(5, 1, 1, 0.5, 0.5, 0.75)
    assert collection.schedule == (("2026-W50", 0.5, 0.7),)
    assert collection.dimensions == {"country": ("NZ", "AU")}
    assert '"1/10", 1, 10, 100' in collection.to_toml()
    assert Collection.from_toml(collection.to_toml()) == collection


def test_old_field_names_are_read_and_the_new_ones_written() -> None:
    old = "most_values = 3\nmost_epsilon = 6.5\n"
    collection = Collection.from_toml(SMALL + old + PRESET)
    assert collection == Collection.from_toml(SMALL + old.replace("most", "max") + PRESET)
    assert (collection.max_values, collection.max_epsilon) == (3, 6.5)
    assert "most" not in collection.to_toml()
    for both in ("max_values = 3\n", "max_epsilon = 6.5\n"):
        with pytest.raises(ParamsError, match=r"^most_.* is the old name of max_.*: give max_"):
            Collection.from_toml(SMALL + old + both + PRESET)


def test_params_are_six_numbers_or_a_preset() -> None:
    assert Collection.from_toml(SMALL + PRESET).params == Params.preset("windows")
    assert Collection.from_toml(SMALL + SIX).params == Params(8, 2, 4, 0.5, 0.5, 0.75)


def test_params_are_read_from_a_plan_beside_the_file(tmp_path: Path) -> None:
    plans = [Params(64, 1, 16, 0.25, 0.25, 0.5), Params(32, 1, 16, 0.25, 0.25, 0.5)]
    document = {"plans": [{"params": each.to_dict()} for each in plans]}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    file = tmp_path / "homepage.toml"
    file.write_text(SMALL + '[params]\nplan = "plan.json"\n')
    assert Collection.read(file).params == plans[0]
    file.write_text(SMALL + '[params]\nplan = "plan.json"\nchoice = 2\n')
    assert Collection.read(file).params == plans[1]
    for choice in ("0", "3", "true", "1.0"):
        file.write_text(SMALL + f'[params]\nplan = "plan.json"\nchoice = {choice}\n')
        with pytest.raises(ParamsError, match="choice must be a whole number from 1 to 2"):
            Collection.read(file)
    with pytest.raises(ParamsError, match=r"use Collection.read\(path\)"):
        Collection.from_toml(file.read_text())
    for text, message in (
        ("[]", "is not what rappor plan --json writes"),
        ("{}", "is not what rappor plan --json writes"),
        ('{"plans": []}', "holds no plans"),
        ('{"plans": [{}]}', "is not what rappor plan --json writes"),
        ('{"plans": [{"params": {"k": NaN}}]}', "finite"),
        ("", "not valid JSON"),
    ):
        (tmp_path / "plan.json").write_text(text)
        file.write_text(SMALL + '[params]\nplan = "plan.json"\n')
        with pytest.raises(ParamsError, match=message):
            Collection.read(file)


REFUSED = [
    ("x = 1\n" + SMALL + PRESET, "^x is not a key of a collection"),
    ('"a b" = 1\n' + SMALL + PRESET, "^'a b' is not a key of a collection"),
    (PRESET, "^name is missing: a collection has name, version, kind, params"),
    (SMALL, "^params is missing"),
    (SMALL + "params = 3\n", "^params must be a table with k, h, m"),
    (SMALL + SIX + "z = 1\n", "^params.z is not one of k, h, m"),
    (SMALL + SIX.replace("q = 0.75", ""), "^params.q is missing"),
    (SMALL + SIX.replace("0.75", "nan"), "^params.q must be a number with 0 <= q <= 1, got nan"),
    (SMALL + SIX.replace("k = 8", 'k = "8"'), "^params.k must be a whole number .* got '8'"),
    (SMALL + SIX.replace("k = 8", "k = 8.0"), "^params.k must be a whole number .* got 8.0"),
    (SMALL + PRESET + "k = 8\n", "^params.k does not go together with params.preset"),
    (SMALL + PRESET.replace("windows", "linux"), "^params.preset must be one of windows"),
    (SMALL + "[params]\nplan = 3\n", "^params.plan must be the name of a file"),
    (SMALL + "max_epsilon = nan\n" + PRESET, "^max_epsilon must be a number above 0, got nan"),
    (SMALL + "max_epsilon = 0\n" + PRESET, "^max_epsilon must be a number above 0, got 0"),
    (SMALL + 'max_values = "3"\n' + PRESET, "^max_values must be a whole number"),
    (SMALL + 'expires = "2027-01-01"\n' + PRESET, "^expires must be a date"),
    (SMALL + "expires = 2027-01-01T00:00:00Z\n" + PRESET, "^expires must be a date"),
    (SMALL + PRESET + "[dimensions]\nos = [1]\n", r"^dimensions.os\[0\] must be a text"),
    (SMALL + PRESET + "[ranges]\nedges = 3\n", "^ranges.edges must be a list of numbers"),
    (SMALL + PRESET + "[ranges]\nedges = [nan]\n", "^ranges.edges must be finite numbers, got nan"),
    (SMALL + PRESET + '[ranges]\nedges = ["1/0"]\n', r"^ranges.edges\[0\] must be a number or a"),
    (SMALL + PRESET + "[ranges]\n", "^ranges must have either edges or magnitudes"),
    (SMALL + PRESET + "[ranges]\nsteps = 1\n", "^ranges.steps is not one of edges, magnitudes"),
    (SMALL + PRESET + "[ranges.magnitudes]\nto = 1\n", "^ranges.magnitudes.to is not one of base"),
    (SMALL + "schedule = 1\n" + PRESET, r"^schedule must be written as \[\[schedule\]\]"),
    (SMALL + PRESET + "[[schedule]]\np = 0.5\nq = 0.7\n", r"^schedule\[0\].from is missing"),
    (SMALL + PRESET + "[[schedule]]\nfrom = 2026-12-01\np = 0.5\nq = 0.7\nr = 1\n",
     r"^schedule\[0\].r is not one of from, p, q"),
    (SMALL + PRESET + "[[schedule]]\nfrom = 2026-12-01\np = 0.5\nq = inf\n",
     r"^schedule\[0\]: q must be a number"),
    (SMALL + SMALL + PRESET, "^not valid TOML: Cannot overwrite a value"),
    ("name = ", "^not valid TOML"),
    ("a = " + "[" * 5000, "^not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_wrong_is_refused_with_its_path(text: str, message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        Collection.from_toml(text)


def test_a_day_of_a_schedule_may_be_a_date() -> None:
    text = SMALL + PRESET + "[[schedule]]\nfrom = 2026-12-01\np = 0.5\nq = 0.7\n"
    assert Collection.from_toml(text).schedule[0].first_period == "2026-12-01"


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text("x = 1")
    with pytest.raises(ParamsError, match=r"broken\.toml: x is not a key"):
        Collection.read(file)
    with pytest.raises(ParamsError, match="cannot read"):
        Collection.read(tmp_path / "absent.toml")


def test_a_registry_has_every_version_and_gives_the_newest(tmp_path: Path) -> None:
    for version in (2, 10, 1):
        text = (SMALL + PRESET).replace("version = 1", f"version = {version}")
        (tmp_path / f"homepage-{version}.toml").write_text(text)
    (tmp_path / "notes.txt").write_text("not a collection")
    registry = Registry.open(tmp_path)
    assert [each.version for each in registry.all()] == [1, 2, 10]
    assert registry.get("homepage").version == 10
    assert registry.get("homepage", 2).version == 2
    assert (len(registry), "homepage" in registry, "x" in registry) == (3, True, False)
    assert [each.version for each in registry.newest()] == [10]
    with pytest.raises(ParamsError, match="has no version 3, only 1, 2, 10"):
        registry.get("homepage", 3)
    for name in ("x", None, ["homepage"]):
        with pytest.raises(ParamsError, match="there is no collection"):
            registry.get(name)  # type: ignore[arg-type]


def test_a_registry_refuses_one_version_twice_and_what_is_no_folder(tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(SMALL + PRESET)
    with pytest.raises(ParamsError, match="homepage has version 1 twice"):
        Registry.open(tmp_path)
    with pytest.raises(ParamsError, match="is not a folder"):
        Registry.open(tmp_path / "a.toml")
    with pytest.raises(ParamsError, match="a registry must hold Collections, got str"):
        Registry(["homepage"])  # type: ignore[list-item]
