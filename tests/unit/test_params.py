"""Params: what is accepted, what is refused and in which words, digests, presets, files."""

import dataclasses
import hashlib
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rappor.errors import ParamsError
from rappor.params import FIELDS, PRESETS, Params

GOOD: dict[str, Any] = {"k": 128, "h": 2, "m": 16, "f": 0.5, "p": 0.25, "q": 0.75}
PARAMS = Params(**GOOD)
# reports/params.csv of the reference data made with google/rappor's own tools.
GOOGLE_CSV = "k,h,m,p,q,f\n32,2,64,0.5,0.75,0.5\n"


def refusal(**changes: Any) -> str:
    """The message with which GOOD, changed, is refused."""
    with pytest.raises(ParamsError) as caught:
        Params(**(GOOD | changes))
    return str(caught.value)


# Values that are refused.

PROBABILITY_RANGES = {"f": "0 <= f < 1", "p": "0 <= p <= 1", "q": "0 <= q <= 1"}
WHOLE_RANGES = {"k": "from 1 to 4096", "h": "from 1 to 16", "m": "from 1 to 1024"}
NOT_PROBABILITIES = [
    math.nan,
    math.inf,
    -math.inf,
    -0.1,
    1.1,
    -5e-324,
    math.nextafter(1, 2),
    2,
    10**400,
    "0.5",
    b"0.5",
    None,
    True,
    False,
    0.5j,
    Decimal("0.5"),
    [0.5],
    np.float64("nan"),
    np.True_,
]
NOT_WHOLE = [
    0,
    -1,
    10**9,
    1.0,
    0.5,
    math.nan,
    math.inf,
    "8",
    None,
    True,
    Fraction(8),
    np.float64(8),
]


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@pytest.mark.parametrize("value", NOT_PROBABILITIES, ids=shown)
@pytest.mark.parametrize("field", ["f", "p", "q"])
def test_what_is_no_probability_is_refused_by_field_value_and_range(
    field: str, value: object
) -> None:
    message = refusal(**{field: value})
    assert message.startswith(f"{field} must be a number")
    assert shown(value) in message
    assert PROBABILITY_RANGES[field] in message


@pytest.mark.parametrize("value", NOT_WHOLE, ids=shown)
@pytest.mark.parametrize("field", ["k", "h", "m"])
def test_what_is_no_whole_number_in_range_is_refused_by_field_value_and_range(
    field: str, value: object
) -> None:
    message = refusal(**{field: value})
    assert message.startswith(f"{field} must be a whole number")
    assert f"got {shown(value)}" in message
    assert WHOLE_RANGES[field] in message


@pytest.mark.parametrize(("field", "value"), [("k", 4097), ("h", 17), ("m", 1025)])
def test_one_above_the_largest_is_refused(field: str, value: int) -> None:
    message = refusal(**{field: value})
    assert WHOLE_RANGES[field] in message
    assert f"got {value}" in message


def test_a_number_too_long_to_print_is_still_refused_properly() -> None:
    assert refusal(k=10**5000).startswith("k must be a whole number from 1 to 4096")
    assert refusal(p=10**5000).startswith("p must be a number with 0 <= p <= 1")


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1)])
def test_f_of_one_is_refused(one: object) -> None:
    message = refusal(f=one)
    assert message.startswith("f must")
    assert "0 <= f < 1" in message
    assert "got 1" in message


def test_more_hashes_than_bits_are_refused() -> None:
    message = refusal(k=4, h=5)
    assert message.startswith("h must be at most k = 4")
    assert "h = 5" in message


@pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.5), (0.75, 0.5), (1.0, 0.5), (0.0, 0.0), (1.0, 1.0), (1, 0)]
)
def test_p_not_below_q_is_refused(p: float, q: float) -> None:
    message = refusal(p=p, q=q)
    assert "0 <= p < q <= 1" in message
    assert f"p = {float(p)!r}" in message
    assert f"q = {float(q)!r}" in message


@pytest.mark.parametrize(("p", "q"), [(0.0, 0.5), (0.5, 1.0), (0.0, 1.0), (-0.0, 0.5)])
@pytest.mark.parametrize("f", [0, 0.0, -0.0])
def test_parameters_without_any_privacy_are_refused(f: float, p: float, q: float) -> None:
    message = refusal(f=f, p=p, q=q)
    assert message.startswith("f = 0 needs 0 < p and q < 1")
    assert f"p = {p + 0.0!r}" in message
    assert f"q = {q!r}" in message


