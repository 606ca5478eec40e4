"""Recent tokens: in rows of their own until they are moved, and recognised all the time."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.errors import StoreError, StoreFull
from rappor.store import open_store
from rappor.store.sqlite import recent_tokens
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.recent_tokens import RecentTokens
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples
from support.faulty_disk import Disk
from support.store_samples import DAY, always, cell, collection, fold, token

NAME = "store.sqlite"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that takes tens of thousands of tokens happens after a dozen."""
    monkeypatch.setattr(recent_tokens, "FULL", 5)
    monkeypatch.setattr(recent_tokens, "BLOCK", 4)
    monkeypatch.setattr(recent_tokens, "MAX_TOKENS", 12)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = opened(tmp_path)
    made.save_definition(collection().to_toml(), actor="ann")
    yield made
    made.close()


def opened(folder: Path) -> SqliteStore:
    made = open_store(folder)
    assert isinstance(made, SqliteStore)
    return made


def add(store: SqliteStore, *tokens: bytes) -> list[bool]:
    """A report for each batch."""
    return store.add(tokens, lambda new: [fold(cell(), 0, [1] * len(new))], DAY)


def counted(store: SqliteStore) -> int:
    return sum(each.reports for each in store.counts("homepage"))


def rows_of(folder: Path) -> tuple[int, list[tuple[int, bytes]]]:
    """How many tokens are where they stay, and the rows of the others."""
    connection = sqlite3.connect(folder / NAME)
    (there,) = connection.execute("SELECT count(*) FROM tokens").fetchone()
    rows = connection.execute("SELECT id, data FROM fresh_tokens ORDER BY data").fetchall()
    connection.close()
    return there, rows


# Exactly once.


def replays_taken(folder: Path, seed: int, steps: int = 250) -> int:
    """Batches and replays of them in any order, through restarts: how many replays were taken."""
    rng = random.Random(seed)
    store, sent, taken = opened(folder), [], 0
    store.save_definition(collection().to_toml(), actor="ann")
    for _ in range(steps):
        new = [rng.randbytes(16) for _ in range(rng.choice([0, 1, 1, 2, 7]))]
        old = rng.sample(sent, min(len(sent), rng.choice([0, 1, 3])))
        given = rng.sample([*new, *old], len(new) + len(old))
        found = dict(zip(given, add(store, *given), strict=True))
        assert all(found[each] for each in new)
        taken += sum(found[each] for each in old)
        sent += new
        if (die := rng.random()) < 0.02:
            store.settle()
        elif die < 0.04:
            store.close()
            store = opened(folder)
        elif die < 0.06:
            with pytest.raises(ZeroDivisionError):
                store.add([rng.randbytes(16)], lambda _: [1 // 0], DAY)  # type: ignore[list-item]
        elif die < 0.08:
            assert store.check() == []
    assert store.check() == []
    assert counted(store) == len(sent) + taken
    store.close()
    assert rows_of(folder) == (len(sent), []) or taken
    return taken


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]
)
def test_a_replay_is_known_wherever_its_token_is(tmp_path: Path, seed: int) -> None:
    assert replays_taken(tmp_path, seed) == 0


@pytest.mark.usefixtures("small")
def test_a_store_that_does_not_look_into_these_rows_takes_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test before this one can fail."""
    monkeypatch.setattr(RecentTokens, "read_again", lambda self, *_: self.tokens.clear())
    monkeypatch.setattr(recent_tokens, "MAX_TOKENS", 10**6)
    with pytest.raises((AssertionError, StoreError)):
        assert replays_taken(tmp_path, 1) == 0


@pytest.mark.usefixtures("small")
def test_two_that_write_in_turn_know_of_each_other(tmp_path: Path, store: SqliteStore) -> None:
    other = opened(tmp_path)
    rng = random.Random(1)
    sent: list[bytes] = []
    for number in range(120):
        here, there = (store, other) if rng.random() < 0.5 else (other, store)
        new = [rng.randbytes(16) for _ in range(rng.randint(1, 4))]
        assert all(add(here, *new))
        sent += new
        again = rng.sample(sent, 1)
        assert add(there, *new, *again) == [False] * (len(new) + 1)
        if number % 30 == 29:
            there.settle()
    assert counted(store) == len(sent)
    assert store.check() == other.check() == []
    other.close()


def test_what_is_rolled_back_is_not_known(tmp_path: Path) -> None:
    disk = Disk()
    store = disk.open(tmp_path / NAME)
    store.save_definition(collection().to_toml(), actor="ann")
    assert add(store, token(1)) == [True]
    disk.arm(0, "full", once=True, which={"sync"})
    with pytest.raises(StoreFull):
        add(store, token(2), token(3))
    disk.disarm()
    assert add(store, token(2), token(1)) == [True, False]
    assert (counted(store), store.check()) == (2, [])
    store.close()


# The way to where they stay.


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_tokens_move_some_into_the_big_table_while_others_come(
    tmp_path: Path, store: SqliteStore
) -> None:
    most = 0
    for number in range(300):
        add(store, os.urandom(16))
        there, rows = rows_of(tmp_path)
        waiting = sum(len(data) // 16 for _, data in rows)
        assert there + waiting == number + 1
        most = max(most, waiting)
    assert there > 250
    assert most <= 2 * recent_tokens.MAX_TOKENS


@pytest.mark.slow
def test_a_commit_writes_a_few_pages_however_many_tokens_there_are(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty random tokens have about sixty pages of the big table."""

    def pages(commits: int) -> float:
        log, before = tmp_path / f"{NAME}-wal", 0
        store.settle()
        for _ in range(commits):
            add(store, *(os.urandom(16) for _ in range(60)))
            if not before:  # what settling has left to do is not a commit's
                before = log.stat().st_size
        return (log.stat().st_size - before) / 4120 / (commits - 1)

    store.add([os.urandom(16) for _ in range(30_000)], always([]), DAY)
    store.settle()
    assert pages(100) < 8
    monkeypatch.setattr(recent_tokens, "MAX_TOKENS", 1)
    assert pages(20) > 30  # each where it stays at once: the test can fail


