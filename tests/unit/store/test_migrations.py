"""A schema changes as a whole or not at all, and old stores open."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rappor.collection import Collection
from rappor.errors import StoreError
from rappor.store import open_store, restore_store
from rappor.store.sqlite import schema
from rappor.store.sqlite.schema import MIGRATIONS
from rappor.store.sqlite.schema_upgrade import run
from support import store_samples as samples

NAME = "store.sqlite"
VECTORS = Path(__file__).parents[2] / "vectors"
# Written by the rappor of schema 2: support.store_samples.fill, then closed.
SCHEMA_2 = VECTORS / "store-schema-2.sqlite"
# A backup by rappor 0.1 of an open store: support.store_samples.fill(store, batches=4).
SCHEMA_5 = VECTORS / "store-schema-5.sqlite"


def older(folder: Path, version: int) -> None:
    """A store as the rappor of an older schema left it, with data in it."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(SCHEMA_2, folder / NAME)
    connection = sqlite3.connect(folder / NAME)
    if version < 2:
        connection.execute("DROP TABLE imports")
        connection.execute("DELETE FROM seals WHERE name='imports'")
    for number in range(2, min(version, len(MIGRATIONS))):
        for step in MIGRATIONS[number]:
            run(connection, step)
    connection.execute(f"PRAGMA user_version={version}")
    connection.commit()
    connection.close()


def schema_of(path: Path) -> tuple[int, list[str]]:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    statements = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema")]
    connection.close()
    return version, sorted(each for each in statements if each)


def wanted(version: int) -> list[str]:
    connection = sqlite3.connect(":memory:")
    for step in (each for migration in MIGRATIONS[:version] for each in migration):
        run(connection, step)
    statements = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema")]
    connection.close()
    return sorted(each for each in statements if each)


# A child that dies by kill -9 before its n-th statement; its children share its imports.
KILLER = """
import os, signal, sys
from pathlib import Path
from rappor.store.sqlite.connection import connect
from rappor.store.sqlite.store import SqliteStore

class Killing:
    seen = 0  # statements of the connection that writes
    def __init__(self, inner, at):
        self.inner, self.left, self.count = inner, at, 0
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def execute(self, sql, parameters=()):
        if not sql.startswith("PRAGMA") or "user_version=" in sql or "application_id=" in sql:
            self.count += 1
            Killing.seen = max(Killing.seen, self.count)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
        return self.inner.execute(sql, parameters)

path = Path(sys.argv[1])
for at in map(int, sys.argv[2:]):
    child = os.fork()
    if child == 0:
        SqliteStore(
            path.with_name(f"{at}") / path.name,
            connect=lambda p, read_only: Killing(connect(p, read_only), at),
        )
        print(Killing.seen, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print("killed by", os.WTERMSIG(status), flush=True)
"""


NEVER = 10**9


