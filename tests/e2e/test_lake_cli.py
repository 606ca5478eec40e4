"""`rappor lake` and `rappor aggregate LAKE`, as commands; a sealer that is killed."""

import json
import os
import signal
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rappor import Counts
from rappor.aggregate.lake import LakePlace, count_lake, verify
from rappor.collection import Collection
from rappor.store import CellKey, open_store
from support.command import COMMAND, environment, rappor
from support.lakes import PARAMS, add, numbers, stored
from support.waiting import wait_for


def closed(back: int) -> str:
    return str(datetime.now(UTC).date() - timedelta(days=30 + back))


def data_folder(folder: Path, days: int, reports: int = 20) -> Path:
    """Two collections that keep reports of closed days."""
    with closing(open_store(folder)) as store:
        for name in ("homepage", "engine"):
            expires = datetime.now(UTC).date() + timedelta(days=300)
            made = Collection(name, 1, PARAMS, keep_reports_days=365, expires=expires)
            store.save_definition(made.to_toml(), actor="test")
            for back in range(days if name == "homepage" else 1):
                add(store, CellKey(name, 1, closed(back)), back + 1000 * len(name), reports)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"), days=4)


def test_seal_list_verify_compact_and_count(data: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    done = rappor("lake", "seal", lake, "--data", data)
    assert (done.returncode, done.stdout) == (0, "400 reports sealed in 5 files\n"), done.stderr
    listed = rappor("lake", "ls", lake)
    assert listed.stdout.splitlines()[-1] == "400 reports in 5 files"
    assert rappor("lake", "verify", lake).stdout == "5 files are sound, with 400 reports\n"
    assert rappor("lake", "compact", lake).returncode == 0
    counts = tmp_path / "counts.npz"
    counted = rappor("aggregate", lake, "--collection", "homepage", "--output", counts)
    assert counted.returncode == 0, counted.stderr
    exported = tmp_path / "exported.npz"
    assert rappor("export", "homepage", "--data", data, "--output", exported).returncode == 0
    assert Counts.from_npz(counts) == Counts.from_npz(exported)
    audit = rappor("status", "--data", data)
    assert audit.returncode == 0


def test_a_lake_of_several_collections_asks_for_one(data: Path, tmp_path: Path) -> None:
    rappor("lake", "seal", tmp_path / "lake", "--data", data)
    done = rappor("aggregate", tmp_path / "lake")
    assert done.returncode == 3
    assert "has 2 collections: engine, homepage; name one of them" in done.stderr


def test_faults_are_named_and_stop_a_count_unless_allowed(data: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    rappor("lake", "seal", lake, "--data", data)
    file = sorted((lake / "homepage").rglob("*.parquet"))[0]
    file.write_bytes(file.read_bytes()[:-1])
    found = rappor("lake", "verify", lake, "--json")
    assert found.returncode == 1
    (fault,) = json.loads(found.stdout)["faults"]
    assert (fault["file"], fault["code"]) == (str(file.relative_to(lake)), "damaged")
    refused = rappor("aggregate", lake, "--collection", "homepage", "--json")
    assert refused.returncode == 3
    assert str(file.relative_to(lake)) in refused.stderr
    assert "--allow-faults" in refused.stderr
    rest = rappor("aggregate", lake, "--collection", "homepage", "--json", "--allow-faults")
    assert (rest.returncode, json.loads(rest.stdout)["reports"]) == (0, 240)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("lake",), 2, "give an action"),
        (("lake", "ls", "nowhere"), 3, "there is no lake here"),
        (("lake", "ls", "ftp://example.org/x"), 3, "a lake is a folder, or a URL"),
        (("aggregate", "r.csv", "--preset", "windows", "--collection", "x"), 2, "with a lake"),
        (("aggregate", "r.csv", "--preset", "windows", "--master", "x"), 2, "--engine spark"),
    ],
)
def test_wrong_uses_are_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = rappor(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("kills", [1, pytest.param(8)])
def test_a_killed_sealer_leaves_no_half_file_and_the_next_goes_on(
    tmp_path: Path, kills: int
) -> None:
    data = data_folder(tmp_path / "data", days=100, reports=10)
    lake = tmp_path / "lake"
    command = [*COMMAND, "lake", "seal", str(lake), "--data", str(data)]
    for kill in range(kills):
        enough = len(list(lake.rglob("*.parquet"))) + 5 + kill
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        wait_for(
            lambda enough=enough, process=process: (
                len(list(lake.rglob("*.parquet"))) >= enough or process.poll() is not None
            )
        )
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if list((lake / "_manifest").glob("*.json")):
            codes = {fault.code for fault in verify(LakePlace(lake)).faults}
            assert codes <= {"unlisted", "foreign"}  # a draft is no Parquet file
    assert rappor(*command[3:]).returncode == 0
    assert numbers(count_lake(LakePlace(lake), collection="homepage").cells) == stored(data)
