"""The arguments of Client.open: whatever is given, ParamsError or a client that works."""

import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.errors import ParamsError
from support.client import FakeClock, homepage


class RaisingPath:
    def __fspath__(self) -> str:
        raise KeyError("a host's own path")


class RaisingMapping(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("a host's own mapping")

    def __len__(self) -> int:
        return 1


def raising() -> Iterator[object]:
    yield homepage()
    raise RuntimeError("a host's own list")


ODD: list[Any] = [
    *(None, True, 7, -1, 10**400, -(10**400), 10**5000, 1.5, float("nan"), float("inf")),
    *(
        float("-inf"),
        Decimal("NaN"),
        Fraction(1, 3),
        1j,
        b"",
        b"bytes",
        b"\xff" * 40,
        bytearray(40),
    ),
    *("", "\0", "a\0b", "\ud800", "a\ud800b", "~nobody-of-this-name", "x" * 100_000, "\n", " "),
    *((), [], {}, {"a": 1}, {1: "a"}, {"\ud800": "\0"}, [None], [b"a"], ["\0"], ["\ud800"], [""]),
    *(object(), object, RaisingPath(), [RaisingPath()], RaisingMapping(), raising(), iter(())),
    *("https://\ud800.org", "https://a.org:0x1", "https://[::1", "https://a.org/\0", "/dev/null"),
]
ARGUMENTS = [
    *("directory", "collections", "consent", "upload_to", "dimensions", "ingest_key"),
    *("account_secret", "max_epsilon", "outbox_limit", "jitter", "ca_file", "clock", "transport"),
]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Good arguments; the current directory is empty and stays so."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return {
        "directory": tmp_path / "client",
        "collections": [homepage()],
        "consent": False,  # nothing is written, whatever is accepted
        "upload_to": "https://reports.example.org",
        "clock": FakeClock(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ARGUMENTS)
def test_whatever_is_given_only_params_error_is_raised(given: dict[str, Any], name: str) -> None:
    refused = 0
    for odd in ODD:
        if (name, odd) == ("consent", True):
            continue
        try:
            Client.open(**(given | {name: odd})).close()
        except ParamsError:
            refused += 1
    assert refused > len(ODD) / 3
    assert list(Path.cwd().iterdir()) == []


WRONG = [
    ("directory", ""),
    ("directory", "a\ud800"),
    ("directory", "a\0"),
    ("directory", b"bytes"),
    ("directory", None),
    ("outbox_limit", 10**400),
    ("outbox_limit", 1.5),
    ("outbox_limit", 0),
    ("max_epsilon", 10**400),
    ("max_epsilon", float("nan")),
    ("jitter", 10**400),
    ("jitter", float("inf")),
    ("ca_file", "a\0"),
    ("ca_file", "a\ud800"),
    ("ca_file", ""),
    ("ca_file", "."),
    ("ca_file", "/dev/null"),
    ("collections", ["a\0"]),
    ("collections", [""]),
    ("collections", raising()),
    ("dimensions", RaisingMapping()),
    ("ingest_key", "a\0"),
    ("clock", 7),
    ("transport", 7),
]


@pytest.mark.parametrize(
    ("name", "value"), WRONG, ids=[f"{n}-{i}" for i, (n, _) in enumerate(WRONG)]
)
@pytest.mark.parametrize("consent", [True, False])
def test_the_message_names_the_argument(
    given: dict[str, Any], name: str, value: object, consent: bool
) -> None:
    with pytest.raises(ParamsError, match=f"^{name} must ") as caught:
        Client.open(**(given | {"consent": consent, name: value}))
    assert len(str(caught.value)) < 500
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("upload_to", [None, "http://localhost:1"])
@pytest.mark.parametrize(("name", "value"), [("ca_file", "a\0"), ("ingest_key", 7)])
def test_what_is_not_used_is_checked_as_well(
    given: dict[str, Any], upload_to: str | None, name: str, value: object
) -> None:
    with pytest.raises(ParamsError, match=f"{name} must"):
        Client.open(**(given | {"upload_to": upload_to, name: value}))


def test_a_directory_whose_name_is_no_text_is_one_all_the_same(
    given: dict[str, Any], tmp_path: Path
) -> None:
    """Bytes that are not UTF-8 are names of files; Python writes them as surrogates."""
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    with Client.open(**(given | {"directory": directory, "consent": True})) as client:
        client.report("homepage", "a.org")
        client._workers.flush(300.0)
        assert client.status().problem is None