def test_a_rational_that_no_float_holds_is_refused_with_the_nearest_float() -> None:
    message = refusal(p=Fraction(1, 3))
    assert message.startswith("p must be a number that a float holds exactly")
    assert "Fraction(1, 3)" in message
    assert repr(1 / 3) in message


def test_unnamed_fields_cannot_be_given() -> None:
    with pytest.raises(TypeError):
        Params(**GOOD, seed=7)


# Values that are accepted.


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 1, "h": 1},
        {"k": 4096},
        {"h": 1},
        {"h": 16},
        {"k": 16, "h": 16},
        {"m": 1},
        {"m": 1024},
        {"f": 0},
        {"f": 5e-324},
        {"f": math.nextafter(1, 0)},
        {"p": 0},
        {"p": 5e-324},
        {"q": 1},
        {"p": 0, "q": 1},
        {"p": math.nextafter(1, 0), "q": 1},
        {"p": 0, "q": 5e-324},
        {"f": 0, "p": 5e-324, "q": math.nextafter(1, 0)},
    ],
    ids=str,
)
def test_boundaries_are_accepted(changes: dict[str, Any]) -> None:
    params = Params(**(GOOD | changes))
    assert params.to_dict() == GOOD | changes


def test_numpy_scalars_are_accepted_and_become_plain_numbers() -> None:
    params = Params(
        np.int64(128),
        np.uint8(2),
        np.int16(16),
        np.float32(0.5),
        np.float16(0.25),
        np.float64(0.75),
    )
    assert params == PARAMS
    assert params.digest == PARAMS.digest
    assert [type(value) for value in params.to_dict().values()] == [int] * 3 + [float] * 3


def test_fractions_that_floats_hold_are_accepted() -> None:
    assert Params(128, 2, 16, Fraction(1, 2), Fraction(1, 4), Fraction(3, 4)) == PARAMS


def test_exact_is_the_rational_that_each_float_is() -> None:
    f, p, q = Params(**(GOOD | {"f": 0.1})).exact
    assert f == Fraction(3602879701896397, 36028797018963968)
    assert (p, q) == (Fraction(1, 4), Fraction(3, 4))


# Identity.


def test_zero_has_one_digest_however_it_is_written() -> None:
    zeros = [0, 0.0, -0.0, Fraction(0), np.float64(-0.0), False + 0]
    made = [Params(**(GOOD | {"p": zero})) for zero in zeros]
    assert len({params.digest for params in made}) == 1
    assert len(set(made)) == 1
    assert {math.copysign(1, params.p) for params in made} == {1}


def test_digest_is_sha_256_of_the_documented_text() -> None:
    text = "rappor-params-v1\nk=128\nh=2\nm=16\nf=1/2\np=1/4\nq=3/4\n"
    assert PARAMS.digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("field", "value"),
    [("k", 129), ("h", 3), ("m", 17), ("f", 0.25), ("p", 0.5), ("q", math.nextafter(0.75, 1))],
)
def test_digest_changes_with_each_field(field: str, value: float) -> None:
    changed = dataclasses.replace(PARAMS, **{field: value})
    assert changed.digest != PARAMS.digest
    assert changed != PARAMS


def test_params_are_frozen() -> None:
    for field in FIELDS:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(PARAMS, field, 1)
    with pytest.raises((AttributeError, TypeError)):
        PARAMS.seed = 7  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del PARAMS.k
    assert PARAMS.to_dict() == GOOD


def test_equal_params_are_one_key() -> None:
    again = Params(**GOOD)
    assert hash(again) == hash(PARAMS)
    assert {PARAMS: "found"}[again] == "found"


def test_a_changed_copy_is_validated_too() -> None:
    with pytest.raises(ParamsError, match="h must be at most k = 1"):
        dataclasses.replace(PARAMS, k=1)


def test_params_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(PARAMS)) == PARAMS


# Presets: DESIGN's Formats.


@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("windows", (128, 2, 8, 0.5, 0.5, 0.75), "string"),
        ("chrome", (128, 2, 32, 0.75, 0.5, 0.75), "string"),
        ("exponential", (128, 2, 16, 0.5, 0.5, 0.75), "string"),
        ("normal", (100, 1, 1, 0.0, 0.5, 0.75), "category"),
        ("life-of-a-report", (256, 4, 1, 0.5, 0.5, 0.75), "string"),
    ],
)
def test_presets_are_the_papers(name: str, numbers: tuple[Any, ...], kind: str) -> None:
    assert Params.preset(name) == Params(*numbers)
    assert PRESETS[name].kind == kind


