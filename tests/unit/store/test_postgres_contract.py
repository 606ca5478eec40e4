"""The PostgreSQL backend keeps the contract of every store, on a real server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from rappor.store import Fold, Store, open_store, restore_store
from support.postgres import Server
from support.store_contract import StoreContract, store  # noqa: F401 - a fixture
from support.store_samples import DAY, always, cell, collection, fold, token

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


class Statements:
    """Counts the statements of the connection that writes."""

    def __init__(self, adding: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        execute = psycopg.Connection.execute

        def counting(connection: object, query: str, *arguments: object, **named: object) -> object:
            self.sent.append(query)
            return execute(connection, query, *arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(psycopg.Connection, "execute", counting)
        self.adding = adding

    def of(self, tokens: list[bytes], *folds: Fold) -> tuple[list[bool], int]:
        """What `add` says, and the number of its statements."""
        self.sent.clear()
        return self.adding.add(tokens, always(list(folds)), DAY), len(self.sent)


def test_new_batches_of_rows_that_exist_are_one_statement(
    open_: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_("one")
    opened.save_definition(collection("other", 3).to_toml(), actor="ann")
    plain = cell(name="other", version=3)
    statements = Statements(opened, monkeypatch)
    first, steps = statements.of([token(1)], fold(plain, 0, [1]))
    assert (first, steps > 1) == ([True], True)  # the rows are inserted
    assert statements.of([token(2), token(3)], fold(plain, 0, [1, 2])) == ([True, True], 1)
    again, steps = statements.of([token(3), token(4)], fold(plain, 0, [1]))
    assert (again, steps > 1) == ([False, True], True)
    assert statements.of([token(5)], fold(plain, 0, [1])) == ([True], 1)
    twice, _ = statements.of([token(6), token(6)], fold(plain, 0, [1]))
    assert twice == [True, False]
    (found,) = opened.counts("other")
    assert found.reports == 6
    assert opened.check() == []
