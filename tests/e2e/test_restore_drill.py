"""The restore drill: one file brings back counts, accounts and candidate lists, and no session."""

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.state import DashboardState
from rappor.store import open_store
from support.collecting import PARAMS, batch, client_of, collector, write_collections
from support.command import rappor
from support.dashboard import Sample, serving

pytestmark = pytest.mark.long


def test_after_a_restore_people_log_in_with_the_tokens_that_they_had(tmp_path: Path) -> None:
    write_collections(tmp_path, Collection("homepage", 1, PARAMS))
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.deliver(batch()).status == 204
        token = rappor("access", "new", "ada", "--role", "analyst", "--data", tmp_path / "data")
        link = rappor("access", "link", "bob", "--role", "viewer", "--data", tmp_path / "data")
        assert (token.returncode, link.returncode) == (0, 0)
        with closing(DashboardState(tmp_path / "data" / "dashboard.sqlite")) as state:
            state.save_candidates("homepage", ["a.org", "b.org"], "ada")
            session = state.log_in(link=state.new_link("bob", "test"))
            assert session is not None
        # While both are in use, and into folders that are not there yet.
        copy = tmp_path / "backups" / "today" / "data.backup"
        made = rappor("backup", "--data", tmp_path / "data", "--output", copy, "--json")
        assert made.returncode == 0, made.stderr
    assert "2 accounts, 1 candidate list" in made.stderr
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    files = json.loads(made.stdout)["files"]
    assert (files["dashboard.sqlite"]["accounts"], "store.sqlite" in files) == (2, True)

    restored = Sample(tmp_path / "restored")
    write_collections(restored.folder, Collection("homepage", 1, PARAMS))
    done = rappor("restore", copy, "--data", restored.data)
    assert done.returncode == 0, done.stderr
    assert "2 accounts, 1 candidate list" in done.stderr
    assert rappor("status", "--data", restored.data).returncode == 0
    with serving(restored) as dashboard:
        visit = dashboard.browser()
        assert visit.post("/login", {"token": token.stdout.strip()}).status == 303
        assert "homepage" in visit.get("/").text
        found = dashboard.state.candidates("homepage")
        assert found is not None
        assert list(found.strings) == ["a.org", "b.org"]
        secret = link.stdout.strip().partition("link=")[2]
        assert dashboard.state.look_link(secret) is None  # one-time links are not in a backup
        assert [account.sessions for account in dashboard.state.accounts()] == [1, 0]
        assert dashboard.browser(Role.OPERATOR).get("/ingest").status == 200


def test_an_existing_file_of_the_dashboard_is_never_replaced(tmp_path: Path) -> None:
    write_collections(tmp_path)
    open_store(tmp_path / "data").close()
    for name in ("data", "other"):
        (tmp_path / name).mkdir(exist_ok=True)
        rappor("access", "new", name, "--role", "viewer", "--data", tmp_path / name)
    copy = tmp_path / "b.backup"
    assert rappor("backup", "--data", tmp_path / "data", "--output", copy).returncode == 0
    refused = rappor("restore", copy, "--data", tmp_path / "other")
    assert refused.returncode == 3
    assert refused.stderr == (
        f"rappor restore: {tmp_path}/other/dashboard.sqlite: exists already; move it away, or keep "
        "it and restore the store alone with --store-only\n"
    )
    assert not (tmp_path / "other" / "store.sqlite").exists()
    kept = rappor("restore", copy, "--data", tmp_path / "other", "--store-only")
    assert kept.returncode == 0, kept.stderr
    listed = rappor("access", "list", "--data", tmp_path / "other").stdout
    assert "other" in listed
    assert sorted(path.name for path in (tmp_path / "other").glob(".*")) == []


def test_a_backup_of_the_store_alone_is_restored_and_said_to_have_no_accounts(
    tmp_path: Path,
) -> None:
    with closing(open_store(tmp_path / "data")) as store:
        store.backup(tmp_path / "store.backup")  # as earlier versions of the command wrote it
    done = rappor("restore", tmp_path / "store.backup", "--data", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    assert "no accounts" in done.stderr


def test_a_damaged_backup_leaves_nothing_behind(tmp_path: Path) -> None:
    open_store(tmp_path / "data").close()
    rappor("access", "new", "ada", "--role", "viewer", "--data", tmp_path / "data")
    copy = tmp_path / "b.backup"
    assert rappor("backup", "--data", tmp_path / "data", "--output", copy).returncode == 0
    whole = copy.read_bytes()
    for at in (len(whole) // 2, len(whole) // 4):
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        done = rappor("restore", copy, "--data", tmp_path / "again")
        assert done.returncode == 3
        assert done.stderr.startswith(f"rappor restore: {copy}: damaged")
        assert done.stderr.endswith("; restore another backup\n")
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "again").exists()


def test_a_damaged_file_of_the_dashboard_is_no_backup(tmp_path: Path) -> None:
    open_store(tmp_path / "data").close()
    with closing(sqlite3.connect(tmp_path / "data" / "dashboard.sqlite")) as other:
        other.execute("CREATE TABLE notes (text)")
    file = tmp_path / "data" / "dashboard.sqlite"
    backup = ("backup", "--data", tmp_path / "data", "--output", tmp_path / "new" / "b.backup")
    for content in (file.read_bytes(), bytes(range(256)) * 8):
        file.write_bytes(content)
        done = rappor(*backup)
        assert done.returncode == 3
        assert done.stderr.startswith(f"rappor backup: {file}: ")
        assert done.stderr.endswith("; move it away to make a backup without it\n")
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "new").exists()
    file.unlink()
    assert rappor(*backup).returncode == 0