def test_there_is_no_other_preset() -> None:
    assert list(PRESETS) == ["windows", "chrome", "exponential", "normal", "life-of-a-report"]


@pytest.mark.parametrize("name", ["Windows", "", None, 3, ["windows"]])
def test_an_unknown_preset_is_refused_with_the_names(name: Any) -> None:
    with pytest.raises(ParamsError, match="preset must be one of windows, chrome") as caught:
        Params.preset(name)
    assert repr(name) in str(caught.value)


# CSV.


def read_csv(folder: Path, content: str | bytes) -> Params:
    file = folder / "params.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return Params.from_csv(file)


def test_csv_is_written_byte_for_byte_as_google_does(tmp_path: Path) -> None:
    file = tmp_path / "params.csv"
    Params(32, 2, 64, 0.5, 0.5, 0.75).to_csv(file)
    assert file.read_bytes() == GOOGLE_CSV.encode()


def test_googles_own_csv_is_read(tmp_path: Path) -> None:
    assert read_csv(tmp_path, GOOGLE_CSV) == Params(k=32, h=2, m=64, f=0.5, p=0.5, q=0.75)


def test_csv_keeps_full_precision(tmp_path: Path) -> None:
    params = Params(128, 2, 16, 0.1, 5e-324, math.nextafter(1, 0))
    params.to_csv(tmp_path / "params.csv")
    again = Params.from_csv(str(tmp_path / "params.csv"))
    assert again == params
    assert again.digest == params.digest


