"""Each batch counts once, even if others send it, kill the collector or use its store."""

import gzip
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor import Report
from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import JSON, encode_batch, encode_batch_json
from support.collecting import (
    PARAMS,
    Client,
    Process,
    batch,
    client_of,
    collector,
    day,
    stored,
    write_collections,
)
from support.command import rappor
from support.waiting import wait_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Process]:
    """One collector for tests that leave it at work; each has a period of its own."""
    with collector(folder) as process:
        yield process


# What is sent.


def test_a_token_sent_on_many_connections_at_once_counts_once(
    folder: Path, shared: Process
) -> None:
    body = encode_batch(batch(token=os.urandom(16), period=day(-1)))
    clients = [Client(shared.port) for _ in range(16)]
    threads = [threading.Thread(target=each.send, args=(body,)) for each in clients]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in clients:
        each.close()
    assert stored(folder)[day(-1), ""] == 1


def test_a_batch_is_known_in_both_formats_and_after_a_kill(tmp_path: Path) -> None:
    made = batch(token=bytes(range(16)))
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(made).status == 204
        assert process.end(signal.SIGKILL) != 0
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(encode_batch_json(made), content_type=JSON).status == 204
        zipped = gzip.compress(encode_batch(made))
        assert client.send(zipped, content_encoding="gzip").status == 204
        assert 'result="duplicate"} 2' in client.get("/metrics").body.decode()
    assert stored(tmp_path) == {(day(), ""): 1}


# What other commands do to the store meanwhile.


@pytest.mark.parametrize("rounds", [2, pytest.param(6, marks=pytest.mark.long)])
def test_other_commands_change_the_store_while_the_collector_counts(
    tmp_path: Path, rounds: int
) -> None:
    """Imports, retention and backups by hand: nothing that a collector remembers may be stale.

    What the first round left in its memory would be wrong in the second.
    """
    folder = write_collections(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=7))
    data = ("--data", tmp_path / "data")
    with collector(tmp_path) as process, client_of(process) as client:
        for number in range(rounds):
            made = batch([Report(1, 5)] * 3, token=bytes([number] * 16))
            assert client.send(made).status == 204
            file = tmp_path / f"{number}.csv"
            file.write_text(f"client,cohort,rappor\n{number},1,{number:016b}\n")
            done = rappor("import", file, *data, "--collection", "homepage", "--period", day())
            assert done.returncode == 0, done.stderr
            assert rappor("retain", *data).returncode == 0
            assert rappor("backup", *data, "--output", tmp_path / "b", "--force").returncode == 0
            assert client.send(made).status == 204
    assert stored(tmp_path) == {(day(), ""): rounds * 4}
    assert rappor("status", *data).returncode == 0
    assert folder.exists()


def test_a_restored_backup_knows_the_batches_it_holds(tmp_path: Path) -> None:
    before, after = batch(token=bytes(16)), batch(token=bytes([1] * 16))
    copy, data = tmp_path / "b.backup", tmp_path / "data"
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(before).status == 204
        assert rappor("backup", "--data", data, "--output", copy).returncode == 0
        assert client.send(after).status == 204
    data.rename(tmp_path / "away")
    assert rappor("restore", copy, "--data", data).returncode == 0
    with collector(tmp_path) as process, client_of(process) as client:
        assert [client.send(each).status for each in (before, after, after)] == [204, 204, 204]
    assert stored(tmp_path) == {(day(), ""): 2}


def test_a_backup_is_restored_when_the_collector_of_a_deleted_store_has_ended(
    tmp_path: Path,
) -> None:
    """Before that `restore` refuses (tests/unit/store/test_copies.py), and the collector ends by
    itself: what it acknowledged would go into a file that has no name any more."""
    data, copy = tmp_path / "data", tmp_path / "b.backup"
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        assert rappor("backup", "--data", data, "--output", copy).returncode == 0
        for file in data.glob("store.sqlite*"):
            file.unlink()
        assert process.wait() == 1
    done = rappor("restore", copy, "--data", data)
    assert done.returncode == 0, done.stderr
    assert stored(tmp_path) == {(day(), ""): 1}


@pytest.mark.parametrize(
    ("name", "ago"), [("store.sqlite-wal", -2), ("store.sqlite-shm", -3), ("store.lock", -4)]
)
def test_a_backup_never_takes_the_place_of_a_file_of_the_store(
    folder: Path, shared: Process, name: str, ago: int
) -> None:
    data = folder / "data"
    with client_of(shared) as client:
        assert client.send(batch(period=day(ago))).status == 204
        file = (data / name).stat().st_ino
        done = rappor("backup", "--data", data, "--output", data / name, "--force")
        assert done.returncode == 3
        assert (data / name).stat().st_ino == file
        assert client.send(batch(period=day(ago))).status == 204
    assert stored(folder)[day(ago), ""] == 2


def test_a_backup_never_takes_the_place_of_another_store(
    folder: Path, shared: Process, tmp_path: Path
) -> None:
    other = tmp_path / "store.sqlite"
    open_store(tmp_path).close()
    before = other.read_bytes()
    done = rappor("backup", "--data", folder / "data", "--output", other, "--force")
    assert done.returncode == 3
    assert other.read_bytes() == before


def test_the_store_is_read_while_it_is_written_and_stays_sound(
    folder: Path, shared: Process
) -> None:
    stop = threading.Event()
    sent: list[int] = []

    def flood() -> None:
        client = Client(shared.port)
        while not stop.is_set():
            sent.append(client.send(batch([Report(1, 5), Report(2, 9)], period=day(-5))).status)
        client.close()

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for each in threads:
        each.start()
    try:
        seen = 0
        for look in range(5):
            wait_for(lambda: len(sent) > 20 * look)  # noqa: B023
            store = open_store(folder / "data", read_only=True)
            assert store.check() == []
            total = sum(each.reports for each in store.cells() if each.cell.period == day(-5))
            assert total >= seen
            assert total % 2 == 0
            seen = total
            store.close()
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert set(sent) == {204}
    assert stored(folder)[day(-5), ""] == 2 * len(sent)


def test_every_file_of_the_store_is_its_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with collector(tmp_path) as process, client_of(process) as client:
            assert client.send(batch()).status == 204
            copy = tmp_path / "b.backup"
            done = rappor("backup", "--data", tmp_path / "data", "--output", copy)
            assert done.returncode == 0
            files = [*(tmp_path / "data").iterdir(), copy]
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    finally:
        os.umask(before)
