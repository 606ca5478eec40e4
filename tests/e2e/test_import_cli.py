"""`rappor import`: a file counts once, whole, and while the collector goes on collecting."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.aggregate.imported_reports import ImportedReports
from rappor.cli import import_reports, main
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
    return rappor("import", *arguments(folder, file), *more)


def arguments(folder: Path, file: Path) -> list[str]:
    given = (file, "--data", folder / "data", "--collections", folder / "collections")
    return [*map(str, given), "--collection", "homepage", "--period", day()]


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
    write(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=keep))
    file = csv(tmp_path, "a.csv", 10)
    read = ImportedReports._parts

    def growing(self: ImportedReports, params: Any) -> Iterator[Any]:
        yield from read(self, params)
        with file.open("a") as more:
            more.write("11,1,0000000000000001\n")

    monkeypatch.setattr(ImportedReports, "_parts", growing)
    assert main.main(["import", *arguments(tmp_path, file)]) == 3
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


# Beside a collector.


def answer_while_a_file_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Stop an import while it reads its file, and send a batch: the collector's answer."""
    write(folder, Collection("homepage", 1, PARAMS, keep_reports_days=7))
    file = csv(folder, "a.csv", 1000)
    read = ImportedReports._parts
    statuses: list[int] = []

    with collector(folder, "--rate", "0") as process, client_of(process) as client:

        def stopping(self: ImportedReports, params: Any) -> Iterator[Any]:
            for part in read(self, params):
                if not statuses:
                    statuses.append(client.send(batch()).status)
                yield part

        assert client.send(batch()).status == 204
        monkeypatch.setattr(ImportedReports, "_parts", stopping)
        assert main.main(["import", *arguments(folder, file)]) == 0
    (status,) = statuses
    assert_sound(folder, 1000 + 1 + (status == 204))
    return status


def assert_sound(folder: Path, reports: int) -> None:
    """All reports are counted and kept, once."""
    assert stored(folder) == {(day(), ""): reports}
    store = open_store(folder / "data", read_only=True)
    assert store.check() == []
    assert sum(each.kept for each in store.cells()) == reports
    store.close()


def test_the_collector_stores_batches_while_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where reports are kept as well: the file is read before the store is asked to take it."""
    assert answer_while_a_file_is_read(tmp_path, monkeypatch) == 204


@pytest.mark.long
def test_an_import_that_reads_within_its_transaction_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector waits for its turn, then sends the batch away: ten seconds."""
    monkeypatch.setattr(import_reports, "_staged", lambda folds: folds)
    assert answer_while_a_file_is_read(tmp_path, monkeypatch) == 503


@pytest.mark.long
def test_the_collector_and_a_large_import_count_everything_once(tmp_path: Path) -> None:
    rows = 400_000
    write(tmp_path, Collection("homepage", 1, PARAMS, keep_reports_days=7))
    file = csv(tmp_path, "a.csv", rows)
    with collector(tmp_path, "--rate", "0") as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        importing = subprocess.Popen(
            [*COMMAND, "import", *arguments(tmp_path, file)],
            env=environment(),
            stdout=subprocess.DEVNULL,
        )
        sent = 1
        while importing.poll() is None:
            answer = client.send(batch())
            assert answer.status in (204, 503)
            sent += answer.status == 204
        assert importing.returncode == 0
    assert_sound(tmp_path, sent + rows)
