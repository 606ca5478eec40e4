"""Params: nothing is lost in any format, and nothing but ParamsError comes of anything else."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rappor.errors import ParamsError
from rappor.params import FIELDS, Params
from support.params_strategies import valid_params

# Texts that nearly are parameters find more than texts that are not.
ALMOST = st.text(alphabet='khmfpq=:,"{}[]0123456789.eE+-_#\\\n\r\t uxnaif\ufeff\0', max_size=80)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, -(10**400), 1, 2, 0.5, 0.75])
)


def check_read(read: Any, given_text: Any) -> None:
    """Reading gives Params or ParamsError; what was read survives another round."""
    try:
        params = read(given_text)
    except ParamsError:
        return
    assert Params.from_dict(params.to_dict()) == params


def from_bytes(content: bytes) -> Params:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "params.csv"
        file.write_bytes(content)
        return Params.from_csv(file)


@pytest.mark.slow
@given(valid_params())
def test_every_format_gives_back_the_same_params(params: Params) -> None:
    with tempfile.TemporaryDirectory() as folder:
        params.to_csv(Path(folder) / "params.csv")
        from_csv = Params.from_csv(Path(folder) / "params.csv")
    copies = [
        from_csv,
        Params.from_json(params.to_json()),
        Params.from_toml(params.to_toml()),
        Params.from_dict(params.to_dict()),
        Params.from_dict(json.loads(params.to_json())),
        Params(params.k, params.h, params.m, *params.exact),
    ]
    assert all(copy == params for copy in copies)
    assert {copy.digest for copy in copies} == {params.digest}


@pytest.mark.slow
@given(valid_params(), valid_params())
def test_digests_are_equal_exactly_where_params_are(one: Params, other: Params) -> None:
    assert (one.digest == other.digest) == (one == other)


@given(st.text() | ALMOST)
@example("k = " + "9" * 5000)
def test_no_text_makes_toml_fail_otherwise(text: str) -> None:
    check_read(Params.from_toml, text)


@given(st.text() | ALMOST)
@example('{"k": ' + "9" * 5000 + "}")
def test_no_text_makes_json_fail_otherwise(text: str) -> None:
    check_read(Params.from_json, text)


@given(st.binary() | ALMOST.map(str.encode))
def test_no_bytes_make_csv_fail_otherwise(content: bytes) -> None:
    check_read(from_bytes, content)


@pytest.mark.slow
@given(st.lists(st.text(max_size=12) | ALMOST, min_size=6, max_size=6))
def test_no_cells_make_csv_fail_otherwise(cells: list[str]) -> None:
    row = ",".join(cells).encode("utf-8", "surrogatepass")
    check_read(from_bytes, b"k,h,m,p,q,f\n" + row)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*FIELDS, "x"]), SCALARS | st.lists(SCALARS, max_size=2)))
def test_no_mapping_fails_otherwise(document: dict[str, Any]) -> None:
    check_read(Params.from_dict, document)
    check_read(Params.from_json, json.dumps(document))


@pytest.mark.slow
@given(valid_params(), st.integers(0, 200), st.text(max_size=3))
def test_no_damage_to_a_good_file_fails_otherwise(params: Params, at: int, patch: str) -> None:
    for text, read in ((params.to_json(), Params.from_json), (params.to_toml(), Params.from_toml)):
        check_read(read, text[:at] + patch + text[at + 1 :])


@pytest.mark.slow
@given(st.tuples(*[SCALARS] * 6))
def test_no_numbers_fail_otherwise(numbers: tuple[Any, ...]) -> None:
    check_read(lambda given_numbers: Params(*given_numbers), numbers)
