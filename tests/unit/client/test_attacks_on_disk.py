"""Attacks on a client's directory: files removed, planted, restored; calls that come too late."""

import datetime
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.folder import Folder
from rappor.client.ledger_file import load_ledger
from rappor.client.outbox import Outbox
from rappor.params import Params
from support.client import MONDAY, FakeClock, FakeTransport, MemoryDisk, homepage, recorder_on

DAY = datetime.timedelta(days=1)
ONCE = homepage(
    name="once", params=Params(16, 2, 4, 0.0, 0.25, 0.75), one_time=True, most_epsilon=99.0
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    return tmp_path / "client"


def used(directory: Path, clock: FakeClock, *collections: Any) -> FakeTransport:
    """A directory from which one report was sent."""
    collector = FakeTransport()
    given = collections or (homepage(),)
    with Client.open(directory, given, consent=True, clock=clock, transport=collector) as client:
        client.report(given[0].name, "a.org")
        assert client.flush(10)
    return collector


def report_again(directory: Path, clock: FakeClock, **options: Any) -> str | None:
    """The problem that a further report meets, a day later."""
    clock.forward(1)
    with Client.open(directory, [homepage()], consent=True, clock=clock, **options) as client:
        client.report("homepage", "a.org")
        client.flush(10)
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
        assert client.forget().epsilon == pytest.approx(homepage().most_epsilon)


@pytest.mark.parametrize("account", [None, b"an account's own secret"])
def test_a_directory_that_vanishes_under_a_running_client_does_not_start_anew(
    directory: Path, account: bytes | None
) -> None:
    clock = FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "account_secret": account}
    with Client.open(directory, [homepage()], **given) as client:
        client.report("homepage", "a.org")
        assert client.flush(10)
        shutil.rmtree(directory)
        clock.forward(1)
        client.report("homepage", "a.org")
        assert not client.flush(10)
        assert client.status().problem in ("secret-missing", "ledger-outdated")
    assert not (directory / "secret").exists()
    assert not (directory / "ledger").exists()


def test_a_directory_set_back_under_a_running_client_stops_it(directory: Path) -> None:
    clock = FakeClock()
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        client.report("homepage", "a.org")
        assert client.flush(10)
        shutil.copytree(directory, directory.parent / "backup")
        clock.forward(1)
        client.report("homepage", "a.org")
        assert client.flush(10)
        shutil.rmtree(directory)
        shutil.copytree(directory.parent / "backup", directory)
        clock.forward(-1)
        clock.forward(2)
        client.report("homepage", "a.org")
        assert not client.flush(10)
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
        assert client.flush(10)
        monkeypatch.chdir(tmp_path / "elsewhere")  # as a daemon does
        clock.forward(1)
        client.report("homepage", "a.org")
        assert client.flush(10)
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
            client.flush(1)
            if client.status().problem == "directory-unusable":
                done.set()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    assert done.wait(10)
    thread.join(5)


# Forgetting.


def test_forgetting_leaves_no_unfinished_copy_of_the_secret(directory: Path) -> None:
    used(directory, FakeClock())
    (directory / ".new-0123").write_bytes((directory / "secret").read_bytes())
    (directory / "outbox/.new-0123").write_bytes(b"half a report")
    with Client.open(directory, [homepage()], consent=True) as client:
        client.forget()
    left = {path.name for path in directory.rglob("*") if path.is_file()}
    assert left <= {"forgotten", "lock", "upload.lock"}


@pytest.mark.parametrize("lost", [False, True], ids=["ledger known", "ledger lost"])
def test_forgetting_does_not_give_a_period_a_second_report(directory: Path, lost: bool) -> None:
    clock = FakeClock()
    generous = homepage(most_epsilon=99.0)
    collector = used(directory, clock, generous)
    if lost:
        (directory / "ledger").unlink()
    for _ in range(3):
        given: dict[str, Any] = {"consent": True, "clock": clock}
        with Client.open(directory, [generous], **given) as client:
            client.forget()
        with Client.open(directory, [generous], transport=collector, **given) as client:
            client.report("homepage", "a.org")
            client.flush(10)
    assert len(collector.bodies) == 1
    if not lost:
        clock.forward(1)
        used(directory, clock, generous)
        assert (directory / "secret").exists()


def test_forgetting_does_not_give_a_second_one_time_report(directory: Path) -> None:
    clock = FakeClock()
    collector = used(directory, clock, ONCE)
    with Client.open(directory, [ONCE], consent=True, clock=clock) as client:
        client.forget()
    clock.forward(3)
    with Client.open(directory, [ONCE], consent=True, clock=clock, transport=collector) as client:
        client.report("once", "b.org")
        client.flush(10)
        assert client.status().calls == {"the reports of this period are made": 1}
    assert len(collector.bodies) == 1


def test_forgetting_a_lost_ledger_keeps_what_was_forgotten_before(directory: Path) -> None:
    clock = FakeClock()
    other = homepage(name="other")
    used(directory, clock, other)
    with Client.open(directory, [other], consent=True, clock=clock) as client:
        first = client.forget().epsilon
    clock.forward(1)
    used(directory, clock)
    (directory / "ledger").unlink()
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        assert client.forget().epsilon == pytest.approx(first + homepage().most_epsilon)


def test_a_call_that_waits_for_the_lock_while_all_is_forgotten_draws_no_new_secret(
    directory: Path,
) -> None:
    for attempt in range(12):
        clock = FakeClock(MONDAY + attempt * DAY)
        client = Client.open(directory, [homepage(most_epsilon=999.0)], consent=True, clock=clock)
        client.flush(10)
        with Folder(directory).lock("lock", 5):
            client.report("homepage", "a.org")
            time.sleep(0.05)  # the background thread takes the call, and waits for the lock
            waits = threading.Thread(target=client.forget)
            waits.start()
            while client.status().state != "forgotten":
                pass
        waits.join()
        client.close()
        assert not (directory / "secret").exists()


# Crashes and full disks.


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


ACTIONS: list[Callable[[Client], Any]] = [Client.opt_out, lambda client: client.forget()]


@pytest.mark.parametrize("action", ACTIONS, ids=["opting out", "forgetting"])
def test_files_left_by_other_collections_are_not_sent_later(
    directory: Path, action: Callable[[Client], Any]
) -> None:
    """A One-time report that a crash kept from the outbox, and a host that names it no more."""
    clock = FakeClock()
    used(directory, clock, ONCE)
    for marker in directory.glob("once/*.queued"):
        marker.unlink()  # as after a crash between the two writes
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        action(client)
    collector = FakeTransport()
    with Client.open(directory, [ONCE], consent=True, clock=clock, transport=collector) as client:
        client.opt_in()
        client.flush(10)
    assert collector.bodies == []
