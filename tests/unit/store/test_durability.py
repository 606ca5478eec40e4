"""Nothing is acknowledged before it is on disk; no failing disk loses or doubles."""

import datetime
import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rappor.errors import StoreBroken, StoreBusy, StoreError, StoreFull, StoreRefused
from rappor.store import open_store
from rappor.store.sqlite import connection as connections
from rappor.store.sqlite import session
from rappor.store.sqlite.connection import connect, prepare
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.faulty_disk import Careless, Disk, _File
from support.store_samples import DAY, always, cell, collection, fold, token


@pytest.fixture(
    params=[256, 1, pytest.param(3, marks=pytest.mark.long)],
    ids="the log begins again after {} commits".format,
)
def rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FOLD_COMMITS", request.param)


def define(store: SqliteStore) -> None:
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")


def one(number: int) -> Any:
    return [token(number)], always([fold(cell(), number % 4, [number], keep=True)]), DAY


def acknowledged_unsynced(disk: Disk, path: Path, adds: int = 50) -> int:
    """How many calls of `add` returned while something was written and not synced."""
    store = disk.open(path)
    define(store)
    found = 0
    for number in range(adds):
        store.add(*one(number))
        found += bool(disk.unsynced)
    store.close()
    return found


# What is acknowledged is on disk.


@pytest.mark.usefixtures("rounds")
def test_no_add_returns_while_its_writes_are_unsynced(tmp_path: Path) -> None:
    disk = Disk()
    assert acknowledged_unsynced(disk, tmp_path / "store.sqlite") == 0
    assert disk.calls > 100  # it did see the writes


def test_a_build_with_synchronous_off_fails_the_same_test(tmp_path: Path) -> None:
    assert acknowledged_unsynced(Careless(), tmp_path / "store.sqlite") == 50


def test_definitions_audit_and_retention_are_synced_too(tmp_path: Path) -> None:
    disk = Disk()
    store = disk.open(tmp_path / "store.sqlite")
    define(store)
    assert not disk.unsynced
    store.audit("ann", "export", "homepage")
    assert not disk.unsynced
    store.add(*one(1))
    store.retain(DAY + datetime.timedelta(days=30))
    assert not disk.unsynced
    store.add_file(b"1", [fold(cell(), 0, [1])], actor="ann", detail="a file")
    assert not disk.unsynced
    store.close()


def test_every_connection_is_told_and_asked(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for each in store._session._open:  # type: ignore[attr-defined]
        answers = {
            name: each.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        }
        wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}
        assert answers == wanted
    store.close()


def test_a_sqlite_that_does_not_obey_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    open_store(tmp_path).close()
    settings = dict(connections._SETTINGS) | {"synchronous": ("OFF", 2)}
    monkeypatch.setattr(connections, "_SETTINGS", settings)
    with connect(path, False) as each, pytest.raises(StoreError, match="synchronous"):
        prepare(each, False)
    each.close()
    with pytest.raises(StoreError, match="synchronous"):
        open_store(tmp_path)


# What a killed process has written and not synced.

# Adds a batch and dies when its transaction is written and not yet synced.
_DIES_BEFORE_ITS_SYNC = """
import os, sys
from pathlib import Path
from support.faulty_disk import Disk
from support.store_samples import DAY, always, cell, fold, token
disk = Disk()
store = disk.open(Path(sys.argv[1]))
def happens(what):
    if what == "sync" and disk.unsynced.get("store.sqlite-wal", 0) > 4096:  # not its header
        os._exit(9)
disk.happens = happens
store.add([token(2)], always([fold(cell(), 1, [7])]), DAY)
"""


