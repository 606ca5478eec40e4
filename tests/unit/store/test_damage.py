"""A store whose bits have flipped says so, or still tells the truth."""

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from rappor.errors import RapporError, StoreError
from rappor.store import open_store
from rappor.store.sqlite import loss, session, wal
from support import store_samples as samples

Damage = Callable[[Path, random.Random], None]
NewFolder = Callable[[str], Path]

NAME = "store.sqlite"
LOG = f"{NAME}-wal"


@pytest.fixture(scope="module")
def closed(new_folder: NewFolder) -> Path:
    """A store after a clean end: one file, and the record of its commits."""
    folder = new_folder("closed")
    store = open_store(folder)
    samples.fill(store)
    store.close()
    assert sorted(path.name for path in folder.glob(f"{NAME}*")) == [NAME, f"{NAME}-commits"]
    return folder


@pytest.fixture(scope="module")
def killed(new_folder: NewFolder) -> Path:
    """A store after kill -9: the log and its index are still there."""
    live, folder = new_folder("live"), new_folder("killed")
    store = open_store(live)
    samples.fill(store, batches=10)
    store.settle()
    for number in range(20):
        folds = samples.always([samples.fold(samples.cell(), number % 4, [number])])
        store.add([samples.token(number)], folds, samples.DAY)
    for path in live.glob(f"{NAME}*"):
        shutil.copy(path, folder)
    store.close()
    assert (folder / LOG).stat().st_size > 20 * 4096
    return folder


@pytest.fixture(scope="module")
def restarted(new_folder: NewFolder) -> Path:
    """A store after kill -9, whose log was being written again from its start."""
    live, folder = new_folder("live"), new_folder("restarted")
    store = open_store(live)
    samples.fill(store, batches=10, keep=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "FOLD_COMMITS", 20)
        store._session._unfolded = 0  # type: ignore[attr-defined]
        for number in range(27):
            folds = samples.always([samples.fold(samples.cell(), number % 4, [number])])
            store.add([samples.token(number)], folds, samples.DAY)
    for path in live.glob(f"{NAME}*"):
        shutil.copy(path, folder)
    store.close()
    log = wal.read_log((folder / LOG).read_bytes())
    assert 7 <= log.committed < (folder / LOG).stat().st_size // 4096 - 20
    return folder


@pytest.fixture(scope="module")
def busy(new_folder: NewFolder) -> Path:
    """A store after kill -9 whose log was empty: its latest tokens are not where they stay yet."""
    live, folder = new_folder("live"), new_folder("busy")
    store = open_store(live)
    samples.fill(store, batches=10)
    rng = random.Random(1)
    for _ in range(20):
        store.add([rng.randbytes(16) for _ in range(100)], samples.always([]), samples.DAY)
    store._session.settle()  # type: ignore[attr-defined]
    for name in (NAME, f"{NAME}-commits"):
        shutil.copy(live / name, folder)
    store.close()
    return folder


def truth_of(folder: Path, where: Path) -> tuple[object, ...]:
    shutil.copytree(folder, where)
    store = open_store(where)
    assert store.check() == []
    found = samples.everything(store)
    store.close()
    return found


def verdict(folder: Path, truth: tuple[object, ...]) -> str:
    """What one learns of a damaged store: "refused", "found", "noted", "harmless" or "silent"."""
    try:
        store = open_store(folder)
    except StoreError:
        return "refused"
    try:
        problems = store.check()
        if problems:
            only_ours = not any(each.startswith("SQLite") for each in problems)
            return "found by checksums only" if only_ours else "found"
        found = samples.everything(store)
        if found == truth:
            return "harmless"
        if any(each.action == "recovered" for each in store.audit_log()):
            return "noted"
        return "silent"
    except StoreError:
        return "refused"
    finally:
        store.close()


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def flip_data(path: Path, rng: random.Random) -> None:
    """Flip a bit of a byte that is not 0. Half of a small store is room for more, and all zeros."""
    data = np.fromfile(path, np.uint8)
    data[rng.choice(np.flatnonzero(data))] ^= 1 << rng.randrange(8)
    data.tofile(path)


