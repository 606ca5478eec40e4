"""A log that is destroyed is never taken for an empty one."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rappor.errors import StoreBroken, StoreError, StoreLost
from rappor.store import open_store, restore_store
from rappor.store.sqlite import commits, session
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.store_samples import DAY, always, cell, collection, fold, token

NAME = "store.sqlite"
LOG, INDEX, RECORD = f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-commits"
BATCHES = 100

NewFolder = Callable[[str], Path]
Damage = Callable[[Path, random.Random], None]

# Acknowledges batches and dies as by kill -9; argv: the folder, the batches, what to do first.
_WRITER = """
import os, signal, sys
from rappor.store import open_store
from support.store_samples import DAY, always, cell, collection, fold, token
store = open_store(sys.argv[1])
store.save_definition(collection().to_toml(), actor="ann")
for number in range(int(sys.argv[2])):
    assert store.add([token(number)], always([fold(cell(), number % 4, [number])]), DAY) == [True]
if sys.argv[3] == "settled":
    store.settle()
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(folder: Path, batches: int, how: str = "") -> Path:
    """A store whose writer was killed after this many acknowledged batches."""
    subprocess.run(
        [sys.executable, "-c", _WRITER, str(folder), str(batches), how],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=300,
    )
    assert (folder / LOG).exists()
    return folder


@pytest.fixture(scope="module")
def killed(new_folder: NewFolder) -> Path:
    folder = killed_after(new_folder("killed"), BATCHES)
    assert (folder / LOG).stat().st_size > BATCHES * 4096
    return folder


def reports_in(folder: Path) -> int:
    store = open_store(folder, read_only=True)
    try:
        return sum(each.reports for each in store.cells())
    finally:
        store.close()


def verdict(folder: Path) -> str:
    """What the next process makes of a store with a hundred acknowledged batches."""
    try:
        store = open_store(folder)
    except StoreError:
        return "refused"
    try:
        problems = store.check()
        if problems:
            return "possible loss"
        complete = sum(each.reports for each in store.cells()) == BATCHES
        return "complete" if complete else "silent"
    finally:
        store.close()


# What can happen to the log and its index: each gets the folder and what to draw from.


def cut(name: str, size: int | None = None) -> Damage:
    def damage(folder: Path, rng: random.Random) -> None:
        path = folder / name
        if path.exists():
            os.truncate(path, rng.randrange(path.stat().st_size) if size is None else size)

    return damage


def cut_at_a_commit(folder: Path, rng: random.Random) -> None:
    """The prefix that is left is a sound log."""
    path = folder / LOG
    frames = (path.stat().st_size - 32) // 4120
    os.truncate(path, 32 + rng.randrange(frames) * 4120)


def zero(name: str, size: int | None = None) -> Damage:
    def damage(folder: Path, rng: random.Random) -> None:
        path = folder / name
        if not path.exists():
            return
        length = path.stat().st_size
        start = 0 if size is not None else rng.randrange(length)
        end = length if size is None else min(size, length)
        with path.open("r+b") as file:
            file.seek(start)
            file.write(bytes(end - start))

    return damage


def delete(name: str) -> Damage:
    return lambda folder, rng: (folder / name).unlink(missing_ok=True)


def garbage(name: str) -> Damage:
    def damage(folder: Path, rng: random.Random) -> None:
        path = folder / name
        if path.exists():
            path.write_bytes(rng.randbytes(path.stat().st_size))

    return damage


def nothing(folder: Path, rng: random.Random) -> None:
    pass


TO_THE_LOG: list[Damage] = [
    zero(LOG, 4096),
    zero(LOG, 65536),
    zero(LOG, 2**30),
    cut(LOG, 0),
    cut(LOG, 1),
    cut(LOG, 31),
    cut(LOG, 32),
    delete(LOG),
    cut_at_a_commit,
    garbage(LOG),
    cut(LOG),
    zero(LOG),
]
TO_THE_INDEX: list[Damage] = [
    nothing,
    delete(INDEX),
    cut(INDEX, 0),
    cut(INDEX, 96),
    zero(INDEX, 136),
    zero(INDEX, 2**20),
    garbage(INDEX),
    cut(INDEX),
]
WAYS = [(log, index) for log in TO_THE_LOG for index in TO_THE_INDEX]


