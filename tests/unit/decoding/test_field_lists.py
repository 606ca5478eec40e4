"""One list for the string fields of a tuple."""

import pytest

from rappor.decoding.field_lists import field_lists
from rappor.errors import DecodeError
from rappor.mechanism import Field, Views

PAGE, SEARCH = Field("page", "string"), Field("search", "string")


def test_a_single_string_field_takes_every_line_as_it_is() -> None:
    views = Views((PAGE, Field("beta", "boolean")))
    assert field_lists(views, ["a=b", "page=c"]) == {"page": ["a=b", "page=c"]}


def test_with_several_string_fields_each_line_says_whose_it_is() -> None:
    lines = ["page=a", "search=b", "page="]
    assert field_lists(Views((PAGE, SEARCH)), lines) == {"page": ["a", ""], "search": ["b"]}


def test_a_line_without_a_field_is_refused_with_the_form_that_it_needs() -> None:
    with pytest.raises(DecodeError, match="FIELD=STRING, with one of page, search"):
        field_lists(Views((PAGE, SEARCH)), ["page=a", "example.org"])
