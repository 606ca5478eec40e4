"""Attempts to lose what was acknowledged, or to keep what was to be gone, below the collector."""

import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rappor.errors import RapporError, StoreError
from rappor.params import Params
from rappor.store import CellKey, Fold, open_store, restore_store
from support.faulty_disk import Disk, _File
from support.store_samples import (
    DAY,
    always,
    cell,
    collection,
    everything,
    fill,
    fold,
    random_folds,
    token,
)

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


def test_a_batch_that_a_dead_process_did_not_sync_is_synced_before_it_is_a_duplicate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between write and sync, the transaction is read back from the page cache. Telling its
    sender "stored" is a promise that the disk has not made yet."""
    path = tmp_path / "store.sqlite"
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    store.add([token(1)], always([fold(cell(), 1, [5])]), DAY)
    store.close()
    died = subprocess.run(
        [sys.executable, "-c", _DIES_BEFORE_ITS_SYNC, str(path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert died.returncode == 9
    synced: list[str] = []
    by_hand, by_sqlite = os.fsync, _File.xSync

    def fsync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        by_hand(descriptor)

    def sync(file: _File, flags: int) -> None:
        synced.append(file.named)
        by_sqlite(file, flags)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(_File, "xSync", sync)
    again = Disk().open(path)
    assert again.add([token(2)], always([fold(cell(), 1, [7])]), DAY) == [False]
    assert "store.sqlite-wal" in synced
    again.close()


def test_a_store_is_not_restored_beside_somebody_who_has_it_open(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    store.save_definition(collection().to_toml(), actor="ann")
    store.backup(tmp_path / "copy")
    for file in (tmp_path / "data").glob("store.sqlite*"):
        file.unlink()
    with pytest.raises(StoreError, match="open"):
        restore_store(tmp_path / "copy", tmp_path / "data")
    store.close()
    restore_store(tmp_path / "copy", tmp_path / "data")
    open_store(tmp_path / "data").close()


@pytest.mark.parametrize("with_log", [True, False])
def test_three_hundred_flipped_bits_are_noticed_or_change_nothing(
    tmp_path: Path, with_log: bool
) -> None:
    """B4 with another seed, and batches sent again: one counted twice is no harmless flip."""
    sound, work = tmp_path / "sound", tmp_path / "work"
    store = open_store(sound)
    fill(store)
    rng = random.Random(5)
    sent = [(rng.randbytes(16), random_folds(rng, cell(country="CH"))) for _ in range(40)]
    for each, folds in sent:
        store.add([each], always(folds), DAY)
    expected = everything(store)
    if with_log:  # a copy with its log and index, as after a kill
        kept = tmp_path / "kept"
        shutil.copytree(sound, kept)
        store.close()
        shutil.rmtree(sound)
        kept.rename(sound)
    else:
        store.close()
    files = [file for file in sorted(sound.iterdir()) if file.stat().st_size]
    silent = []
    for number in range(150):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(sound, work)
        file = work / rng.choice(files).name
        data = bytearray(file.read_bytes())
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        try:
            damaged = open_store(work)
        except RapporError:
            continue
        try:
            if damaged.check():
                continue
            again = [damaged.add([each], always(folds), DAY) for each, folds in sent]
            found = everything(damaged)
            same = [a for a, b in zip(found, expected, strict=True) if a != b]
            only_log = len(same) == 1 and found[2][: len(expected[2])] == expected[2]  # type: ignore[index]
            if any(new != [False] for new in again) or (same and not only_log):
                silent.append((number, file.name, at))
        except RapporError:
            continue
        finally:
            damaged.close()
    assert silent == []


def test_a_planted_report_is_in_no_file_after_its_days(tmp_path: Path) -> None:
    """Sixteen bytes that stand out, in a chunk that is mixed again and again, over two periods."""
    params = Params(k=128, h=2, m=2, f=0.5, p=0.5, q=0.75)
    made = replace(collection(keep_reports_days=1, dimensions={}), params=params)
    pattern = bytes.fromhex("deadbeefcafef00d0123456789abcdef")
    store = open_store(tmp_path)
    store.save_definition(made.to_toml(), actor="ann")
    rng = random.Random(3)
    for number in range(60):
        period = "2026-11-10" if number < 50 else "2026-11-16"
        reports = [rng.randbytes(16) for _ in range(rng.choice([1, 40, 900]))]
        if number % 7 == 0 and number < 50:
            reports.append(pattern)
        bits = np.unpackbits(
            np.frombuffer(b"".join(reports), np.uint8).reshape(-1, 16), axis=1, bitorder="little"
        )
        key = CellKey(made.name, made.version, period)
        one = Fold(
            key,
            number % 2,
            params.digest,
            len(reports),
            bits.sum(axis=0, dtype=np.int64),
            b"".join(reports),
        )
        store.add([rng.randbytes(16)], always([one]), DAY)
        if number % 9 == 0:
            store.settle()

    def hits() -> list[str]:
        return [file.name for file in tmp_path.iterdir() if pattern in file.read_bytes()]

    assert hits()
    done = store.retain(DAY)
    assert done.settled
    assert done.reports > 0
    assert hits() == []
    assert sum(each.kept for each in store.cells()) > 0
    store.close()
    assert hits() == []


def test_a_log_that_a_reader_has_recovered_is_synced_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rappor status` comes first after the kill, and is still at it when the collector starts."""
    path = tmp_path / "store.sqlite"
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    store.close()
    died = subprocess.run(
        [sys.executable, "-c", _DIES_BEFORE_ITS_SYNC, str(path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert died.returncode == 9
    looking = open_store(tmp_path, read_only=True)
    synced: list[str] = []
    by_hand = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        by_hand(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    again = open_store(tmp_path)
    assert again.add([token(2)], always([fold(cell(), 1, [7])]), DAY) == [False]
    assert "store.sqlite-wal" in synced
    again.close()
    looking.close()