@pytest.mark.parametrize(
    "content",
    [
        "k,h,m,p,q,f\n128,2,16,.25,.75,.5",
        "k,h,m,p,q,f\n+128,2,16,25e-2,0.75,5.E-1\n",
        "\ufeffk,h,m,p,q,f\n128,2,16,0.25,0.75,0.5\n",
        "k,h,m,p,q,f\r\n128,2,16,0.25,0.75,0.5\r\n",
        "k,h,m,p,q,f\r128,2,16,0.25,0.75,0.5\r",
        "\n\nk,h,m,p,q,f\n  \n128,2,16,0.25,0.75,0.5\n,,\n\n",
        '"k","h","m","p","q","f"\n"128","2","16","0.25","0.75","0.5"\n',
        " k , h,m,p,q,f \n 128 ,\t2,16,0.25,0.75,0.5\n",
        "f,p,q,m,h,k\n0.5,0.25,0.75,16,2,128\n",
    ],
    ids=repr,
)
def test_csv_is_read_as_people_and_tools_write_it(tmp_path: Path, content: str) -> None:
    assert read_csv(tmp_path, content) == PARAMS


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected the header k,h,m,p,q,f and one row, found 0 lines"),
        ("\ufeff", "found 0 lines"),
        ("k,h,m,p,q,f\n", "found 1 lines?"),
        ("128,2,16,0.25,0.75,0.5\n", "found 1 lines?"),
        ("k,h,m,p,q,f\n" + 2 * "128,2,16,0.25,0.75,0.5\n", "found 3 lines"),
        ("k,h,m,p,q\n128,2,16,0.25,0.75\n", "expected the header k,h,m,p,q,f, found 'k,h,m,p,q'"),
        ("k,h,m,p,q,f,s\n128,2,16,0.25,0.75,0.5,1\n", "expected the header"),
        ("k,h,m,p,q,f,f\n128,2,16,0.25,0.75,0.5,0.5\n", "expected the header"),
        ("k,k,m,p,q,f\n128,2,16,0.25,0.75,0.5\n", "expected the header"),
        ("K,H,M,P,Q,F\n128,2,16,0.25,0.75,0.5\n", "expected the header"),
        ("k;h;m;p;q;f\n128;2;16;0.25;0.75;0.5\n", "expected the header"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75\n", "expected 6 numbers under the header, found 5"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75,0.5,1\n", "expected 6 numbers.*found 7"),
        ("k,h,m,p,q,f\n128.0,2,16,0.25,0.75,0.5\n", "k must be a whole number.*'128.0'"),
        ("k,h,m,p,q,f\n1e2,2,16,0.25,0.75,0.5\n", "k must be a whole number"),
        ("k,h,m,p,q,f\n1_28,2,16,0.25,0.75,0.5\n", "k must be a whole number"),
        ("k,h,m,p,q,f\n١٢٨,2,16,0.25,0.75,0.5\n", "k must be a whole number"),
        ("k,h,m,p,q,f\n" + "1" * 5000 + ",2,16,0.25,0.75,0.5\n", "k must be a whole number"),
        ("k,h,m,p,q,f\n,2,16,0.25,0.75,0.5\n", "k must be a whole number"),
        ("k,h,m,p,q,f\n128,2,16,nan,0.75,0.5\n", "p must be a number.*'nan'"),
        ("k,h,m,p,q,f\n128,2,16,0.25,inf,0.5\n", "q must be a number.*'inf'"),
        ("k,h,m,p,q,f\n128,2,16,0.25,Infinity,0.5\n", "q must be a number"),
        ("k,h,m,p,q,f\n128,2,16,0.25,1e999,0.5\n", "q must be a number with 0 <= q <= 1, got inf"),
        ("k,h,m,p,q,f\n128,2,16,0x1p-2,0.75,0.5\n", "p must be a number"),
        ("k,h,m,p,q,f\n128,2,16,1/4,0.75,0.5\n", "p must be a number.*'1/4'"),
        ("k,h,m,p,q,f\n128,2,16,0.2_5,0.75,0.5\n", "p must be a number"),
        ("k,h,m,p,q,f\n128,2,16,True,0.75,0.5\n", "p must be a number"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75,1\n", "f must satisfy 0 <= f < 1"),
        ("k,h,m,p,q,f\n0,2,16,0.25,0.75,0.5\n", "k must be a whole number from 1 to 4096, got 0"),
        ('k,h,m,p,q,f\n"128,2,16,0.25,0.75,0.5\n', "not a CSV file"),
        ('k,h,m,p,q,f\n"128"x,2,16,0.25,0.75,0.5\n', "not a CSV file"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75," + "5" * 200_000, "not a CSV file"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75,0.5\0\n", "params.csv"),
        (b"k,h,m,p,q,f\n\xff\xfe\n", "not UTF-8"),
        ("k,h,m,p,q,f\n128,2,16,0.25,0.75,0.5\n".encode("utf-16"), "not UTF-8"),
        (bytes(range(256)), "not UTF-8"),
        (bytes(64), "params.csv"),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_a_csv_that_is_not_six_numbers_is_refused_with_the_reason(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    with pytest.raises(ParamsError, match=reason) as caught:
        read_csv(tmp_path, content)
    assert str(tmp_path / "params.csv") in str(caught.value)
    assert len(str(caught.value)) < len(str(tmp_path)) + 300


def test_a_missing_csv_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"cannot read .*absent\.csv: No such file"):
        Params.from_csv(tmp_path / "absent.csv")


def test_a_folder_is_no_csv(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="cannot read"):
        Params.from_csv(tmp_path)


@pytest.mark.parametrize("path", ["~no-such-user-at-all/params.csv", "nul\0byte.csv"], ids=repr)
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    with pytest.raises(ParamsError):
        Params.from_csv(path)


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    PARAMS.to_csv("~/params.csv")
    assert (tmp_path / "params.csv").exists()
    assert Params.from_csv("~/params.csv") == PARAMS


# JSON and TOML.

JSON = '{"k": 128, "h": 2, "m": 16, "f": 0.5, "p": 0.25, "q": 0.75}'
TOML = "k = 128\nh = 2\nm = 16\nf = 0.5\np = 0.25\nq = 0.75\n"


def test_json_is_one_object_in_the_order_of_the_fields() -> None:
    assert PARAMS.to_json() == JSON
    assert Params.from_json(JSON) == PARAMS


def test_toml_is_six_lines_in_the_order_of_the_fields() -> None:
    assert PARAMS.to_toml() == TOML
    assert Params.from_toml(TOML) == PARAMS


def test_whole_probabilities_and_other_orders_are_read() -> None:
    expected = Params(128, 2, 16, 0.5, 0, 1)
    assert Params.from_json('{"q": 1, "p": 0, "f": 0.5, "m": 16, "h": 2, "k": 128}') == expected
    assert Params.from_toml("q = 1\np = 0\nf = 0.5\nm = 0x10\nh = 2\nk = 128\n") == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", "finite"),
        ("Infinity", "finite"),
        ("-Infinity", "finite"),
        ("1e999", "got inf"),
        ("-1e999", "got -inf"),
        ("true", "got True"),
        ("null", "got None"),
        ('"0.5"', "got '0.5'"),
        ("[0.5]", r"got \[0.5\]"),
        ("{}", "got {}"),
        ("1.5", "got 1.5"),
        ("-0.1", "got -0.1"),
        ("1" * 400, "must be"),
        ("1" * 5000, "JSON|must be"),
        ("0.5.5", "not valid JSON"),
        ("", "not valid JSON"),
    ],
    ids=lambda part: part[:20],
)
@pytest.mark.parametrize("field", FIELDS)
def test_json_refuses_what_is_no_number_in_range(field: str, value: str, reason: str) -> None:
    text = JSON.replace(f'"{field}": {GOOD[field]}', f'"{field}": {value}')
    assert text != JSON
    with pytest.raises(ParamsError, match=reason):
        Params.from_json(text)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nan", "got nan"),
        ("inf", "got inf"),
        ("-inf", "got -inf"),
        ("1e999", "got inf"),
        ("true", "got True"),
        ('"0.5"', "got '0.5'"),
        ("[0.5]", r"got \[0.5\]"),
        ("{}", "got {}"),
        ("1979-05-27", "got datetime.date"),
        ("1979-02-31", "not valid TOML"),
        ("-0.1", "got -0.1"),
        ("0x" + "f" * 400, "must be"),
        ("1" * 5000, "TOML|must be"),
        (".5", "not valid TOML"),
        ("null", "not valid TOML"),
        ("", "not valid TOML"),
    ],
    ids=lambda part: part[:20],
)
@pytest.mark.parametrize("field", FIELDS)
def test_toml_refuses_what_is_no_number_in_range(field: str, value: str, reason: str) -> None:
    text = TOML.replace(f"{field} = {GOOD[field]}\n", f"{field} = {value}\n")
    assert text != TOML
    with pytest.raises(ParamsError, match=reason):
        Params.from_toml(text)


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_named(field: str) -> None:
    rest = {name: value for name, value in GOOD.items() if name != field}
    with pytest.raises(ParamsError, match=f"exactly k, h, m, f, p, q; missing: {field}$"):
        Params.from_dict(rest)


