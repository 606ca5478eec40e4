"""A backup carries the files next to the store, and a newer one in the folder stays."""

from pathlib import Path

import pytest

from rappor.errors import StoreError
from rappor.store import open_store
from rappor.store.archive import RELEASED, restore_archive, write_archive
from rappor.store.released import STEP, ReleasedCounts
from support import store_samples as samples


def filled(folder: Path) -> Path:
    """A data folder with a backup of a cell that pages have shown."""
    folder.mkdir()
    store = open_store(folder)
    store.save_definition(samples.collection().to_toml(), actor="ann")
    fold = samples.fold(samples.cell(), 1, [5] * STEP)
    store.add([samples.token(1)], samples.always([fold]), samples.DAY)
    ReleasedCounts(folder).cells(store, store.cells(), samples.DAY)
    backup = folder.with_name(f"{folder.name}.backup")
    files = write_archive(store, folder, backup, [RELEASED])
    assert [file.name for file in files] == ["released.sqlite", "store.sqlite"]
    store.close()
    return backup


def shown(folder: Path) -> list[int]:
    store = open_store(folder, read_only=True)
    try:
        found = ReleasedCounts(folder).counts(store, samples.DAY, "homepage", 1)
        return [counts.reports for counts in found]
    finally:
        store.close()


def test_pages_show_the_same_step_of_an_open_period_after_a_restore(tmp_path: Path) -> None:
    backup = filled(tmp_path / "data")
    restore_archive(backup, tmp_path / "again", [RELEASED])
    assert shown(tmp_path / "again") == shown(tmp_path / "data") == [STEP]


def test_what_pages_have_shown_since_the_backup_is_not_taken_back(tmp_path: Path) -> None:
    backup = filled(tmp_path / "data")
    (tmp_path / "again").mkdir()
    newer = (tmp_path / "data" / "released.sqlite").read_bytes()
    (tmp_path / "again" / "released.sqlite").write_bytes(newer)
    files = restore_archive(backup, tmp_path / "again", [RELEASED])
    assert [file.name for file in files] == ["store.sqlite"]


def test_a_restore_that_fails_takes_back_what_it_has_placed(tmp_path: Path) -> None:
    backup = filled(tmp_path / "data")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "store.sqlite-wal").write_bytes(b"of a store that was deleted")
    with pytest.raises(StoreError, match="exists already"):
        restore_archive(backup, tmp_path / "again", [RELEASED])
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["store.sqlite-wal"]
