"""`rappor client inspect`: the person sees exactly what was sent, and never the secret (R22)."""

import json
from pathlib import Path

import pytest

from rappor.client import Client
from support.client import LIMIT, FakeClock, FakeTransport, homepage
from support.command import rappor


@pytest.fixture
def used(tmp_path: Path) -> tuple[Path, FakeTransport]:
    """A directory with one report sent and one waiting."""
    clock, collector = FakeClock(), FakeTransport()
    collection = homepage(dimensions={"country": ("NZ",)})
    given = {"consent": True, "dimensions": {"country": "NZ"}, "clock": clock}
    client = Client.open(tmp_path / "app", [collection], transport=collector, **given)
    client.report("homepage", "www.private.example")
    assert client.flush(LIMIT)
    assert client.close(LIMIT)
    clock.forward(1)
    later = Client.open(tmp_path / "app", [collection], **given)
    later.report("homepage", "www.private.example")
    assert later.close(LIMIT)
    return tmp_path / "app", collector


def test_inspect_shows_what_was_sent_to_the_last_byte(used: tuple[Path, FakeTransport]) -> None:
    directory, collector = used
    done = rappor("client", "inspect", directory, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    (sent,), (waiting,) = found["sent"], found["waiting"]
    assert bytes.fromhex(sent["body"]) == collector.bodies[0]
    assert (sent["period"], waiting["period"]) == ("2026-11-16", "2026-11-17")
    assert sent["dimensions"] == {"country": "NZ"}
    assert found["collections"][0]["reports"] == 2
    assert found["collections"][0]["values"] == 1
    assert found["problem"] is None


def test_inspect_for_people_has_the_bits_and_epsilon_rounded_up(
    used: tuple[Path, FakeTransport],
) -> None:
    directory, collector = used
    done = rappor("client", "inspect", directory)
    assert (done.returncode, done.stderr) == (0, "")
    bits = format(int.from_bytes(collector.batches[0].reports, "little"), "0128b")
    assert bits in done.stdout
    assert "ε of all collections together: 4.395\nIt covers all reports" in done.stdout
    assert "forgotten" not in done.stdout
    assert "Waiting to be sent: 1" in done.stdout


def test_inspect_never_shows_the_secret_or_a_value_and_changes_nothing(
    used: tuple[Path, FakeTransport],
) -> None:
    directory, _ = used
    secret = (directory / "secret").read_bytes().split()[-1].decode()
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    for flags in ([], ["--json"]):
        done = rappor("client", "inspect", directory, *flags)
        assert secret not in done.stdout
        assert "private" not in done.stdout
    assert before == {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_inspect_says_what_is_wrong(used: tuple[Path, FakeTransport]) -> None:
    directory, _ = used
    (directory / "secret").write_bytes(b"")
    done = rappor("client", "inspect", directory)
    assert done.returncode == 0
    assert "stopped" in done.stdout
    assert "the file `secret` is damaged" in done.stdout
    assert json.loads(rappor("client", "inspect", directory, "--json").stdout)["problem"] == (
        "secret-damaged"
    )


@pytest.mark.parametrize("other", [None, "hosts"])
def test_inspect_of_a_folder_without_a_client_says_so(tmp_path: Path, other: str | None) -> None:
    if other is not None:
        (tmp_path / other).write_text("127.0.0.1 localhost\n")
    done = rappor("client", "inspect", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{tmp_path}: no client has reported from this directory" in done.stderr


def test_inspect_of_no_directory_and_no_action_are_one_line(tmp_path: Path) -> None:
    done = rappor("client", "inspect", tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("nothing: no such directory of a client; check the path\n")
    assert rappor("client").returncode == 2
    assert "Example:" in rappor("client", "inspect", "--help").stdout


def test_inspect_after_forgetting_says_that_the_old_cost_is_included(
    used: tuple[Path, FakeTransport],
) -> None:
    directory, _ = used
    collection = homepage(dimensions={"country": ("NZ",)})
    clock = FakeClock()
    clock.forward(9)
    Client.open(directory, [collection], consent=True, clock=clock).forget()
    clock.forward(1)
    again = Client.open(directory, [collection], consent=True, clock=clock)
    again.report("homepage", "www.private.example")
    assert again.close(LIMIT)
    said = rappor("client", "inspect", directory).stdout
    assert "ε of all collections together: 8.789\n" in said  # two secrets, 4.3944 each
    assert "ε of forgotten secrets and of closed periods is included." in said
