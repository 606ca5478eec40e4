"""The SQLite backend keeps the contract of every store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rappor.store import Store, open_store, restore_store
from support.store_contract import StoreContract, store  # noqa: F401 - a fixture


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def open_one(name: str, read_only: bool = False) -> Store:
        made.append(open_store(tmp_path / name, read_only=read_only))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


@pytest.fixture
def restore(tmp_path: Path) -> Callable[[Path, str], None]:
    return lambda backup, name: restore_store(backup, tmp_path / name)


class TestSqliteStore(StoreContract):
    """All of it."""
