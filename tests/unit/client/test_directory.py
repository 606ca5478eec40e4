"""A client's directory: files removed, planted or restored by others, and a disk that fills up."""

import datetime
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.folder import Folder
from rappor.client.ledger_file import load_ledger
from rappor.client.outbox import Outbox
from rappor.collection import Collection
from rappor.params import Params
from support.client import (
    LIMIT,
    FakeClock,
    FakeTransport,
    MemoryDisk,
    homepage,
    recorder_on,
    used,
)

DAY = datetime.timedelta(days=1)
EARLIER = Path(__file__).parents[2] / "vectors" / "client-folder"
ONCE = homepage(
    name="once", params=Params(16, 2, 4, 0.0, 0.25, 0.75), one_time=True, max_epsilon=99.0
)


def report_again(directory: Path, clock: FakeClock, **options: Any) -> str | None:
    """The problem that a further report meets, a day later."""
    clock.forward(1)
    with Client.open(directory, [homepage()], consent=True, clock=clock, **options) as client:
        client.report("homepage", "a.org")
        client.flush(LIMIT)
        return client.status().problem


@pytest.mark.parametrize(
    ("gone", "problem"),
    [
        (("ledger", "used"), "ledger-missing"),
        (("secret", "ledger", "used"), "secret-missing"),
        (("secret", "used"), "secret-missing"),
        (("used",), None),  # secret and ledger say enough; it is written again
    ],
)
def test_what_was_sent_is_proof_of_use_when_the_marker_is_gone_too(
    directory: Path, gone: tuple[str, ...], problem: str | None
) -> None:
    clock = FakeClock()
    used(directory, clock)
    for name in gone:
        (directory / name).unlink()
    assert report_again(directory, clock) == problem
    assert (directory / "secret").exists() == ("secret" not in gone)


def test_an_older_ledger_beside_newer_reports_is_refused(directory: Path) -> None:
    clock = FakeClock()
    used(directory, clock)
    old = (directory / "ledger").read_bytes()
    clock.forward(1)
    used(directory, clock)
    (directory / "ledger").write_bytes(old)
    assert report_again(directory, clock) == "ledger-outdated"
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        assert client.status().problem == "ledger-outdated"
        assert client.forget().epsilon == pytest.approx(homepage().max_epsilon)


@pytest.mark.parametrize("account", [None, b"an account's own secret"])
def test_a_directory_that_vanishes_under_a_running_client_does_not_start_anew(
    directory: Path, account: bytes | None
) -> None:
    clock = FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "account_secret": account}
    with Client.open(directory, [homepage()], **given) as client:
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        shutil.rmtree(directory)
        clock.forward(1)
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)
        assert client.status().problem in ("secret-missing", "ledger-outdated")
    assert not (directory / "secret").exists()
    assert not (directory / "ledger").exists()


def test_a_directory_set_back_under_a_running_client_stops_it(directory: Path) -> None:
    clock = FakeClock()
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        shutil.copytree(directory, directory.parent / "backup")
        clock.forward(1)
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        shutil.rmtree(directory)
        shutil.copytree(directory.parent / "backup", directory)
        clock.forward(-1)
        clock.forward(2)
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)
        assert client.status().problem == "ledger-outdated"


def test_a_relative_directory_stays_where_it_was_when_the_host_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    clock = FakeClock()
    with Client.open("client", [homepage()], consent=True, clock=clock) as client:
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        monkeypatch.chdir(tmp_path / "elsewhere")  # as a daemon does
        clock.forward(1)
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        assert client.status().waiting == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_every_folder_that_was_made_is_synced_before_the_first_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    Folder(tmp_path / "a/b/c").create("secret", b"x")
    for path in (tmp_path, tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"):
        assert path.stat().st_ino in synced, path


def test_a_removal_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    folder.replace("outbox/1.batch", b"x")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    folder.remove("outbox/1.batch")
    assert (tmp_path / "outbox").stat().st_ino in synced


def test_a_secret_that_others_could_read_is_closed_to_them(directory: Path) -> None:
    clock = FakeClock()
    used(directory, clock)
    (directory / "secret").chmod(0o644)
    assert report_again(directory, clock) is None
    assert stat.S_IMODE((directory / "secret").stat().st_mode) == 0o600


def test_a_secret_planted_by_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path)
    folder.create("secret", b"x")
    if (tmp_path / "secret").stat().st_uid == 0:  # what root wrote is trusted by all
        os.chown(tmp_path / "secret", 1, -1)
    owner = (tmp_path / "secret").stat().st_uid
    assert folder.read("secret") == b"x"
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(PermissionError, match="another user"):
        folder.read("secret")


