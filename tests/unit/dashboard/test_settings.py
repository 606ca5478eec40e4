"""Settings: which addresses and host names a dashboard has."""

from pathlib import Path

import pytest

from rappor.dashboard.settings import DashboardSettings
from rappor.errors import ParamsError


@pytest.mark.parametrize(
    "header",
    [
        "127.0.0.1/evil",
        "127.0.0.1?x",
        "127.0.0.1#x",
        "user@127.0.0.1",
        "127.0.0.1\\@evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:x",
        "127.0.0.1 evil.example",
        "[::1",
        "::1",
        "",
    ],
)
def test_a_host_that_is_no_host_is_refused(header: str) -> None:
    assert not DashboardSettings(Path("data")).knows_host(header)


def test_https_in_capitals_is_https() -> None:
    shouted = DashboardSettings(Path("data"), url="HTTPS://stats.example.org/")
    assert shouted.secure
    assert shouted.address == "https://stats.example.org"


@pytest.mark.parametrize(
    "url",
    [
        "https://stats.example.org/below",
        "https://stats.example.org/?x=1",
        "https://stats.example.org/#x",
        "https://ada:secret@stats.example.org",
        "https://stats.example.org:port",
    ],
)
def test_an_address_that_pages_cannot_have_is_refused(url: str) -> None:
    with pytest.raises(ParamsError, match="url must be"):
        DashboardSettings(Path("data"), url=url)


@pytest.mark.parametrize("field", [{"port": 70000}, {"url": "ftp://x"}, {"collector": "nonsense"}])
def test_settings_that_are_none_name_their_field(field: dict) -> None:
    with pytest.raises(ParamsError, match=next(iter(field))):
        DashboardSettings(Path(), **field)


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("127.0.0.1:1", True),
        ("localhost", True),
        ("[::1]:8766", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("[", False),
    ],
)
def test_only_names_of_this_machine_are_taken(header: str, known: bool) -> None:
    assert DashboardSettings(Path()).knows_host(header) is known