def cut(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def verdicts_of(
    sound: Path, where: Path, seed: int, file: str, damages: Iterable[Damage]
) -> Counter[str]:
    """What is said of copies of a store, each damaged in its own way."""
    truth = truth_of(sound, where / "truth")
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    folder = where / "damaged"
    for damage in damages:
        shutil.copytree(sound, folder)
        damage(folder / file, rng)
        found[verdict(folder, truth)] += 1
        shutil.rmtree(folder)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "each", "kind", "least"),
    [
        pytest.param(0, 60, flip_data, 20, id="60"),
        *(
            pytest.param(seed, 125, flip, 10, id=f"125 anywhere-{seed}", marks=pytest.mark.long)
            for seed in range(8)
        ),
    ],
)
def test_no_flipped_bit_and_no_cut_goes_unnoticed(
    closed: Path, tmp_path: Path, seed: int, each: int, kind: Damage, least: int
) -> None:
    """60 bits of data tell as much as 250 anywhere: five of six flips of those change nothing."""
    damages = [cut if number % 10 == 0 else kind for number in range(each)]
    verdicts = verdicts_of(closed, tmp_path, seed, NAME, damages)
    assert verdicts["silent"] == 0, verdicts
    # SQLite alone passes most of them: without our checksums this test would fail.
    assert verdicts["found by checksums only"] >= least, verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("each", "kind"), [(50, flip_data), pytest.param(125, flip, marks=pytest.mark.long)]
)
def test_flipped_bits_in_the_latest_tokens_do_not_go_unnoticed(
    busy: Path, tmp_path: Path, each: int, kind: Damage
) -> None:
    verdicts = verdicts_of(busy, tmp_path, 3, NAME, [kind] * each)
    assert verdicts["silent"] == 0, verdicts
    assert verdicts["found by checksums only"] >= 20, verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("each", "kind"), [(30, flip_data), pytest.param(150, flip, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("with_log", [True, False])
def test_a_damaged_store_that_is_not_refused_counts_no_batch_again(
    tmp_path: Path, with_log: bool, each: int, kind: Damage
) -> None:
    """All batches are sent again: one that is counted twice is no harmless flip."""
    sound, work = tmp_path / "sound", tmp_path / "work"
    store = open_store(sound)
    samples.fill(store)
    rng = random.Random(5)
    place = samples.cell(country="CH")
    sent = [(rng.randbytes(16), samples.random_folds(rng, place)) for _ in range(40)]
    for token, folds in sent:
        store.add([token], samples.always(folds), samples.DAY)
    truth = samples.everything(store)
    if with_log:  # a copy with its log and index, as after a kill
        kept = tmp_path / "kept"
        shutil.copytree(sound, kept)
        store.close()
        shutil.rmtree(sound)
        kept.rename(sound)
    else:
        store.close()
    files = [path.name for path in sorted(sound.iterdir()) if path.stat().st_size]
    silent = []
    for number in range(each):
        shutil.copytree(sound, work)
        file = rng.choice(files)
        kind(work / file, rng)
        if not noticed_or_unchanged(work, truth, sent):
            silent.append((number, file))
        shutil.rmtree(work)
    assert silent == []


def noticed_or_unchanged(
    folder: Path, truth: tuple[object, ...], sent: list[tuple[bytes, list[samples.Fold]]]
) -> bool:
    """Whether a store says that it is damaged, or has what it had and knows all batches again."""
    try:
        store = open_store(folder)
    except RapporError:
        return True
    try:
        if store.check():
            return True
        again = [store.add([token], samples.always(folds), samples.DAY) for token, folds in sent]
        found = samples.everything(store)
    except RapporError:
        return True
    finally:
        store.close()
    differs = [new for new, old in zip(found, truth, strict=True) if new != old]
    log, before = store_log(found), store_log(truth)
    noted = len(differs) == 1 and log[: len(before)] == before  # only more in the audit log
    return all(new == [False] for new in again) and (not differs or noted)


def store_log(told: tuple[object, ...]) -> list[object]:
    """The audit log in what `samples.everything` tells."""
    log = told[2]
    assert isinstance(log, list)
    return log


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, cut])
def test_damage_to_the_log_does_not_lose_acknowledged_batches_in_silence(
    killed: Path, tmp_path: Path, damage: Damage
) -> None:
    verdicts = verdicts_of(killed, tmp_path, 7, LOG, [damage] * 60)
    assert verdicts["silent"] == 0, verdicts
    assert verdicts["refused"] >= 50, verdicts


@pytest.mark.slow
@pytest.mark.parametrize("each", [48, pytest.param(100, marks=pytest.mark.long)])
def test_damage_to_a_log_that_begins_again_does_not_lose_batches_in_silence(
    restarted: Path, tmp_path: Path, each: int
) -> None:
    damages = [cut if number % 4 == 0 else flip for number in range(each)]
    verdicts = verdicts_of(restarted, tmp_path, 11, LOG, damages)
    assert verdicts["silent"] == 0, verdicts
    assert verdicts["refused"] >= 10, verdicts
    assert verdicts["harmless"] >= 10, verdicts  # what is left of the round before