def verdicts_of(killed: Path, where: Path, ways: list[tuple[Damage, Damage]]) -> Counter[str]:
    rng = random.Random(2)
    found: Counter[str] = Counter()
    for log, index in ways:
        shutil.copytree(killed, where / "damaged")
        log(where / "damaged", rng)
        index(where / "damaged", rng)
        found[verdict(where / "damaged")] += 1
        shutil.rmtree(where / "damaged")
    return found


@pytest.mark.slow
def test_no_destroyed_log_is_taken_for_an_empty_one(killed: Path, tmp_path: Path) -> None:
    """Each kind of damage to the log, with its index and without it."""
    verdicts = verdicts_of(killed, tmp_path, [way for way in WAYS if way[1] in TO_THE_INDEX[:2]])
    assert verdicts["silent"] == 0, verdicts
    assert verdicts["refused"] >= 20, verdicts


@pytest.mark.long
def test_a_log_and_an_index_damaged_in_200_ways_lose_nothing_in_silence(
    killed: Path, tmp_path: Path
) -> None:
    ways = [WAYS[number % len(WAYS)] for number in range(200)]  # those that draw draw again
    verdicts = verdicts_of(killed, tmp_path, ways)
    assert verdicts["silent"] == 0, verdicts
    assert sum(verdicts.values()) == 200
    assert verdicts["refused"] >= 180, verdicts


@pytest.mark.slow
@pytest.mark.parametrize("damage", [delete(LOG), cut(LOG, 0), zero(LOG, 4096), cut_at_a_commit])
def test_without_a_record_the_index_or_the_doubt_tells(
    killed: Path, tmp_path: Path, damage: Damage
) -> None:
    """Where the record of commits is destroyed as well."""
    for number, index in enumerate([nothing, delete(INDEX)]):
        for kill_record in (delete(RECORD), zero(RECORD, 2**20)):
            folder = tmp_path / f"{number}"
            shutil.copytree(killed, folder)
            damage(folder, random.Random(number))
            index(folder, random.Random(number))
            kill_record(folder, random.Random(number))
            assert verdict(folder) in ("refused", "possible loss")
            shutil.rmtree(folder)


def test_a_file_that_is_alone_after_a_crash_is_a_possible_loss_until_it_is_accepted(
    killed: Path, tmp_path: Path
) -> None:
    """The main file of a store that was being written, without log, index and record."""
    shutil.copy(killed / NAME, tmp_path)
    for _ in range(2):  # also after a collector has opened it
        looking = open_store(tmp_path, read_only=True)
        (problem,) = looking.check()
        assert "possible loss" in problem
        looking.close()
        open_store(tmp_path).close()
    store = open_store(tmp_path, accept_loss="ann")
    assert store.check() == []
    last = store.audit_log()[-1]
    assert (last.actor, last.action) == ("ann", "accept-loss")
    assert "possible loss" in last.detail
    store.close()


# What is no loss.


def test_a_killed_store_is_complete(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "copy")
    assert verdict(tmp_path / "copy") == "complete"


@pytest.mark.slow
def test_a_kill_after_the_log_was_emptied_is_no_loss(new_folder: NewFolder) -> None:
    for number, damage in enumerate([nothing, delete(LOG), delete(INDEX)]):
        folder = killed_after(new_folder(f"settled-{number}"), BATCHES, "settled")
        assert (folder / LOG).stat().st_size == 0
        damage(folder, random.Random(1))
        assert verdict(folder) == "complete"