def killed_at(folder: Path, statements: Sequence[int]) -> list[str]:
    """Have children open copies of `start`, each to die before a statement; how each ended."""
    for at in statements:
        shutil.copytree(folder / "start", folder / f"{at}")
    done = subprocess.run(
        [sys.executable, "-c", KILLER, folder / NAME, *map(str, statements)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "version", [3, *(pytest.param(version, marks=pytest.mark.long) for version in (0, 1, 2))]
)
def test_killed_at_each_statement_a_store_has_the_old_schema_or_the_new(
    tmp_path: Path, version: int
) -> None:
    (tmp_path / "start").mkdir()
    if version:
        older(tmp_path / "start", version)
    (line,) = killed_at(tmp_path, [NEVER])
    statements = range(int(line))
    # To mix kept reports again takes many of one kind: some of them will do.
    some = statements if len(statements) < 60 else [*statements[:30:3], *statements[30::15]]
    some = sorted({*some, *statements[-12:]})
    endings = killed_at(tmp_path, some)
    assert endings.count(f"killed by {int(signal.SIGKILL)}") == len(some)
    seen = set()
    for at in some:
        path = tmp_path / f"{at}" / NAME
        found, text = schema_of(path)
        seen.add(found)
        assert text == wanted(found), at
        store = open_store(path.parent)  # goes on where the other one died
        assert store.check() == []
        if version:
            assert sum(each.reports for each in store.cells()) > 100
        store.close()
        assert schema_of(path) == (len(MIGRATIONS), wanted(len(MIGRATIONS)))
    assert seen == set(range(version, len(MIGRATIONS) + 1))


class Recorder:
    """A store that remembers the tokens that went into it."""

    def __init__(self, folder: Path) -> None:
        self.store = open_store(folder)
        self.tokens: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def add(self, tokens: Sequence[bytes], *rest: Any) -> list[bool]:
        self.tokens += tokens
        return self.store.add(tokens, *rest)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_store_of_an_older_schema_opens_with_equal_counts(tmp_path: Path, version: int) -> None:
    reference = Recorder(tmp_path / "reference")
    samples.fill(reference)  # type: ignore[arg-type]
    before = samples.everything(reference.store)
    reference.store.close()
    older(tmp_path / "old", version)
    with pytest.raises(StoreError, match=f"schema {version}"):
        open_store(tmp_path / "old", read_only=True)
    store = open_store(tmp_path / "old")
    found = samples.everything(store)
    assert found[0] == before[0]  # the cells
    assert found[3:] == before[3:]  # the counts and the kept reports
    assert store.check() == []
    assert store.add(reference.tokens, samples.always([]), samples.DAY) == [False] * 30
    folds = [samples.fold(samples.cell(), 0, [1])]
    assert store.add_file(b"new", folds, actor="ann", detail="a file")
    store.close()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_backup_of_an_older_schema_can_be_restored(tmp_path: Path, version: int) -> None:
    older(tmp_path / "old", version)
    restore_store(tmp_path / "old" / NAME, tmp_path / "new")
    store = open_store(tmp_path / "new")
    assert store.check() == []
    store.close()


@pytest.mark.parametrize("restored", [False, True])
def test_a_store_that_rappor_0_1_wrote_opens_and_goes_on(tmp_path: Path, restored: bool) -> None:
    reference = Recorder(tmp_path / "reference")
    samples.fill(reference, batches=4)  # type: ignore[arg-type]
    before = samples.everything(reference.store)
    reference.store.close()
    if restored:
        restore_store(SCHEMA_5, tmp_path / "old")
    else:
        (tmp_path / "old").mkdir()
        shutil.copyfile(SCHEMA_5, tmp_path / "old" / NAME)
    for _ in range(2):  # tokens of the latest commits, then all in the large table
        with open_store(tmp_path / "old") as store:
            assert store.check() == []
            found = samples.everything(store)
            assert (found[0], found[3:]) == (before[0], before[3:])
            assert store.add(reference.tokens, samples.always([]), samples.DAY) == [False] * 4
    with open_store(tmp_path / "old") as store:
        folds = samples.always([samples.fold(samples.cell(), 0, [1])])
        assert store.add([samples.token(8)], folds, samples.DAY) == [True]
        assert sum(cell.reports for cell in store.cells()) == 1 + sum(
            cell.reports for cell in before[0]
        )
        assert store.check() == []


def test_a_store_of_a_newer_rappor_is_refused_and_left_alone(tmp_path: Path) -> None:
    older(tmp_path, 99)
    before = (tmp_path / NAME).read_bytes()
    for read_only in (True, False):
        with pytest.raises(StoreError, match="newer rappor"):
            open_store(tmp_path, read_only=read_only)
    assert (tmp_path / NAME).read_bytes() == before


def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    older(tmp_path, len(MIGRATIONS))
    connection = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    planted = (*MIGRATIONS, ("CREATE TABLE another (x)", "CREATE TABLE cells (x)"))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        schema.migrate(connection, planted)
    connection.close()
    assert schema_of(tmp_path / NAME) == (len(MIGRATIONS), wanted(len(MIGRATIONS)))


def test_definitions_with_old_field_names_are_read_and_saved_with_the_new_ones(
    tmp_path: Path,
) -> None:
    older(tmp_path, 2)
    with open_store(tmp_path) as store:
        before = {each.collection: each.toml for each in store.definitions()}
        assert all("most_values = " in toml for toml in before.values())
        for toml in before.values():
            collection = Collection.from_toml(toml)
            sample = samples.collection(collection.name, collection.version)
            assert collection == replace(sample, keep_reports_days=collection.keep_reports_days)
            assert store.save_definition(collection.to_toml(), actor="ann")
        after = [each.toml for each in store.definitions()]
    assert all("max_values = " in toml and "most_" not in toml for toml in after)
