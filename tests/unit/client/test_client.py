"""Client: what an application sees: arguments, consent, status, preview, forgetting."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rappor
from rappor.client import PROBLEMS, STATES, Client
from rappor.client.folder import Folder
from rappor.client.ledger_file import save_forgotten
from rappor.collection import Collection
from rappor.params import Params
from rappor.privacy import epsilon_infinity
from support.client import LIMIT, MONDAY, FakeClock, FakeTransport, homepage

Opener = Callable[..., Client]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Opens clients on one directory, without a network unless given one; closes them."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    made: list[Client] = []

    def open_one(*collections: Collection, **changes: Any) -> Client:
        settings: dict[str, Any] = {"consent": True, "clock": FakeClock()} | changes
        where = settings.pop("directory", tmp_path / "client")
        made.append(Client.open(where, collections or [homepage()], **settings))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


def test_the_client_is_a_public_name() -> None:
    assert rappor.Client is Client


def test_a_report_goes_to_the_collector_and_is_shown_exactly(opened: Opener) -> None:
    collector = FakeTransport()
    collection = homepage(dimensions={"country": ("NZ",)})
    client = opened(collection, transport=collector, dimensions={"country": "NZ"})
    client.report("homepage", "example.com")
    assert client.flush(LIMIT)
    (body,) = collector.bodies
    (shown,) = client.preview().sent
    assert bytes.fromhex(shown.body) == body
    (batch,) = collector.batches
    assert shown.token == batch.token.hex()
    assert int(shown.bits, 2) == int.from_bytes(batch.reports, "little")
    assert shown.dimensions == {"country": "NZ"}
    assert "homepage version 1, 2026-11-16, country = NZ" in str(client.preview())


def test_status_has_what_was_made_and_what_it_cost(opened: Opener) -> None:
    client = opened()
    assert client.status().state == "on"
    client.report("homepage", "a.org")
    client.report("homepage", "b.org")
    client.flush(LIMIT)
    client.report("homepage", "c.org")
    status = client.status()
    assert status.calls == {"made": 1, "the reports of this period are made": 2}
    (each,) = status.collections
    assert (each.reports, each.values, each.state) == (1, 1, "made")
    assert each.epsilon == pytest.approx(epsilon_infinity(Params.preset("windows")), rel=1e-9)
    assert status.waiting == 1
    assert status.epsilon == each.epsilon


def test_a_list_that_changes_after_the_call_is_reported_as_it_was(opened: Opener) -> None:
    params = Params(k=8, h=1, m=1, f=0.5, p=0.25, q=0.75)
    client = opened(homepage(params=params, kind="bits"))
    bits = [True] * 8
    client.report("homepage", bits)
    bits.clear()
    client.flush(LIMIT)
    assert client.status().calls == {"made": 1}


@pytest.mark.parametrize(
    ("state", "changes"), [("no consent", {"consent": False}), ("do not track", {})]
)
def test_without_consent_nothing_is_written(
    opened: Opener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    changes: dict[str, Any],
) -> None:
    if state == "do not track":
        monkeypatch.setenv("DO_NOT_TRACK", "1")
    collector = FakeTransport()
    client = opened(transport=collector, **changes)
    client.report("homepage", "a.org")
    assert not client.flush(LIMIT)
    assert client.status().state == state
    assert client.status().explanation == STATES[state]
    assert not (tmp_path / "client").exists()
    assert collector.bodies == []


def test_do_not_track_of_zero_means_nothing(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "0")
    assert opened().status().state == "on"


def test_consent_withdrawn_clears_what_waits_and_keeps_the_secret(
    opened: Opener, tmp_path: Path
) -> None:
    client = opened()
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    client.close()
    secret = (tmp_path / "client/secret").read_bytes()
    assert opened(consent=False).status().waiting == 0
    collector = FakeTransport()
    again = opened(transport=collector)
    assert again.flush(LIMIT)
    assert collector.bodies == []
    assert (tmp_path / "client/secret").read_bytes() == secret


def test_opting_out_lasts_until_opting_in_and_keeps_the_secret(
    opened: Opener, tmp_path: Path
) -> None:
    clock = FakeClock()
    client = opened(clock=clock)
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    secret = (tmp_path / "client/secret").read_bytes()
    assert client.opt_out()
    assert client.status().state == "opted out"
    assert client.status().waiting == 0
    again = opened(clock=clock)
    clock.forward(1)
    again.report("homepage", "a.org")
    assert again.status().state == "opted out"
    again.opt_in()
    again.report("homepage", "a.org")
    assert again.flush(LIMIT)
    assert (again.status().state, again.status().waiting) == ("on", 1)
    assert (tmp_path / "client/secret").read_bytes() == secret


def test_forgetting_deletes_says_its_cost_and_keeps_counting_it(
    opened: Opener, tmp_path: Path
) -> None:
    spent = epsilon_infinity(Params.preset("windows"))
    client = opened(homepage(max_values=2))
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    secret = (tmp_path / "client/secret").read_bytes()
    forgotten = client.forget()
    assert forgotten.epsilon == pytest.approx(spent, rel=1e-9)
    assert "4.395" in forgotten.text
    assert client.status().state == "forgotten"
    left = {path.name for path in (tmp_path / "client").rglob("*") if path.is_file()}
    assert left <= {"forgotten", "lock", "sending.lock", "upload.lock"}
    again = opened(homepage(max_values=2), clock=FakeClock(MONDAY.replace(day=17)))
    again.report("homepage", "a.org")
    again.flush(LIMIT)
    assert again.status().epsilon == pytest.approx(2 * spent, rel=1e-9)
    assert (tmp_path / "client/secret").read_bytes() != secret
    again.forget()
    last = opened(homepage(max_values=2), clock=FakeClock(MONDAY.replace(day=18)))
    last.report("homepage", "b.org")
    last.flush(LIMIT)
    assert last.status().calls == {"the limit on values or ε is reached": 1}


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: (path / "secret").unlink(), "secret-missing"),
        (lambda path: (path / "secret").write_bytes(b""), "secret-damaged"),
        (lambda path: _cut(path / "secret"), "secret-damaged"),
        (lambda path: _flip(path / "secret"), "secret-damaged"),
        (lambda path: _flip(path / "ledger"), "ledger-damaged"),
        (lambda path: (path / "ledger").unlink(), "ledger-missing"),
    ],
    ids=["deleted", "emptied", "truncated", "one bit flipped", "ledger flipped", "ledger deleted"],
)
def test_a_lost_secret_or_ledger_stops_reports_with_a_clear_status(
    opened: Opener, tmp_path: Path, damage: Callable[[Path], Any], problem: str
) -> None:
    clock = FakeClock()
    client = opened(clock=clock)
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    client.close()
    damage(tmp_path / "client")
    before = {path.name for path in (tmp_path / "client").iterdir()}
    clock.forward(1)
    again = opened(clock=clock)
    assert (again.status().state, again.status().problem) == ("stopped", problem)
    again.report("homepage", "a.org")
    assert not again.flush(LIMIT)
    status = again.status()
    assert (status.state, status.problem) == ("stopped", problem)
    assert status.explanation == PROBLEMS[problem]
    assert status.waiting == 1
    assert {path.name for path in (tmp_path / "client").iterdir()} == before
    forgotten = again.forget()  # the way out, which assumes the worst where nothing is known
    known = problem.startswith("secret")
    values = 1 if known else homepage().max_values
    assert forgotten.epsilon == pytest.approx(
        values * epsilon_infinity(Params.preset("windows")), rel=1e-9
    )


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(bytes(data))


def test_another_account_in_the_same_directory_is_refused(opened: Opener) -> None:
    first = opened(account_secret=b"a" * 16)
    first.report("homepage", "a.org")
    assert first.flush(LIMIT)
    first.close()
    second = opened(account_secret=b"b" * 16, clock=FakeClock(MONDAY.replace(day=17)))
    second.report("homepage", "a.org")
    second.flush(LIMIT)
    assert second.status().problem == "secret-changed"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"consent": 1}, "consent must be True or False"),
    ({"consent": "yes"}, "consent must be True or False"),
    ({"upload_to": "http://example.org"}, "must be https"),
    ({"dimensions": {"country": "NZ"}}, "must be declared"),
    ({"dimensions": ["NZ"]}, "must be a mapping"),
    ({"account_secret": b"short"}, "at least 16 random bytes"),
    ({"account_secret": "a password that is long"}, "at least 16 random bytes"),
    ({"max_epsilon": math.nan}, "max_epsilon must be"),
    ({"outbox_limit": 0}, "outbox_limit must be"),
    ({"jitter": -1}, "jitter must be"),
    ({"directory": 7}, "directory must be a path"),
    ({"directory": "a\0b"}, "directory must be a path"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[each[1] for each in WRONG])
def test_programming_errors_are_raised_by_open(
    opened: Opener, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(rappor.ParamsError, match=message):
        opened(**changes)


def test_consent_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="consent"):
        Client.open(tmp_path, [homepage()])  # type: ignore[call-arg]


@pytest.mark.parametrize("collections", ["homepage.toml", [], [7], [homepage(), homepage()]])
def test_wrong_collections_are_refused(tmp_path: Path, collections: Any) -> None:
    with pytest.raises(rappor.ParamsError, match="collections must"):
        Client.open(tmp_path, collections, consent=True)


def test_collections_may_be_files_and_folders(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "defs").mkdir()
    for version in (1, 2):
        text = homepage(version=version).to_toml()
        (tmp_path / f"defs/homepage-{version}.toml").write_text(text, encoding="utf-8")
    single = tmp_path / "other.toml"
    single.write_text(homepage(name="other").to_toml(), encoding="utf-8")
    client = opened(tmp_path / "defs", str(single))
    assert [(each.name, each.version) for each in client.status().collections] == [
        ("homepage", 2),
        ("other", 1),
    ]


def test_neither_repr_nor_status_shows_a_value_or_the_secret(
    opened: Opener, tmp_path: Path
) -> None:
    client = opened()
    client.report("homepage", "www.private.example")
    client.flush(LIMIT)
    secret = (tmp_path / "client/secret").read_bytes().split()[-1].decode()
    for text in (repr(client), str(client.status()), str(client.preview())):
        assert "private" not in text
        assert secret not in text


def test_after_closing_nothing_is_reported(opened: Opener) -> None:
    client = opened()
    assert client.close()
    client.report("homepage", "a.org")
    assert client.close()
    assert client.status().state == "closed"
    assert client.status().calls == {}


def test_with_closes_and_keeps_what_was_reported(opened: Opener) -> None:
    with opened() as client:
        client.report("homepage", "a.org")
    assert opened().status().waiting == 1


def test_an_error_of_the_client_itself_does_not_reach_the_host(opened: Opener) -> None:
    client = opened()
    client.report(["not", "hashable"], "a.org")  # type: ignore[arg-type]
    client.report("nonsense", "a.org")
    client.flush(LIMIT)
    assert client.status().calls == {"not made": 1, "unknown collection": 1}


def test_a_full_queue_drops_calls_and_counts_them(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened()
    with client._folder.lock("lock", LIMIT):  # the background thread has to wait
        for _ in range(1500):
            client.report("homepage", "a.org")
    client.flush(LIMIT)
    assert client.status().calls["queue full"] >= 400


# What an application reads.


def test_the_status_is_plain_json_with_infinity_as_a_text(tmp_path: Path) -> None:
    save_forgotten(Folder(tmp_path), {"homepage": float("inf")}, {}, {})
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        found = json.loads(json.dumps(client.status().to_dict(), allow_nan=False))
        shown: Any = client.preview().to_dict()
        json.dumps(shown, allow_nan=False)
    assert found["epsilon"] == "inf"
    assert found["collections"][0]["epsilon"] == "inf"
    assert found["state"] == "on"


@pytest.mark.parametrize("collections", [None, 7, object()])
def test_collections_that_are_no_list_are_a_params_error(tmp_path: Path, collections: Any) -> None:
    with pytest.raises(rappor.ParamsError, match="collections must"):
        Client.open(tmp_path, collections, consent=True)


def test_the_preview_names_the_very_address_that_is_posted_to(tmp_path: Path) -> None:
    url = "https://reports.example.org"
    with Client.open(
        tmp_path, [homepage()], consent=True, upload_to=url, clock=FakeClock()
    ) as client:
        assert client.preview().upload_to == "https://reports.example.org/v1/reports"
