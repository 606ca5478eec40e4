"""Definitions for clients: what is exported, and what every client refuses with which code."""

import datetime
import json
from dataclasses import fields as fields_of
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from rappor.client.arguments import gather
from rappor.collection import Collection, client_schema
from rappor.collection.client_json import CODES, OPTIONAL, REQUIRED, number_text
from rappor.errors import DefinitionError, ParamsError
from rappor.params import Params

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "client-definitions.json").read_text("utf-8")
)
GOOD = [*VECTORS["accepted"], *VECTORS["other_dialects"]]
BAD = [*VECTORS["refused"], *VECTORS["invalid"], *VECTORS["repeated"]]
DOCS = Path(__file__).parents[3] / "docs"
WINDOWS = Params.preset("windows")


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case["about"])
def test_a_vector_is_accepted(case: dict[str, str]) -> None:
    collection = Collection.from_client_json(case["text"])
    assert collection.to_client_json() == case["canonical"]
    assert collection.memo_digest == case["memo_digest"]
    assert Collection.from_client_json(case["canonical"]) == collection


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case['code']}-{case['path']}")
def test_a_vector_is_refused_with_its_code_and_path(case: dict[str, str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        Collection.from_client_json(case["text"])
    assert (caught.value.code, caught.value.path) == (case["code"], case["path"])


def test_vectors_have_every_code_that_python_can_give() -> None:
    assert {case["code"] for case in BAD} == set(CODES) - {"unsupported"}


def test_what_only_operators_need_is_not_exported() -> None:
    collection = Collection(
        "homepage",
        2,
        WINDOWS,
        description="Which page a browser starts with.",
        owner="MARKER",
        reviews=("MARKER",),
        upload="https://MARKER.example.org/v1/reports",
        sensitivity="high",
        keep_reports_days=77,
        expected_reports=123456789,
        shared=True,
        account_secret=True,
        platform="web",
        expires=datetime.date(2027, 6, 30),
    )
    text = collection.to_client_json()
    assert json.loads(text)["expires"] == "2027-06-30"
    for hidden in ("MARKER", "high", "77", "123456789", "shared", "account", "web", "reviews"):
        assert hidden not in text


def test_a_field_that_clients_use_is_in_the_format() -> None:
    """What the format leaves out is listed here: a new field is given its place."""
    left_out = {
        *("owner", "sensitivity", "reviews", "on_expiry", "platform", "keep_reports_days"),
        *("expected_reports", "values", "shared", "account_secret", "upload"),
    }
    assert {field.name for field in fields_of(Collection)} == {*REQUIRED, *OPTIONAL, *left_out}
    client = Path(__file__).parents[3] / "src" / "rappor" / "client"
    source = "".join(file.read_text(encoding="utf-8") for file in client.glob("*.py"))
    assert [name for name in left_out if f"collection.{name}" in source] == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (123456789.0, "123456789"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (333333333.33333329, "333333333.3333333"),
        (9007199254740992.0, "9007199254740992"),
    ],
)
def test_numbers_are_written_as_rfc_8785_asks(number: float, text: str) -> None:
    assert number_text(number) == text
    assert float(text) == number


def test_an_error_is_a_params_error_that_names_the_field() -> None:
    text = Collection("homepage", 1, WINDOWS).to_client_json().replace('"k":128', '"k":0')
    with pytest.raises(ParamsError, match=r"^params\.k: k must be a whole number from 1 to 4096"):
        Collection.from_client_json(text)


def test_the_schema_of_the_site_is_made_from_the_limits_of_the_fields() -> None:
    text = json.dumps(client_schema.document(), indent=2, ensure_ascii=False) + "\n"
    written = (DOCS / "reference" / "collection.schema.json").read_text(encoding="utf-8")
    assert written == text, "write it again: python -m rappor.collection.client_schema"


def test_the_schema_accepts_every_accepted_vector() -> None:
    validator = Draft202012Validator(client_schema.document())
    Draft202012Validator.check_schema(client_schema.document())
    for case in GOOD:
        assert list(validator.iter_errors(json.loads(case["canonical"]))) == [], case["about"]


def test_the_schema_refuses_what_one_field_alone_shows_to_be_wrong() -> None:
    """It cannot see the calendar, the order of edges, characters of texts, or a double's range.

    Python's `$` also matches before a last new line; that of ECMAScript, which JSON Schema asks
    for, does not.
    """
    validator = Draft202012Validator(client_schema.document())
    unseen = [
        case["path"]
        for case in VECTORS["refused"]
        if case["code"] != "contradiction"
        and r"homepage\n" not in case["text"]
        and validator.is_valid(json.loads(case["text"], parse_int=float))
    ]
    beyond = {"description", "expires", "categories", "ranges.edges", "schedule[0].from",
              "max_epsilon", "fields[3].ranges.edges"}  # fmt: skip
    assert set(unseen) <= beyond, unseen


def test_the_guide_lists_every_code_and_field() -> None:
    text = (DOCS / "clients.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"| `{code}` |" not in text] == []
    assert [name for name in (*REQUIRED, *OPTIONAL) if f"`{name}`" not in text] == []


def test_a_client_opens_an_exported_file(tmp_path: Path) -> None:
    definition = Collection("homepage", 3, WINDOWS, description="Which page a browser starts with.")
    file = tmp_path / "homepage.json"
    file.write_text(definition.to_client_json())
    assert gather([file]) == {"homepage": definition}
    file.write_text(definition.to_client_json().replace('"kind"', '"kinds"'))
    with pytest.raises(DefinitionError, match=r"homepage\.json: kinds: is not a field.*kind\?"):
        gather([file])
