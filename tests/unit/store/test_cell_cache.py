"""`CellCache`: what was read before is not read again, and no damage is hidden by that."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from rappor.errors import StoreError
from rappor.store import CellCache, Fold, open_store
from support.collecting import today
from support.dashboard import STRINGS, sample_folder


@pytest.mark.slow
def test_what_was_seen_before_is_found_again_and_what_is_new_beside_it(tmp_path: Path) -> None:
    sample, seen = sample_folder(tmp_path), CellCache()
    with open_store(sample.data) as store:
        before = store.cells(seen)
        assert before == store.cells() == sorted(before)
        key = max(each.cell for each in before if each.cell.collection == "extensions")
        fold = Fold(key, 0, STRINGS.digest, 3, np.zeros(STRINGS.k, np.int64))
        store.add([os.urandom(16)], lambda _: [fold], today())
        after = store.cells(seen)
        assert after == store.cells()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
    assert [(old.cell, new.reports - old.reports) for old, new in changed] == [(key, 3)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE cells SET reports=reports+1 WHERE collection='extensions'",
        "UPDATE cells SET period='2020-W01' WHERE collection='extensions'",
        "DELETE FROM cells WHERE collection='extensions'",
    ],
)
def test_a_row_that_was_seen_and_then_changed_or_lost_is_damage(
    tmp_path: Path, damage: str
) -> None:
    sample, seen = sample_folder(tmp_path), CellCache()
    with open_store(sample.data, read_only=True) as store:
        store.cells(seen)
    connection = sqlite3.connect(sample.data / "store.sqlite")
    connection.execute(damage)
    connection.commit()
    connection.close()
    with open_store(sample.data, read_only=True) as store, pytest.raises(StoreError, match="damag"):
        store.cells(seen)