def test_an_index_that_a_power_cut_left_behind_is_no_loss(
    tmp_path: Path, new_folder: NewFolder
) -> None:
    """The index is never synced: it may tell of a log that was folded in and emptied since."""
    live, after = new_folder("live"), tmp_path / "after"
    after.mkdir()
    store = open_store(live)
    store.save_definition(collection().to_toml(), actor="ann")
    for number in range(BATCHES):
        store.add([token(number)], always([fold(cell(), 0, [number])]), DAY)
    stale = (live / INDEX).read_bytes()
    store._session.settle()  # type: ignore[attr-defined]
    for name in (NAME, LOG, RECORD):
        shutil.copy(live / name, after)
    (after / INDEX).write_bytes(stale)
    store.close()
    assert verdict(after) == "complete"


def test_a_record_that_a_power_cut_left_behind_is_no_loss(killed: Path, tmp_path: Path) -> None:
    """It is a lower bound, and some of its slots may be torn."""
    shutil.copytree(killed, tmp_path / "copy")
    path = tmp_path / "copy" / RECORD
    data = path.read_bytes()
    path.write_bytes(data[:70] + bytes(len(data) - 70))
    found = commits.recorded(tmp_path / "copy" / NAME)
    assert found is not None
    assert verdict(tmp_path / "copy") == "complete"


@pytest.mark.parametrize("keep", [[NAME], [NAME, RECORD]])
def test_after_an_orderly_end_the_main_file_is_enough(tmp_path: Path, keep: list[str]) -> None:
    store = open_store(tmp_path / "data")
    samples.fill(store)
    truth = samples.everything(store)
    store.close()
    (tmp_path / "copy").mkdir()
    for name in keep:
        shutil.copy(tmp_path / "data" / name, tmp_path / "copy")
    for read_only in (True, False):
        again = open_store(tmp_path / "copy", read_only=read_only)
        assert again.check() == []
        assert samples.everything(again) == truth
        again.close()


def test_others_may_come_and_go_while_a_store_is_open(tmp_path: Path) -> None:
    """`status`, `export`, `backup` next to a collector that is then killed."""
    store = open_store(tmp_path / "data")
    samples.fill(store, batches=3)
    for number in range(3):
        looking = open_store(tmp_path / "data", read_only=True)
        assert looking.check() == []
        looking.close()
        other = open_store(tmp_path / "data")
        other.audit("ann", "export", "homepage")
        other.backup(tmp_path / "copy")
        other.close()
        store.add([token(number)], always([fold(cell(), 0, [number])]), DAY)
    truth = samples.everything(store)
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    store.close()
    again = open_store(tmp_path / "killed")
    assert again.check() == []
    assert samples.everything(again) == truth
    again.close()
    restore_store(tmp_path / "copy", tmp_path / "restored")
    restored = open_store(tmp_path / "restored")
    assert restored.check() == []
    restored.close()


def test_a_backup_is_restored_where_a_record_was_left(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "data")
    store = open_store(tmp_path / "data")
    store.backup(tmp_path / "copy")
    store.add([token(1000)], always([fold(cell(), 0, [1])]), DAY)
    store.close()
    (tmp_path / "data" / NAME).unlink()
    assert (tmp_path / "data" / RECORD).exists()
    restore_store(tmp_path / "copy", tmp_path / "data")
    assert verdict(tmp_path / "data") == "complete"


# What is a loss, and the way forward.


