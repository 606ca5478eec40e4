"""Consent: given, withdrawn, opted out; while locks are held, after crashes, among processes."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client, consent, workers
from rappor.client import client as client_module
from rappor.client.folder import Busy, Folder
from rappor.client.outbox import Outbox
from rappor.client.sender import Sender
from rappor.client.transport import Answer
from support.client import LIMIT, FakeClock, FakeTransport, homepage
from support.waiting import wait_for


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Client]]:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    made: list[Client] = []

    def open_one(**changes: Any) -> Client:
        settings: dict[str, Any] = {"consent": True, "clock": FakeClock()} | changes
        made.append(Client.open(tmp_path / "client", [homepage()], **settings))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


def with_a_report_waiting(opened: Callable[..., Client]) -> None:
    client = opened()
    client.report("homepage", "a.org")
    assert client.flush(LIMIT)
    client.close()


def test_what_could_not_be_cleared_when_opting_out_is_not_sent_after_opting_in(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_report_waiting(opened)
    client = opened()
    with (
        monkeypatch.context() as hasty,
        Folder(tmp_path / "client").lock("lock", LIMIT),  # another process, stopped in the middle
    ):
        hasty.setattr(consent, "AT_EXIT", 0.0)
        assert not client.opt_out()
        client.opt_in()
    client.close()
    collector = FakeTransport()
    again = opened(transport=collector)
    again.flush(LIMIT)
    assert collector.bodies == []
    assert again.status().state == "on"
    assert again.status().batches == {"dropped: opted out": 1}


def test_what_could_not_be_cleared_when_consent_ended_is_not_sent_with_a_new_consent(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_report_waiting(opened)
    with monkeypatch.context() as hasty, Folder(tmp_path / "client").lock("lock", LIMIT):
        hasty.setattr(consent, "AT_EXIT", 0.0)
        opened(consent=False)
    collector = FakeTransport()
    again = opened(transport=collector)
    again.flush(LIMIT)
    assert collector.bodies == []
    assert not (tmp_path / "client/clearing").exists()


@pytest.mark.slow
@pytest.mark.parametrize("crashing", ["opt_out", "opt_in"])
def test_a_crash_after_each_step_of_opting_out_and_in_sends_nothing_from_before(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashing: str
) -> None:
    class Gone(BaseException):
        pass

    threads: set[int] = set()
    monkeypatch.setattr(workers, "TICK", 10 * LIMIT)  # one look at the calendar, in the beginning
    for step in range(1, 7):
        directory = tmp_path / "client"
        with_a_report_waiting(opened)
        client = opened()
        assert client.flush(LIMIT)  # the background thread has looked, and touches no file now
        if crashing == "opt_in":  # what was there when the person opted out, and was not cleared
            (directory / "opted-out").touch()
        left = step

        def counting(
            real: Callable[..., Any],
        ) -> Callable[..., Any]:
            def counted(self: Folder, *given: Any) -> Any:
                nonlocal left
                threads.add(threading.get_ident())
                left -= 1
                if left < 0:
                    raise Gone
                return real(self, *given)

            return counted

        with monkeypatch.context() as patched:
            for name in ("replace", "remove"):
                patched.setattr(Folder, name, counting(getattr(Folder, name)))
            with contextlib.suppress(Gone):
                getattr(client, crashing)()
        assert threads == {threading.get_ident()}  # where the crash is, and nothing goes on
        client.close()
        collector = FakeTransport()
        again = opened(transport=collector)
        again.flush(LIMIT)
        again.opt_in()
        again.flush(LIMIT)
        assert collector.bodies == [], step
        again.forget()
        again.close()
        (directory / "forgotten").unlink()


def test_opting_out_waits_for_the_upload_of_another_process(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_report_waiting(opened)
    client = opened()
    assert client.flush(LIMIT)  # the background thread has let go of the other lock
    with (
        monkeypatch.context() as hasty,
        Folder(tmp_path / "client").lock("sending.lock", LIMIT),  # it is sending at this moment
    ):
        hasty.setattr(consent, "AT_EXIT", 0.0)
        assert not client.opt_out()
    assert client.status().waiting == 0
    assert client.opt_out()


def test_opting_in_without_a_directory_to_write_to_stays_out(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened()
    assert client.opt_out()

    def refuse(*_: object) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "replace", refuse)
        assert not client.opt_in()
    assert client.status().state == "opted out"
    assert client.opt_in()
    assert client.status().state == "on"


def test_opting_out_where_nothing_was_ever_reported_does_not_stop_the_first_report(
    opened: Callable[..., Client],
) -> None:
    client = opened()
    assert client.opt_out()
    assert client.opt_in()
    client.report("homepage", "a.org")
    assert client.flush(LIMIT)
    assert client.status().calls == {"made": 1}


@pytest.mark.parametrize("consent", [None, 1, "true", lambda: True])
def test_only_true_is_consent(opened: Callable[..., Client], consent: object) -> None:
    with pytest.raises(ValueError, match="consent must be True or False"):
        opened(consent=consent)


@pytest.mark.parametrize("word", ["1", "true", "TRUE", " yes ", "on", "2", "off", "please"])
def test_do_not_track_in_any_spelling_counts(
    opened: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", word)
    assert opened().status().state == "do not track"


@pytest.mark.parametrize("word", ["", "0", "false", "False", "no", " "])
def test_do_not_track_that_says_no_does_not_count(
    opened: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", word)
    assert opened().status().state == "on"


@pytest.mark.slow
def test_calls_from_many_threads_while_opting_out_and_in_never_raise(
    opened: Callable[..., Client],
) -> None:
    client = opened(transport=FakeTransport())
    failures: list[BaseException] = []
    made = [0] * 4
    stop = threading.Event()

    def calls(thread: int) -> None:
        try:
            while not stop.is_set():
                client.report("homepage", "a.org")
                made[thread] += 1
                time.sleep(0)  # let the others run, too
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(len(made))]
    for each in threads:
        each.start()
    try:
        for action in [Client.opt_out, Client.opt_in] * 5:
            action(client)
            before = list(made)
            wait_for(lambda seen=before: failures or all(map(int.__gt__, made, seen)))
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert failures == []


# Whatever lies at the place of a marker.


def dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


def unreadable(path: Path) -> None:
    path.touch(mode=0o000)


def loop(path: Path) -> None:
    path.symlink_to(path)


ENTRIES = [dangling, unreadable, loop, Path.mkdir, os.mkfifo]


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_any_entry_of_that_name_means_opted_out(
    opened: Callable[..., Client], tmp_path: Path, make: Callable[[Path], None]
) -> None:
    with_a_report_waiting(opened)
    make(tmp_path / "client/opted-out")
    collector = FakeTransport()
    client = opened(transport=collector)
    client.report("homepage", "b.org")
    client._workers.flush(LIMIT)
    assert client.status().state == "opted out"
    assert collector.bodies == []
    assert client.opt_out()
    assert client.status().waiting == 0


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_an_entry_that_appears_while_a_client_runs_counts_as_well(
    opened: Callable[..., Client], tmp_path: Path, make: Callable[[Path], None]
) -> None:
    collector = FakeTransport()
    client = opened(transport=collector)
    assert client.flush(LIMIT)
    (tmp_path / "client").mkdir(exist_ok=True)
    make(tmp_path / "client/opted-out")
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    assert client.status().calls == {"opted out": 1}
    assert client.status().state == "opted out"
    assert collector.bodies == []


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_any_entry_named_clearing_keeps_what_waits_from_leaving(
    opened: Callable[..., Client], tmp_path: Path, make: Callable[[Path], None]
) -> None:
    with_a_report_waiting(opened)
    make(tmp_path / "client/clearing")
    collector = FakeTransport()
    client = opened(transport=collector)
    client.flush(LIMIT)
    assert collector.bodies == []


@pytest.mark.parametrize("name", ["secret", "used", "ledger", "forgotten", "epoch"])
def test_a_link_to_nothing_is_not_taken_for_no_file(
    opened: Callable[..., Client], tmp_path: Path, name: str
) -> None:
    (tmp_path / "client").mkdir()
    dangling(tmp_path / "client" / name)
    client = opened()
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    assert client.status().problem == "directory-unusable"
    assert not (tmp_path / "client/nothing").exists()
    assert list((tmp_path / "client").glob("outbox/*")) == []


# Calls from before an opt-out.


def test_a_call_that_waits_while_another_process_opts_out_and_in_is_not_recorded(
    opened: Callable[..., Client], tmp_path: Path
) -> None:
    client, other = opened(), opened()
    assert client.flush(LIMIT)
    held = client._folder._held
    with Folder(tmp_path / "client").lock("lock", LIMIT):
        client.report("homepage", "a.org")
        wait_for(lambda: len(held) == 1, "the background thread, which waits for the lock")
        consent.request_clearing(other._folder)  # as opting out and in again do
    assert client.flush(LIMIT)
    assert client.status().calls == {"opted out": 1}
    client.report("homepage", "a.org")
    assert client.flush(LIMIT)
    assert client.status().calls == {"opted out": 1, "made": 1}


def test_a_call_that_waits_while_its_own_process_opts_out_and_in_is_not_recorded(
    opened: Callable[..., Client], tmp_path: Path
) -> None:
    client = opened()
    assert client.flush(LIMIT)
    held = client._folder._held
    with Folder(tmp_path / "client").lock("lock", LIMIT):
        client.report("homepage", "a.org")
        wait_for(lambda: len(held) == 1, "the background thread, which waits for the lock")
        both = threading.Thread(target=lambda: (client.opt_out(), client.opt_in()))
        both.start()
        wait_for(lambda: len(held) == 2, "opting out, which waits for the lock")
    both.join(LIMIT)
    assert client.flush(LIMIT)
    assert "made" not in client.status().calls
    client.report("homepage", "a.org")
    assert client.flush(LIMIT)
    assert client.status().calls["made"] == 1


@pytest.mark.parametrize("answer", [204, 503])
def test_a_transport_of_the_host_is_waited_for_when_opting_out(
    opened: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    """It sends in one step and may not stop when told to: True only when it has come to an end."""
    inside, release = threading.Event(), threading.Event()

    class Slow(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            inside.set()
            release.wait(LIMIT)
            return Answer(answer)

    client = opened(transport=Slow(), jitter=0)
    client.report("homepage", "a.org")
    assert inside.wait(LIMIT)
    with monkeypatch.context() as hasty:
        hasty.setattr(consent, "AT_EXIT", 0.0)
        assert not client.opt_out()
    release.set()
    assert client.opt_out()


def test_an_upload_waits_while_the_outbox_is_cleared(
    opened: Callable[..., Client], tmp_path: Path
) -> None:
    """Else it could rename a report that the clearing has just listed, and send it later."""
    with_a_report_waiting(opened)
    folder, clock, collector = Folder(tmp_path / "client"), FakeClock(), FakeTransport()
    sender = Sender(folder, clock, Outbox(folder), collector, 0.0)
    upload = threading.Thread(
        target=sender.send, kwargs={"until": clock.monotonic() + LIMIT, "now": True}
    )
    other = Folder(tmp_path / "client")
    with other.lock("lock", LIMIT):
        listed = other.names("outbox")
        upload.start()
        wait_for(lambda: len(folder._held) == 3 or not upload.is_alive(), "the upload")
        assert other.names("outbox") == listed
        consent.request_clearing(other)
        consent.finish_clearing(other, Outbox(other))
    upload.join(LIMIT)
    assert collector.bodies == []
    assert other.names("outbox") == []


def test_opting_in_counts_at_once_after_another_process_did(
    opened: Callable[..., Client],
) -> None:
    client, other = opened(), opened()
    assert other.opt_out()
    assert other.opt_in()
    assert client.opt_in()
    client.report("homepage", "a.org")
    assert client.flush(LIMIT)
    assert client.status().calls == {"made": 1}


def test_opting_in_while_reporting_clears_nothing(opened: Callable[..., Client]) -> None:
    """What waits is charged; only an opt-out, in any process, is a reason to drop it."""
    with_a_report_waiting(opened)
    client = opened()
    assert client.opt_in()
    assert client.status().waiting == 1
    assert client.opt_out()
    assert client.status().waiting == 0
    assert client.opt_in()
    assert client.status().state == "on"


def test_nothing_is_forgotten_until_it_is(
    opened: Callable[..., Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_report_waiting(opened)
    client = opened()
    with (
        monkeypatch.context() as hasty,
        Folder(tmp_path / "client").lock("sending.lock", LIMIT),  # another process sends
    ):
        hasty.setattr(client_module, "AT_EXIT", 0.0)
        with pytest.raises(Busy):
            client.forget()
    assert client.status().state == "stopped"
    assert not client.opt_in()
    assert (tmp_path / "client" / "secret").exists()
    client.forget()
    assert client.status().state == "forgotten"


def test_opting_out_without_room_for_its_mark_deletes_what_waits(
    opened: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_report_waiting(opened)
    client = opened()
    assert client.status().waiting == 1

    def refuse(*_: object) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "replace", refuse)
        assert not client.opt_out()
    client.close()
    collector = FakeTransport()
    opened(transport=collector).flush(LIMIT)
    assert collector.bodies == []
