"""Backups are whole, and are restored only where there is no store."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from rappor.errors import StoreError
from rappor.store import open_store, restore_store
from support import store_samples as samples
from support.store_samples import collection

NAME = "store.sqlite"


def test_damaged_backups_are_not_restored_and_stores_not_overwritten(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    samples.fill(store)
    store.backup(tmp_path / "whole")
    with pytest.raises(StoreError, match="the store itself"):
        store.backup(tmp_path / "a" / NAME)
    store.close()
    with pytest.raises(StoreError, match="exists already"):
        restore_store(tmp_path / "whole", tmp_path / "a")
    with pytest.raises(StoreError, match="no backup"):
        restore_store(tmp_path / "missing", tmp_path / "b")
    data = bytearray((tmp_path / "whole").read_bytes())
    for at in range(4096 * 5, len(data), 4096):
        data[at + 2000] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        restore_store(tmp_path / "damaged", tmp_path / "b")
    assert not (tmp_path / "b" / NAME).exists()
    restore_store(tmp_path / "whole", tmp_path / "b")
    assert (tmp_path / "b" / NAME).stat().st_mode & 0o077 == 0
    assert os.listdir(tmp_path / "b") == [NAME]


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


def test_a_restore_that_fails_names_the_backup_and_leaves_no_folder(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.backup"
    wrong.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(StoreError, match=r"/wrong\.backup: damaged, or not a store") as raised:
        restore_store(wrong, tmp_path / "new")
    assert ".part" not in str(raised.value)
    assert os.listdir(tmp_path) == ["wrong.backup"]


def test_a_backup_that_cannot_be_written_names_its_own_file(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "data")) as store:
        target = tmp_path / "missing" / "a.backup"
        with pytest.raises(OSError, match="No such file") as raised:
            store.backup(target)
        assert raised.value.filename == str(target)