def test_a_refused_store_is_left_as_it_is(killed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(killed, folder)
    zero(LOG, 4096)(folder, random.Random(1))
    (folder / INDEX).unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for read_only in (True, False, True):
        with pytest.raises(StoreLost, match="acknowledged"):
            open_store(folder, read_only=read_only)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_older_main_file_in_its_place_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    samples.fill(store, batches=3)
    store.close()
    older = (tmp_path / NAME).read_bytes()
    store = open_store(tmp_path)
    store.add([token(1)], always([fold(cell(), 0, [1])]), DAY)
    store.close()
    (tmp_path / NAME).write_bytes(older)
    with pytest.raises(StoreLost, match="missing"):
        open_store(tmp_path)


def in_use_after(folder: Path, batches: int, copies: dict[int, Path]) -> None:
    """Copies of a folder, as kill -9 would leave it, after so many batches."""
    store = open_store(folder)
    store.save_definition(collection().to_toml(), actor=folder.name)
    for number in range(1, batches + 1):
        store.add([token(number)], always([fold(cell(), number % 4, [number])]), DAY)
        if number in copies:
            shutil.copytree(folder, copies[number])
    store.close()


def exchanged(folder: Path, source: Path, *names: str) -> None:
    for name in names:
        shutil.copy(source / name, folder)


@pytest.mark.parametrize("names", [(LOG,), (LOG, RECORD), (LOG, INDEX)])
def test_a_log_of_an_earlier_round_is_not_folded_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """SQLite would: its frames are sound, and take the store back to how it was."""
    monkeypatch.setattr(session, "FOLD_COMMITS", 60)
    copies = {50: tmp_path / "earlier", BATCHES: tmp_path / "later"}
    in_use_after(tmp_path / "data", BATCHES, copies)
    exchanged(tmp_path / "later", tmp_path / "earlier", *names)
    assert verdict(tmp_path / "later") == "refused"


def test_a_log_and_an_index_of_an_earlier_moment_without_a_record_are_a_possible_loss(
    tmp_path: Path,
) -> None:
    copies = {50: tmp_path / "earlier", BATCHES: tmp_path / "later"}
    in_use_after(tmp_path / "data", BATCHES, copies)
    exchanged(tmp_path / "later", tmp_path / "earlier", LOG, INDEX)
    (tmp_path / "later" / RECORD).unlink()
    assert verdict(tmp_path / "later") == "possible loss"


@pytest.mark.parametrize(
    "names", [(NAME,), (NAME, LOG), (NAME, LOG, INDEX), (LOG,), (LOG, INDEX), (RECORD,)]
)
def test_files_of_two_stores_are_told_apart(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Also where the other store has more commits than this one's record names."""
    in_use_after(tmp_path / "data", BATCHES, {BATCHES: tmp_path / "killed"})
    in_use_after(tmp_path / "other", 2 * BATCHES, {2 * BATCHES: tmp_path / "more"})
    exchanged(tmp_path / "killed", tmp_path / "more", *names)
    assert verdict(tmp_path / "killed") in ("refused", "possible loss")


@pytest.mark.parametrize("gone", [RECORD, INDEX])
def test_an_empty_main_file_does_not_cost_the_log(killed: Path, tmp_path: Path, gone: str) -> None:
    """SQLite deletes the log of an empty file, and begins anew."""
    shutil.copytree(killed, tmp_path / "data")
    os.truncate(tmp_path / "data" / NAME, 0)
    (tmp_path / "data" / gone).unlink()
    for read_only in (True, False):
        with pytest.raises(StoreLost):
            open_store(tmp_path / "data", read_only=read_only)
    assert (tmp_path / "data" / LOG).read_bytes() == (killed / LOG).read_bytes()


def test_a_record_without_a_name_is_given_one(killed: Path, tmp_path: Path) -> None:
    """As those of earlier versions are."""
    shutil.copytree(killed, tmp_path / "data")
    path = tmp_path / "data" / RECORD
    name = commits.named(tmp_path / "data" / NAME)
    assert name is not None
    os.truncate(path, path.stat().st_size - 1)
    assert commits.named(tmp_path / "data" / NAME) is None
    assert verdict(tmp_path / "data") == "complete"
    assert commits.named(tmp_path / "data" / NAME) == name


@pytest.mark.parametrize("left", [LOG, RECORD])
def test_a_store_is_not_made_anew_where_another_has_left_its_files(
    killed: Path, tmp_path: Path, left: str
) -> None:
    shutil.copy(killed / left, tmp_path)
    with pytest.raises(StoreError, match=f"{left} exists"):
        open_store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [left]


@pytest.mark.parametrize("damage", [delete(LOG), zero(LOG, 4096), cut_at_a_commit])
def test_an_accepted_loss_is_written_down_and_over(
    killed: Path, tmp_path: Path, damage: Damage
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(killed, folder)
    damage(folder, random.Random(5))
    with pytest.raises(StoreLost, match="--accept-loss"):
        open_store(folder)
    store = open_store(folder, accept_loss="ann")
    entry = store.audit_log()[-1]
    assert (entry.actor, entry.action) == ("ann", "accept-loss")
    assert "acknowledged" in entry.detail
    assert store.check() == []
    store.save_definition(collection().to_toml(), actor="ann")
    assert store.add([token(5000)], always([fold(cell(), 0, [1])]), DAY) == [True]
    store.close()
    again = open_store(folder)
    assert again.check() == []
    again.close()


def test_accepting_where_nothing_is_missing_writes_nothing_down(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    samples.fill(store, batches=2)
    store.close()
    store = open_store(tmp_path, accept_loss="ann")
    assert "accept-loss" not in [each.action for each in store.audit_log()]
    store.close()


# What it costs.


def test_a_commit_syncs_the_log_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is synced at the start, and then every few seconds at most."""
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    now = [0.0]
    assert isinstance(store, SqliteStore)
    record = store._session._record
    assert record is not None
    record._clock, record._synced_at = lambda: now[0], 0.0
    for number in range(300):
        store.add([token(number)], always([fold(cell(), 0, [number])]), DAY)
        now[0] += 0.125
    assert len(synced) == 299 * 0.125 // commits.SYNC_SECONDS
    store.close()


# Files that are taken away.


def gone(folder: Path) -> None:
    shutil.rmtree(folder)


def log_gone(folder: Path) -> None:
    (folder / LOG).unlink()


def replaced(folder: Path) -> None:
    shutil.copy(folder / NAME, folder / "copy")
    os.replace(folder / "copy", folder / NAME)


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("take_away", [gone, log_gone, replaced, moved])
def test_nothing_is_acknowledged_once_the_files_are_gone(
    tmp_path: Path, take_away: Callable[[Path], None]
) -> None:
    store = open_store(tmp_path / "data")
    store.save_definition(collection().to_toml(), actor="ann")
    assert store.add([token(1)], always([fold(cell(), 0, [1])]), DAY) == [True]
    assert store.in_place
    take_away(tmp_path / "data")
    assert not store.in_place
    for number in (2, 3):
        with pytest.raises(StoreBroken, match="deleted or replaced"):
            store.add([token(number)], always([fold(cell(), 0, [1])]), DAY)
    store.close()


def test_a_file_that_can_no_longer_be_written_ends_the_writing(tmp_path: Path) -> None:
    """As after a remount: SQLite says "read-only", which is no fault of one batch."""
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    assert isinstance(store, SqliteStore)
    store._session._writer.execute("PRAGMA query_only=ON").fetchall()
    with pytest.raises(StoreBroken, match="no longer be written"):
        store.add([token(1)], always([fold(cell(), 0, [1])]), DAY)
    with pytest.raises(StoreBroken, match="nothing is tried again"):
        store.add([token(1)], always([fold(cell(), 0, [1])]), DAY)
    store.close()


def test_the_number_of_commits_is_sealed(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute("UPDATE commits SET number=7")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="number of commits"):
        open_store(tmp_path)


def test_every_transaction_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FOLD_COMMITS", 3)
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    for number in range(10):
        store.add([token(number)], always([fold(cell(), 0, [number])]), DAY)
        store.add([token(number)], always([fold(cell(), 0, [number])]), DAY)  # writes nothing
    assert commits.recorded(tmp_path / NAME) == 11
    store.close()