def test_settling_retention_and_closing_leave_none(tmp_path: Path, store: SqliteStore) -> None:
    for end in (store.settle, lambda: store.retain(DAY), store.close):
        add(store, os.urandom(16), os.urandom(16))
        assert len(rows_of(tmp_path)[1]) == 1
        end()
        assert rows_of(tmp_path)[1] == []
    again = opened(tmp_path)
    assert again.check() == []
    assert rows_of(tmp_path)[0] == 6
    again.close()


def test_tokens_of_two_days_keep_their_days(tmp_path: Path, store: SqliteStore) -> None:
    days = [DAY, DAY.replace(day=15), DAY]
    for number, day in enumerate(days):
        store.add([token(number)], always([]), day)
    assert store.check() == []
    store.settle()
    connection = sqlite3.connect(tmp_path / NAME)
    found = connection.execute("SELECT day FROM tokens ORDER BY token").fetchall()
    connection.close()
    assert [row[0] for row in found] == [day.toordinal() for day in days]
    assert store.check() == []


# Traces.


def test_forgotten_tokens_are_gone_though_they_had_not_arrived_where_they_stay(
    tmp_path: Path, store: SqliteStore
) -> None:
    tokens = [os.urandom(16) for _ in range(500)]
    for at in range(0, 500, 50):
        add(store, *tokens[at : at + 50])
    assert rows_of(tmp_path)[0] == 0
    assert store.retain(DAY.replace(month=12, day=5)).tokens == 500
    left = b"|".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(each in left for each in tokens)


@pytest.mark.slow
def test_rows_tell_no_order_and_after_a_minute_not_what_came_together(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [os.urandom(16) for _ in range(1500)]
    for at in range(0, 1200, 30):
        add(store, *sent[at : at + 30])
    _, rows = rows_of(tmp_path)
    assert len(rows) == 1200 // 210 + 1  # seven groups in each
    assert min(number for number, _ in rows) > 10**6
    assert all(recent_tokens.split(data) == sorted(recent_tokens.split(data)) for _, data in rows)
    monkeypatch.setattr(recent_tokens, "SECONDS", 0.0)
    add(store, *sent[1200:])
    _, rows = rows_of(tmp_path)
    together = [each for _, data in rows for each in recent_tokens.split(data)]
    assert together == sorted(sent)  # row after row, neighbours by value


# Damage, and moves that stop halfway.


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM fresh_tokens WHERE id=(SELECT max(id) FROM fresh_tokens)",
        "UPDATE fresh_tokens SET day=day - 1 WHERE id=(SELECT max(id) FROM fresh_tokens)",
        "UPDATE fresh_tokens SET data=zeroblob(length(data))",
        "UPDATE fresh_tokens SET id=id + 1 WHERE id=(SELECT max(id) FROM fresh_tokens)",
        "INSERT INTO tokens SELECT substr(data, 1, 16), day FROM fresh_tokens",
    ],
)
def test_damage_to_these_rows_is_noticed(tmp_path: Path, store: SqliteStore, damage: str) -> None:
    for number in range(4):
        add(store, *(os.urandom(16) for _ in range(200)))
        assert len(rows_of(tmp_path)[1]) == number + 1
    assert store.check() == []
    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute(damage)
    connection.commit()
    connection.close()
    assert store.check() != []


