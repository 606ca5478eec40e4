"""Attempts to have the operator's commands lose, double or hide something."""

import datetime
import json
import subprocess
import time
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.store import open_store
from support.collecting import PARAMS, batch, client_of, collector, day, stored, today
from support.collecting import write_collections as write
from support.command import COMMAND, environment, rappor

HEAD = "client,cohort,rappor\n"


def csv(folder: Path, name: str, rows: int) -> Path:
    file = folder / name
    file.write_text(HEAD + "".join(f"{row},{row % 4},{row % 512:016b}\n" for row in range(rows)))
    return file


def imported(folder: Path, file: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    return rappor(
        *("import", file, "--data", folder / "data", "--collections", folder / "collections"),
        *("--collection", "homepage", "--period", day(), *more),
    )


def test_a_file_is_known_under_any_name_and_another_byte_makes_another_file(tmp_path: Path) -> None:
    write(tmp_path)
    file = csv(tmp_path, "a.csv", 10)
    renamed = tmp_path / "b.csv"
    renamed.write_bytes(file.read_bytes())
    changed = tmp_path / "c.csv"
    changed.write_bytes(file.read_bytes() + b"10,1,0000000000000001\n")
    said = [imported(tmp_path, each).stdout for each in (file, file, renamed, changed)]
    assert ["before" in each for each in said] == [False, True, True, False]
    assert stored(tmp_path) == {(day(), ""): 21}


@pytest.mark.parametrize("keep", [0, 7])
def test_a_file_that_grows_while_it_is_read_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int
) -> None:
    """Else it would be known by a digest of lines that were not counted, or the other way round."""
    from rappor.aggregate.stored import ReportFile
    from rappor.cli import main

    write(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=keep))
    file = csv(tmp_path, "a.csv", 10)
    read = ReportFile._parts

    def growing(self: ReportFile, params: object) -> object:
        yield from read(self, params)  # type: ignore[arg-type]
        with file.open("a") as more:
            more.write("11,1,0000000000000001\n")

    monkeypatch.setattr(ReportFile, "_parts", growing)
    arguments = ["import", str(file), "--data", str(tmp_path / "data"), "--collection", "homepage"]
    arguments += ["--collections", str(tmp_path / "collections"), "--period", day()]
    assert main.main(arguments) == 3
    assert stored(tmp_path) == {}
    monkeypatch.undo()
    assert imported(tmp_path, file).returncode == 0
    assert stored(tmp_path) == {(day(), ""): 11}


def test_nothing_is_imported_into_a_collection_that_has_ended(tmp_path: Path) -> None:
    """Its next retention would remove it again, and the file would be known for ever."""
    write(tmp_path, Collection("homepage", 1, PARAMS, expires=today()))
    done = imported(tmp_path, csv(tmp_path, "a.csv", 3))
    assert done.returncode == 3
    assert "expired" in done.stderr
    assert stored(tmp_path) == {}


@pytest.mark.parametrize(
    "command",
    [
        ("retain",),
        ("export", "homepage", "--output", "counts.csv"),
        ("import", "a.csv", "--collection", "homepage"),
        ("backup", "--output", "b.backup"),
        ("status",),
        ("decode", "homepage", "--candidates", "a.csv"),
    ],
    ids=lambda each: each[0],
)
def test_a_misspelt_folder_is_an_error_and_not_a_new_store(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    csv(tmp_path, "a.csv", 1)
    placed = [str(tmp_path / each) if "." in each else each for each in command]
    done = rappor(*placed, "--data", tmp_path / "dta")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "there is no store" in done.stderr
    assert not (tmp_path / "dta").exists()


def test_a_backup_is_written_down_before_it_is_made(tmp_path: Path) -> None:
    write(tmp_path)
    imported(tmp_path, csv(tmp_path, "a.csv", 3))
    copy = tmp_path / "b.backup"
    assert rappor("backup", "--data", tmp_path / "data", "--output", copy).returncode == 0
    assert rappor("restore", copy, "--data", tmp_path / "again").returncode == 0
    said = json.loads(rappor("status", "--data", tmp_path / "again", "--audit", "--json").stdout)
    assert [each["action"] for each in said["audit"]] == ["define", "import", "backup", "restore"]


def test_a_day_to_come_is_warned_about_before_tokens_go(tmp_path: Path) -> None:
    write(tmp_path)
    imported(tmp_path, csv(tmp_path, "a.csv", 3))
    later = str(today() + datetime.timedelta(days=30))
    done = rappor("retain", "--data", tmp_path / "data", "--today", later)
    assert done.returncode == 0
    assert "twice" in done.stderr
    assert "twice" not in rappor("retain", "--data", tmp_path / "data").stderr


def test_the_collector_answers_while_a_large_file_goes_in(tmp_path: Path) -> None:
    """Where reports are kept as well: the file is read before the store is asked to take it."""
    write(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=7))
    file = csv(tmp_path, "a.csv", 400_000)
    with collector(tmp_path, "--rate", "0") as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        arguments = ("import", file, "--data", tmp_path / "data", "--collection", "homepage")
        importing = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], env=environment(), stdout=subprocess.DEVNULL
        )
        sent, slowest = 1, 0.0
        while importing.poll() is None:
            started = time.monotonic()
            answer = client.send(batch())
            slowest = max(slowest, time.monotonic() - started)
            assert answer.status in (204, 503)
            sent += answer.status == 204
        assert importing.returncode == 0
    assert slowest < 3
    assert stored(tmp_path) == {(day(), ""): sent + 400_000}
    store = open_store(tmp_path / "data", read_only=True)
    assert store.check() == []
    assert sum(each.kept for each in store.cells()) == sent + 400_000
    store.close()


def test_expired_reports_are_gone_from_every_file_while_the_collector_runs(tmp_path: Path) -> None:
    """Sixteen bytes that stand out, imported for a period whose days are over."""
    from rappor.params import Params

    params = Params(k=128, h=2, m=4, f=0.5, p=0.5, q=0.75)
    write(tmp_path, Collection("homepage", 1, params, keep_reports_days=1))
    pattern = bytes.fromhex("deadbeefcafef00d0123456789abcdef")
    bits = f"{int.from_bytes(pattern, 'little'):0128b}"
    file = tmp_path / "a.csv"
    file.write_text(HEAD + f"1,1,{bits}\n" * 1500)
    data = tmp_path / "data"

    def hits() -> list[str]:
        return [each.name for each in data.iterdir() if pattern in each.read_bytes()]

    with collector(tmp_path):
        old = (today() - datetime.timedelta(days=2)).isoformat()
        done = rappor("import", file, "--data", data, "--collection", "homepage", "--period", old)
        assert done.returncode == 0
        assert hits()
        done = rappor("retain", "--data", data, "--json")
        assert json.loads(done.stdout)["reports"] == 1500
        assert json.loads(done.stdout)["settled"] is True
        assert hits() == []
    assert hits() == []
    assert stored(tmp_path) == {(old, ""): 1500}
