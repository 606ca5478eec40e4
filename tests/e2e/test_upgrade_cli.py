"""`rappor upgrade --check`: one line each, and exit code 1 if something has to be done first."""

import datetime
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.dashboard.settings import STATE_SCHEMA
from rappor.dashboard.state.database import MIGRATIONS as STATE_MIGRATIONS
from support.collecting import PARAMS, batch, client_of, collector, today, write_collections
from support.command import rappor

VECTORS = Path(__file__).parents[1] / "vectors"
HOMEPAGE = Collection(
    "homepage", 1, PARAMS, owner="web", expires=today() + datetime.timedelta(days=99)
)


def check(folder: Path, *options: str | Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and the state and text of each check; a later line of one name wins."""
    done = rappor("upgrade", "--check", "--data", folder / "data", "--json", *options)
    document = json.loads(done.stdout)
    assert document["ok"] is (done.returncode == 0)
    return done.returncode, {
        item["name"]: (item["state"], item["text"]) for item in document["checks"]
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A data folder with a report, an account and a file of keys."""
    write_collections(tmp_path, HOMEPAGE)
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.deliver(batch()).status == 204
        said = check(tmp_path)[1]  # of a new store, all of which may still be in its log
        assert (said["process"][0], said["store"][0]) == ("note", "ok")
        process.end()
    rappor("access", "new", "ada", "--role", "viewer", "--data", tmp_path / "data")
    rappor("keys", "new", "app", "--keys", tmp_path / "keys.json")
    return tmp_path


def every(place: Path) -> tuple[str | Path, ...]:
    return ("--collections", place / "collections", "--keys", place / "keys.json")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_folder_that_is_ready_says_ok_and_is_not_changed(place: Path) -> None:
    before = contents(place / "data")["store.sqlite"]
    code, said = check(place, *every(place))
    assert code == 0
    names = {"program", "store", "definitions", "clients", "dashboard", "keys", "space", "process"}
    assert set(said) == names
    assert said["clients"] == ("ok", "seen in the last 14 days: homepage v1 (100%)")
    assert said["keys"] == ("ok", "1 valid, 0 revoked")
    assert said["dashboard"] == ("ok", f"schema {STATE_SCHEMA}, which this version writes")
    assert contents(place / "data")["store.sqlite"] == before
    lines = rappor("upgrade", "--check", "--data", place / "data", *every(place)).stdout
    assert [line.split()[0] for line in lines.splitlines()[:2]] == ["ok", "ok"]
    assert (rappor("upgrade", "--data", place / "data")).returncode == 2


@pytest.mark.parametrize("version", [2])
def test_an_older_schema_needs_a_backup_first_and_is_not_upgraded(
    tmp_path: Path, version: int
) -> None:
    (tmp_path / "data").mkdir()
    store = tmp_path / "data" / "store.sqlite"
    shutil.copy(VECTORS / f"store-schema-{version}.sqlite", store)
    before = store.read_bytes()
    code, said = check(tmp_path)
    assert (code, said["store"][0]) == (1, "do first")
    assert "make a backup with the version that runs now" in said["store"][1]
    assert store.read_bytes() == before


def test_a_newer_schema_is_named(place: Path) -> None:
    for name, subject in (("store.sqlite", "store"), ("dashboard.sqlite", "dashboard")):
        with closing(sqlite3.connect(place / "data" / name, isolation_level=None)) as file:
            file.execute("PRAGMA user_version=99")
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        code, said = check(place, *every(place))
        assert (code, said[subject][0]) == (1, "do first")
        assert "schema 99, written by a newer rappor" in said[subject][1]


def test_files_that_would_keep_the_collector_from_starting_are_found(place: Path) -> None:
    file = place / "collections" / "homepage-1.toml"
    good = file.read_text()
    changed = replace(HOMEPAGE, params=replace(PARAMS, f=0.25))
    for text, message in (
        (changed.to_toml(), "params changed: give it version 2"),
        ("name = 3", "homepage-1.toml"),
    ):
        file.write_text(text)
        code, said = check(place, *every(place))
        assert (code, said["definitions"][0]) == (1, "do first")
        assert message in said["definitions"][1]
    file.write_text(good)
    (place / "keys.json").write_text("{")
    code, said = check(place, *every(place))
    assert (code, said["keys"][0], said["definitions"][0]) == (1, "do first", "note")


def test_a_version_that_clients_still_send_needs_its_file(place: Path) -> None:
    (place / "collections" / "homepage-1.toml").unlink()
    write_collections(place, replace(HOMEPAGE, version=2))
    code, said = check(place, *every(place))
    assert (code, said["clients"][0]) == (1, "do first")
    assert "clients still send homepage v1" in said["clients"][1]


def test_a_folder_without_a_store_is_an_error(tmp_path: Path) -> None:
    upgrade = ("upgrade", "--check", "--data", tmp_path / "data")
    missing = rappor(*upgrade)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "no such data folder" in missing.stderr
    assert not (tmp_path / "data").exists()
    (tmp_path / "data").mkdir()
    empty = rappor(*upgrade)
    assert (empty.returncode, "there is no store" in empty.stderr) == (3, True)
    assert list((tmp_path / "data").iterdir()) == []


def test_the_newest_schema_of_the_dashboards_file_is_written_once() -> None:
    assert len(STATE_MIGRATIONS) == STATE_SCHEMA