@pytest.mark.parametrize("extra", ["seed", "K", "", "\ud800", 7])
def test_an_unknown_field_is_named(extra: object) -> None:
    with pytest.raises(ParamsError) as caught:
        Params.from_dict(GOOD | {extra: 1})  # type: ignore[dict-item]
    assert str(caught.value).endswith(f"unknown: {extra!r}")


def test_repeated_keys_are_refused() -> None:
    with pytest.raises(ParamsError, match="repeated"):
        Params.from_json(JSON.replace("{", '{"k": 128, '))
    with pytest.raises(ParamsError, match="not valid TOML"):
        Params.from_toml(TOML + "k = 128\n")


@pytest.mark.parametrize("text", ["", "[]", "3", "null", '"k"', "{}", "{", JSON + JSON, "\ufeff"])
def test_json_that_is_no_object_with_the_six_fields_is_refused(text: str) -> None:
    with pytest.raises(ParamsError, match=r"params (must|are not)"):
        Params.from_json(text)


@pytest.mark.parametrize("text", ["", "[params]\n" + TOML, "k", "= 1", "k = 1 h = 2", "\0"])
def test_toml_that_is_not_six_fields_is_refused(text: str) -> None:
    with pytest.raises(ParamsError, match=r"params (must|are not)"):
        Params.from_toml(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"k":' * 100_000, '{"k": ' + "[" * 90_000 + "]" * 90_000 + "}"]
)
def test_deeply_nested_json_is_refused(text: str) -> None:
    with pytest.raises(ParamsError):
        Params.from_json(text)


@pytest.mark.parametrize("text", ["k = " + "[" * 100_000, "k = " + "{a = " * 100_000])
def test_deeply_nested_toml_is_refused(text: str) -> None:
    with pytest.raises(ParamsError):
        Params.from_toml(text)


@pytest.mark.parametrize("given", [None, [], "k", 3, [("k", 1)]], ids=repr)
def test_what_is_no_mapping_is_refused(given: Any) -> None:
    with pytest.raises(ParamsError, match="params must be an object with k, h, m, f, p, q"):
        Params.from_dict(given)
