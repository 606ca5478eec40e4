"""`rappor collection retire`: what happens to the data of a collection is said, and done."""

import datetime
import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from rappor.collection import Collection
from support.collecting import (
    PARAMS,
    batch,
    client_of,
    collector,
    stored,
    today,
    write_collections,
)
from support.command import rappor
from support.waiting import wait_for

END = today() + datetime.timedelta(days=10)
HOMEPAGE = Collection("homepage", 1, PARAMS, owner="web", expires=END)


def retire(folder: Path, *options: str) -> tuple[int, str, str]:
    done = rappor(
        *("collection", "retire", "homepage", "--data", folder / "data"),
        *("--collections", folder / "collections", *options),
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A data folder with one report of each of two collections."""
    other = Collection("other", 1, PARAMS, owner="web", expires=END + datetime.timedelta(days=90))
    write_collections(tmp_path, HOMEPAGE, other)
    with collector(tmp_path) as process, client_of(process) as client:
        assert client.deliver(batch()).status == 204
        assert client.deliver(batch(collection="other")).status == 204
        assert process.wait_for_event("expires-soon")["text"].startswith("homepage v1 expires on")
        page = client.get("/metrics").body.decode()
        assert 'rappor_collections{state="expiring"} 1.0' in page
        process.end()
    return tmp_path


def test_the_end_is_announced_by_status(place: Path) -> None:
    said = rappor("status", "--data", place / "data")
    assert f"{END} (in 10 d)" in said.stdout
    assert f"note: homepage v1 expires on {END}, in 10 days" in said.stderr
    assert "other v1 expires" not in said.stderr
    document = json.loads(rappor("status", "--data", place / "data", "--json").stdout)
    rows = {row["collection"]: row for row in document["collections"]}
    assert (rows["homepage"]["days_left"], rows["homepage"]["on_expiry"]) == (10, "delete")
    assert len(document["announcements"]) == 1


def test_what_would_be_deleted_is_said_and_then_it_is(place: Path) -> None:
    code, out, err = retire(place, "--dry-run")
    assert (code, "would be deleted: 1 counted reports in 1 cells" in out) == (0, True)
    assert "nothing was changed" in err
    assert len(stored(place)) == 1
    code, out, err = retire(place)
    assert code == 0, err
    assert "homepage v1: ended as of" in out
    assert "  deleted: 1 counted reports in 1 cells, 0 single reports" in out
    assert "backups and exports" in err
    assert "SIGHUP" not in err  # no collector runs
    assert stored(place) == {}
    assert len(stored(place, "other")) == 1
    file = Collection.read(place / "collections" / "homepage-1.toml")
    assert file == replace(HOMEPAGE, expires=today())
    log = json.loads(rappor("status", "--data", place / "data", "--audit", "--json").stdout)
    assert [entry["action"] for entry in log["audit"]][-3:] == ["define", "retire", "retain"]


def test_counts_can_stay(place: Path) -> None:
    code, out, err = retire(place, "--on-expiry", "keep-counts", "--json")
    assert code == 0, err
    version = json.loads(out)["versions"][0]
    assert version["before"]["counted"] == version["after"]["counted"] == 1
    assert rappor("retain", "--data", place / "data").returncode == 0
    assert len(stored(place)) == 1
    code, out, _ = retire(place, "--on-expiry", "delete")  # later, when nobody needs them
    assert (code, stored(place)) == (0, {})


def test_a_running_collector_stops_accepting_and_deletes_at_its_reload(place: Path) -> None:
    with collector(place) as process, client_of(process) as client:
        code, _, err = retire(place)
        assert (code, "SIGHUP" in err) == (0, True)
        assert client.deliver(batch()).status == 204  # it has not read the file yet
        assert len(stored(place)) == 1
        process.process.send_signal(signal.SIGHUP)
        process.wait_for_event("reloaded")
        assert client.send(batch()).code == "expired-collection"
        wait_for(lambda: stored(place) == {})


def test_a_collection_that_is_nowhere_is_an_error(place: Path) -> None:
    for options in (("--version", "7"),):
        code, out, err = retire(place, *options)
        assert (code, out) == (3, "")
        assert "has a collection 'homepage' v7" in err
    assert len(stored(place)) == 1
