"""The PostgreSQL backend keeps the contract of every store, on a real server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rappor.store import Store, open_store, restore_store
from support.postgres import Server
from support.store_contract import StoreContract, store  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


@pytest.fixture
def databases(postgres: Server) -> Iterator[Callable[[str], str]]:
    """The URL of a database for each name, the same for the same name."""
    names: dict[str, str] = {}

    def url(name: str) -> str:
        if name not in names:
            names[name] = postgres.new_store()
        return names[name]

    yield url
    for address in names.values():
        postgres.sql(f"DROP DATABASE {address.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture
def open_(databases: Callable[[str], str]) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def open_one(name: str, read_only: bool = False) -> Store:
        made.append(open_store(databases(name), read_only=read_only))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


@pytest.fixture
def restore(databases: Callable[[str], str]) -> Callable[[Path, str], None]:
    return lambda backup, name: restore_store(backup, databases(name))


class TestPostgresStore(StoreContract):
    """All of it."""