def killed_before_its_sync(folder: Path) -> None:
    """Have a process write a batch to a store, and die before it is synced."""
    died = subprocess.run(
        [sys.executable, "-c", _DIES_BEFORE_ITS_SYNC, str(folder / "store.sqlite")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=300,
    )
    assert died.returncode == 9


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are synced from now on, by us or by SQLite."""
    names: list[str] = []
    by_hand, by_sqlite = os.fsync, _File.xSync

    def fsync(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        by_hand(descriptor)

    def sync(file: _File, flags: int) -> None:
        names.append(file.named)
        by_sqlite(file, flags)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(_File, "xSync", sync)
    return names


@pytest.mark.slow
def test_a_batch_that_a_dead_process_did_not_sync_is_synced_before_it_is_a_duplicate(
    tmp_path: Path, synced: list[str]
) -> None:
    """Killed between write and sync, the transaction is read back from the page cache. Telling its
    sender "stored" is a promise that the disk has not made yet."""
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    store.add([token(1)], always([fold(cell(), 1, [5])]), DAY)
    store.close()
    killed_before_its_sync(tmp_path)
    synced.clear()
    again = Disk().open(tmp_path / "store.sqlite")
    assert again.add([token(2)], always([fold(cell(), 1, [7])]), DAY) == [False]
    assert "store.sqlite-wal" in synced
    again.close()


@pytest.mark.slow
def test_a_log_that_a_reader_has_recovered_is_synced_as_well(
    tmp_path: Path, synced: list[str]
) -> None:
    """`rappor status` comes first after the kill, and is still at it when the collector starts."""
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    store.close()
    killed_before_its_sync(tmp_path)
    looking = open_store(tmp_path, read_only=True)
    synced.clear()
    again = open_store(tmp_path)
    assert again.add([token(2)], always([fold(cell(), 1, [7])]), DAY) == [False]
    assert "store.sqlite-wal" in synced
    again.close()
    looking.close()


# Disks that are full or fail.


def writes_of(action: Callable[[SqliteStore], object], path: Path) -> int:
    """How many operations on the disk an action takes."""
    disk = Disk()
    store = disk.open(path)
    define(store)
    store.add(*one(1))
    disk.calls = 0
    action(store)
    calls = disk.calls
    store.close()
    return calls


ACTIONS: dict[str, Callable[[SqliteStore], object]] = {
    "add": lambda store: store.add(*one(2)),
    "settle": lambda store: store.settle(),
    "retain": lambda store: store.retain(DAY + datetime.timedelta(days=10)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("how", ["full", "io"])
@pytest.mark.usefixtures("rounds")
def test_a_disk_that_fails_at_any_write_loses_and_doubles_nothing(
    tmp_path: Path, name: str, how: str
) -> None:
    action = ACTIONS[name]
    calls = writes_of(action, tmp_path / "measure" / "store.sqlite")
    assert calls >= 2
    for at in range(calls):
        path = tmp_path / f"{at}" / "store.sqlite"
        disk = Disk()
        store = disk.open(path)
        define(store)
        assert store.add(*one(1)) == [True]
        before = samples.everything(store)
        disk.arm(at, how)
        failure: StoreError | None = None
        try:
            action(store)
        except StoreError as error:
            failure = error
        assert disk.failed
        disk.disarm()
        if how == "io" and failure is not None:
            assert isinstance(failure, StoreBroken)
            with pytest.raises(StoreBroken, match="nothing is tried again"):
                store.add(*one(3))
            with pytest.raises(StoreBroken, match="nothing is tried again"):
                store.cells()
        elif failure is not None:
            assert type(failure) is StoreFull
            assert samples.everything(store) == before
            assert store.add(*one(3)) == [True]  # it recovers in place
        store.close()
        # A restart: what was acknowledged is there, what was not can be sent again, all once.
        again = open_store(path.parent)
        assert again.check() == []
        assert again.add(*one(1)) == [False]
        again.add(*one(2))
        again.add(*one(3))
        assert [each.reports for each in again.counts("homepage")] == [3]
        again.close()


def test_a_failed_sync_is_never_tried_again(tmp_path: Path) -> None:
    disk = Disk()
    store = disk.open(tmp_path / "store.sqlite")
    define(store)
    disk.arm(0, "io", once=True, which={"sync"})
    with pytest.raises(StoreBroken, match="disk failed"):
        store.add(*one(1))
    calls = disk.calls
    with pytest.raises(StoreBroken, match="nothing is tried again"):
        store.add(*one(1))
    with pytest.raises(StoreBroken):
        store.settle()
    assert disk.calls == calls == 1
    store.close()


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_full_rolled_back_and_goes_on(tmp_path: Path) -> None:
    """The real library, limited by SQLite itself instead of by a disk."""
    store = open_store(tmp_path)
    assert isinstance(store, SqliteStore)
    define(store)
    pages = store._session._writer.execute("PRAGMA page_count").fetchone()[0]
    store._session._writer.execute(f"PRAGMA max_page_count={pages + 2}").fetchone()
    added = 0

    def add_more() -> None:
        nonlocal added
        while added < 5000:
            store.add(*one(added + 1))
            added += 1

    with pytest.raises(StoreFull, match="no room"):
        add_more()
    assert added > 0
    assert sum(each.reports for each in store.counts("homepage")) == added
    assert store.check() == []
    store._session._writer.execute("PRAGMA max_page_count=1000000").fetchone()
    assert store.add(*one(added + 1)) == [True]
    store.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_IOERR | 19 << 8, StoreFull),  # no room for the log's index
        (sqlite3.SQLITE_IOERR | 4 << 8, StoreBroken),  # fsync
        (sqlite3.SQLITE_IOERR, StoreBroken),
        (sqlite3.SQLITE_CORRUPT, StoreError),
        (sqlite3.SQLITE_BUSY, StoreBusy),
        (sqlite3.SQLITE_CANTOPEN, StoreRefused),
    ],
)
def test_errors_of_sqlite_become_ours(code: int, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code  # type: ignore[attr-defined]
    assert type(connections.translated(error, Path("store.sqlite"))) is kind


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, OSError)) as caught:
        open_store(tmp_path / "file" / "data")
    assert getattr(caught.value, "errno", errno.ENOTDIR) == errno.ENOTDIR
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "missing", read_only=True)
    assert not (tmp_path / "missing").exists()
    with pytest.raises(StoreError, match="mysql:// is not supported"):
        open_store("mysql://localhost/x")
