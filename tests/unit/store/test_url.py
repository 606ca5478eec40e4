"""The URL of a database is split as libpq splits it, and no secret of it is shown."""

import pytest
from psycopg.pq import Conninfo

from rappor.errors import StoreError
from rappor.store.url import check_url, other_secrets, public_url, split_password

SECRET = "s3cret"


@pytest.mark.parametrize("mark", list("#?&=:[]!+"))
def test_a_password_with_a_mark_is_hidden_and_given_on(mark: str) -> None:
    """libpq ends the password at the first `@`: a `#` or `?` before it belongs to it."""
    url = f"postgresql://ada:s3{mark}cret@db.example.org/rappor"
    assert split_password(url) == ("postgresql://ada@db.example.org/rappor", f"s3{mark}cret")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s3/cret@db.example.org/rappor",  # where libpq ends the hosts
        "postgresql://ada:12/s3cret@db.example.org/rappor",
        "postgresql://ada:s3@cret@db.example.org/rappor",
        "postgresql://ada:s3?c/s3cret@db.example.org/rappor",
        "postgresql://ada:12?s3=cret/s3cret@db.example.org/rappor",
        "postgresql://ada:s3cret%zz@db.example.org/rappor",
        "postgresql://ada:s3cret%00@db.example.org/rappor",
        "postgresql://db.example.org:s3cret/rappor",
        "postgresql://db.example.org?password=s3cret@x",
        "postgresql://db.example.org/rappor?s3cret",
        "postgresql://db.example.org/rappor?password=x&s3=cret",
        "postgresql://db.example.org/rappor?password=s3=cret",
        "postgresql://[s3cret/rappor",
    ],
)
def test_what_may_be_a_piece_of_a_password_is_refused_and_shown_nowhere(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        check_url(url)
    assert SECRET not in str(caught.value)
    for piece in (SECRET, "s3", "cret"):
        assert piece not in public_url(url)


def test_secrets_in_parameters_are_hidden_whatever_their_escapes() -> None:
    url = (
        "postgresql://db.example.org/rappor?sslmode=verify-full&pass%77ord=s3cret&"
        "sslpassword=s3cret&oauth_client_secret=s3cret&scram_client_key=s3cret&"
        "scram_server_key=s3cret&options=-c%20geqo%3Doff"
    )
    shown = "postgresql://db.example.org/rappor?sslmode=verify-full&options=-c%20geqo%3Doff"
    assert split_password(url) == (shown, SECRET)
    assert other_secrets(url) == [
        "sslpassword",
        "oauth_client_secret",
        "scram_client_key",
        "scram_server_key",
    ]


def test_a_plus_is_a_plus_and_an_escape_is_undone() -> None:
    assert split_password("postgresql://h/db?password=a+b%2B%20")[1] == "a+b+ "
    assert split_password("postgresql://ada:a+b%2F%40@h/db")[1] == "a+b/@"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///rappor?host=/run/postgresql",
        "postgres://ada@one.example.org:5432,two.example.org:5433/rappor?target_session_attrs=any",
        "postgresql://ada@[2001:db8::1]:5432/rappor",
        "postgresql://%2Frun%2Fpostgresql/rappor",
        "postgresql://",
    ],
)
def test_what_has_no_secret_stays_as_it_is(url: str) -> None:
    check_url(url)
    assert split_password(url) == (url, None)


def test_every_parameter_of_the_installed_libpq_is_known() -> None:
    known = [option.keyword.decode() for option in Conninfo.get_defaults()]
    assert len(known) > 30
    for name in known:
        check_url(f"postgresql://db.example.org/rappor?{name}=1")
