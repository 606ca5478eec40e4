"""Any password in the URL of a database is hidden, and means what libpq says it means."""

from contextlib import suppress

import psycopg
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from rappor.errors import StoreError
from rappor.store.url import public_url, split_password

# Letters that are nowhere else in the URLs, and marks that mean something in one.
PIECES = st.sampled_from(["Q", "X", "Z9", "%51", "%zz", "%", *":/?#@[]&=+,; 12"])
PASSWORDS = st.lists(PIECES, min_size=1, max_size=8).map("".join)
PLACES = st.sampled_from(
    ["ada:{}@db.com/name", "ada:{}@db.com:54/name?user=ada", "db.com/name?password={}&user=ada"]
)


@given(place=PLACES, password=PASSWORDS)
def test_no_letter_of_a_password_is_shown(place: str, password: str) -> None:
    shown = public_url("postgresql://" + place.format(password))
    assert not set("QXZ") & set(shown)
    assert "%51" not in shown


@given(place=PLACES, password=PASSWORDS)
def test_an_accepted_url_is_read_as_libpq_reads_it(place: str, password: str) -> None:
    url = "postgresql://" + place.format(password)
    with suppress(StoreError):
        shown, secret = split_password(url)
        given_on = {} if secret is None else {"password": secret}
        try:
            wanted = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            return  # refused when it is opened; `check_parameters`
        wanted = {name: value for name, value in wanted.items() if value or name != "password"}
        assert conninfo_to_dict(shown) | given_on == wanted