def test_a_damaged_row_stops_the_counting_instead_of_letting_replays_in(
    tmp_path: Path, store: SqliteStore
) -> None:
    add(store, token(1))
    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute("UPDATE fresh_tokens SET data=zeroblob(16)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="fresh tokens: damaged"):
        add(store, token(1))
    assert counted(store) == 1


def test_tokens_that_are_moved_twice_are_noticed(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copies(self: RecentTokens, connection: Connection) -> bool:
        for row in recent_tokens.read(connection):
            recent_tokens._move(connection, row.day, row.data)
        return True

    add(store, token(1), token(2))
    with monkeypatch.context() as planted:
        planted.setattr(RecentTokens, "merge", copies)
        store.settle()
    assert store.check() == ["tokens of day 739936: damaged (not those that were written)"]
    with pytest.raises(StoreError, match="damaged"):
        store.settle()
    assert add(store, token(1)) == [False]


# A child that dies by kill -9 before the n-th statement of what it does to a store.
KILLER = """
import os, signal, sys
from pathlib import Path
from rappor.store.sqlite import recent_tokens
from rappor.store.sqlite.connection import connect
from rappor.store.sqlite.store import SqliteStore
from support import store_samples as samples

recent_tokens.FULL, recent_tokens.BLOCK, recent_tokens.MAX_TOKENS = 5, 9, 12
in_two = sys.argv[3] == "in-two"

class Killing:
    left = 10**9
    def __init__(self, inner):
        self.inner = inner
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def execute(self, sql, parameters=()):
        if in_two and "INSERT INTO tokens" in sql:  # the row is gone, in a transaction of its own
            self.inner.execute("COMMIT")
            self.inner.execute("BEGIN IMMEDIATE")
        if Killing.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        Killing.left -= 1
        return self.inner.execute(sql, parameters)

path = Path(sys.argv[1])
for at in map(int, sys.argv[2].split()):
    child = os.fork()
    if child == 0:
        store = SqliteStore(
            path / f"{at}" / "store.sqlite", connect=lambda p, ro: Killing(connect(p, ro))
        )
        Killing.left = at
        for number in range(100, 104):
            folds = samples.always([samples.fold(samples.cell(), 0, [1])])
            store.add([samples.token(number)], folds, samples.DAY)
        store.settle()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


def killed_at_statements(folder: Path, how: str, statements: range) -> int:
    """Stores that were killed while tokens followed and were moved: how many have a fault."""
    store = opened(folder / "start")
    store.save_definition(collection().to_toml(), actor="ann")
    sent = [token(number) for number in range(40)]
    for each in sent:
        add(store, each)
    store._session.settle()  # the file only: the tokens stay where they are
    for at in statements:
        (folder / f"{at}").mkdir()
        for name in (NAME, f"{NAME}-commits"):
            shutil.copy(folder / "start" / name, folder / f"{at}")
    store.close()
    tests = str(Path(samples.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", KILLER, folder, " ".join(map(str, statements)), how],
        env=os.environ | {"PYTHONPATH": tests},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    endings = done.stdout.split()
    assert endings[0] == str(int(signal.SIGKILL))
    assert (endings[-1] == "0") == (how == "whole")  # it was killed everywhere on its way
    faults = 0
    for at in statements:
        again = opened(folder / f"{at}")
        before = counted(again)
        new = add(again, *sent)
        faults += any(new) or again.check() != [] or not 40 <= before <= 44
        again.close()
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_any_statement_no_token_is_lost_or_twice_there(
    tmp_path: Path, every: int
) -> None:
    assert killed_at_statements(tmp_path, "whole", range(0, 100, every)) == 0


@pytest.mark.slow
def test_moves_in_two_transactions_are_caught(tmp_path: Path) -> None:
    """A crash after a row is deleted and before its tokens are where they stay."""
    assert killed_at_statements(tmp_path, "in-two", range(0, 60, 3)) > 0


def test_everything_else_is_as_it_was(tmp_path: Path) -> None:
    """Backups have the latest tokens, and readers of a busy store see all that is acknowledged."""
    store = opened(tmp_path / "a")
    samples.fill(store)
    assert rows_of(tmp_path / "a")[0] == 0
    reader = open_store(tmp_path / "a", read_only=True)
    assert samples.everything(reader) == samples.everything(store)
    assert reader.check() == []
    reader.close()
    store.backup(tmp_path / "copy")
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "copy", tmp_path / "b" / NAME)
    again = opened(tmp_path / "b")
    assert samples.everything(again) == samples.everything(store)
    known = [each for _, data in rows_of(tmp_path / "a")[1] for each in recent_tokens.split(data)]
    assert len(known) == 30
    assert not any(again.add(known, always([]), DAY))
    again.close()
    store.close()
