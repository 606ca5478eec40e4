"""Tables as files: cells that are no formula, numbers to the last digit, pages of rows."""

import json

import pytest

from rappor.dashboard.tables import csv_response, json_response, paged


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_no_cell_begins_like_a_formula(text: str) -> None:
    body = bytes(csv_response(("a",), [(text,)], "x.csv").body).decode()
    assert body.split("\n", 1)[1].lstrip('"').startswith("'")


def test_numbers_keep_their_sign_and_precision() -> None:
    body = bytes(csv_response(("a", "b"), [(-1.5, 0.1 + 0.2)], "x.csv").body).decode()
    assert body == "a,b\n-1.5,0.30000000000000004\n"


def test_a_file_name_cannot_break_its_header() -> None:
    answer = csv_response(("a",), [], 'x"\r\nset-cookie: y.csv')
    assert answer.headers["content-disposition"] == 'attachment; filename="x___set-cookie__y.csv"'


def test_json_has_no_numbers_that_json_lacks() -> None:
    body = bytes(json_response({"a": float("inf"), "b": [float("nan"), -float("inf")]}).body)
    assert json.loads(body) == {"a": "inf", "b": [None, "-inf"]}


def test_pages_of_long_tables_are_within_bounds() -> None:
    assert paged(list(range(5)), "-3", 2).page == 1
    assert paged(list(range(5)), "99999999999", 2).page == 1
    assert paged(list(range(5)), 3, 2).rows == [4]