@pytest.mark.parametrize("torn", [0, 1, 3], ids="{} frames torn".format)
def test_what_an_earlier_round_left_in_the_log_is_no_unfinished_transaction(
    restarted: Path, tmp_path: Path, torn: int
) -> None:
    truth = truth_of(restarted, tmp_path / "truth")
    folder = tmp_path / "killed"
    shutil.copytree(restarted, folder)
    path = folder / LOG
    data = bytearray(path.read_bytes())
    log = wal.read_log(data)
    frame = 24 + 4096
    end = 32 + log.committed * frame
    for number in range(torn):  # begun, not finished: the salt of this round, nothing else right
        data[end + number * frame + 8 : end + number * frame + 16] = log.salt
        data[end + number * frame + 4 : end + number * frame + 8] = bytes(4)
    path.write_bytes(data)
    store = open_store(folder)
    assert samples.everything(store)[3:] == truth[3:]
    noted = [each.detail for each in store.audit_log() if each.action == "recovered"]
    expected = f"the write-ahead log ended with {torn * frame} bytes of an unfinished transaction"
    assert noted == [expected] * (torn > 0)
    store.close()


def test_sqlite_alone_drops_acknowledged_batches_from_a_damaged_log(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test before this one can fail."""
    truth = truth_of(killed, tmp_path / "truth")
    monkeypatch.setattr(loss, "inspect", lambda path, accept: loss.LossFinding())
    folder = tmp_path / "damaged"
    shutil.copytree(killed, folder)
    path = folder / LOG
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert verdict(folder, truth) == "silent"


def test_a_log_without_its_index_is_still_read_by_what_follows(
    killed: Path, tmp_path: Path
) -> None:
    """After a reboot the index may be gone: two later commits say that one before was synced."""
    folder = tmp_path / "damaged"
    shutil.copytree(killed, folder)
    (folder / f"{NAME}-shm").unlink()
    path = folder / LOG
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="acknowledged"):
        open_store(folder)
    assert path.read_bytes() == data  # nothing was dropped


def test_an_unfinished_transaction_at_the_end_is_dropped_and_noted(
    killed: Path, tmp_path: Path
) -> None:
    truth = truth_of(killed, tmp_path / "truth")
    folder = tmp_path / "torn"
    shutil.copytree(killed, folder)
    with (folder / LOG).open("ab") as file:
        file.write(bytes(5000))
    store = open_store(folder)
    assert samples.everything(store)[3:] == truth[3:]
    last = store.audit_log()[-1]
    assert (last.actor, last.action) == ("store", "recovered")
    assert "5000 bytes" in last.detail
    store.close()


def test_the_log_is_read_as_sqlite_reads_it(killed: Path) -> None:
    """Our reading of the format: all frames valid, the last of them a commit, as the index says."""
    log = wal.read_log((killed / LOG).read_bytes())
    index = wal._index((killed / f"{NAME}-shm").read_bytes()[:100])
    assert index is not None
    assert log.left == 0
    assert log.later == 0
    assert log.is_valid
    assert (index.frames, index.salt) == (log.committed, log.salt)
    assert index.folded == 0
    assert log.committed > 20


def test_errors_name_the_cell(closed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(closed, folder)
    store = open_store(folder)
    store._session._writer.execute(  # type: ignore[attr-defined]
        "UPDATE counts SET data=zeroblob(length(data)) WHERE id=(SELECT min(id) FROM counts)"
    )
    wrong = store.check()
    assert len(wrong) == 1
    assert "2026-11-1" in wrong[0]
    assert "cohort" in wrong[0]
    name = wrong[0].partition(" ")[0]
    with pytest.raises(StoreError, match="the counts are damaged"):
        store.counts(name)
    store.close()


def test_a_row_that_vanishes_is_missed(closed: Path, tmp_path: Path) -> None:
    for number, table in enumerate(
        ["counts", "cells", "reports", "tokens", "definitions", "audit", "imports", "token_days"]
    ):
        folder = tmp_path / str(number)
        shutil.copytree(closed, folder)
        store = open_store(folder)
        writer = store._session._writer  # type: ignore[attr-defined]
        writer.execute("PRAGMA foreign_keys=OFF")
        keys = {"tokens": "token", "definitions": "collection", "imports": "digest"}
        key = {"token_days": "day"}.get(table) or keys.get(table, "id")
        writer.execute(f"DELETE FROM {table} WHERE {key}=(SELECT max({key}) FROM {table})")
        assert store.check() != [], table
        store.close()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"hello world, this is not a database " * 100)
    with pytest.raises(StoreError, match="not a store"):
        open_store(tmp_path)
    (tmp_path / NAME).unlink()
    other = sqlite3.connect(tmp_path / NAME)
    other.execute("CREATE TABLE x (y)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="not a store of rappor"):
        open_store(tmp_path)