@pytest.mark.parametrize("name", ["secret", "ledger", "opted-out", "counts"])
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(directory: Path, name: str) -> None:
    directory.mkdir(mode=0o700)
    os.mkfifo(directory / name)
    done = threading.Event()

    def look() -> None:
        with Client.open(directory, [homepage()], consent=True, clock=FakeClock()) as client:
            client.report("homepage", "a.org")
            client.flush(LIMIT)
            status = client.status()
            if status.state == "opted out" or status.problem == "directory-unusable":
                done.set()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    assert done.wait(LIMIT)
    thread.join(LIMIT)


# Full disks.


def test_a_full_disk_at_any_write_makes_no_second_report_and_no_uncharged_one(
    directory: Path,
) -> None:
    class Fills(MemoryDisk):
        left: int | None = None

        def _full(self) -> None:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise OSError(28, "no room")

        def create(self, name: str, data: bytes) -> None:
            self._full()
            super().create(name, data)

        def replace(self, name: str, data: bytes) -> None:
            self._full()
            super().replace(name, data)

    for room in range(8):
        disk, clock = Fills(), FakeClock()
        disk.left = room
        recorder = recorder_on(disk, clock, homepage())
        for _ in range(3):
            recorder.record("homepage", "a.org", clock.now)
        disk.left = None
        for _ in range(3):
            recorder.record("homepage", "a.org", clock.now)
        made = len(Outbox(disk).names())
        assert made <= 1
        secret = recorder._account_secret or bytes.fromhex(
            disk.files["secret"].split()[-1].decode()
        )
        assert load_ledger(disk, secret).batches >= made


def test_a_folder_of_an_earlier_version_goes_on_with_its_old_field_names(directory: Path) -> None:
    """The folder was written when `max_values` was `most_values`; p = 0, q = 1: reports are B'."""
    shutil.copytree(EARLIER, directory, ignore=shutil.ignore_patterns("*.toml"))
    collection = Collection.read(EARLIER / "homepage.toml")
    assert (collection.max_values, collection.max_epsilon) == (2, 20.0)
    assert collection.memo_digest.startswith("defd6b60e2e17dc2")
    assert collection.params.digest.startswith("5622e437b372c617")
    clock = FakeClock()
    clock.forward(1)
    collector = FakeTransport()
    options: dict[str, Any] = {"consent": True, "clock": clock, "transport": collector}
    with Client.open(directory, [EARLIER / "homepage.toml"], **options) as client:
        assert client.status().epsilon == pytest.approx(2 * collection.epsilon_infinity)
        client.report("homepage", "c.org")  # a third value: the limit is two
        client.report("homepage", "a.org")
        client.report("homepage", "b.org")
        assert client.flush(LIMIT)
        status = client.status()
    assert status.problem is None
    assert status.calls == {"made": 2, "the limit on values or ε is reached": 1}
    assert status.epsilon == pytest.approx(2 * collection.epsilon_infinity)
    made = sorted((batch.period, batch.cohorts, batch.reports) for batch in collector.batches)
    days: dict[str, set[tuple[bytes, bytes]]] = {}
    for period, cohorts, reports in made:
        days.setdefault(period, set()).add((cohorts, reports))
    assert len(made) == 4
    assert days["2026-11-16"] == days["2026-11-17"]  # the same cohort and the same B'
