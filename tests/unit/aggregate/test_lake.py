"""The report lake: what it holds equals the store, nothing in it links, no fault is used."""

import json
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rappor.aggregate.lake import LakePlace, compact, count_lake, seal, verify
from rappor.aggregate.lake import sealing as sealing_module
from rappor.aggregate.lake.manifest import FOLDER, read_manifest, write_record
from rappor.aggregate.lake.rows import BLOB_REPORTS, COLUMNS, rows_of
from rappor.aggregate.lake.sealing import Sealed
from rappor.errors import DecodeError, ParamsError
from rappor.store import CellKey, open_store
from support.lakes import (
    CLOSED,
    OPEN,
    PARAMS,
    TODAY,
    WIDTH,
    add,
    keeping,
    many_files,
    packed,
    stored,
)
from support.lakes import numbers as numbers_of

TWO = {(CLOSED, "NZ"): 300, (CLOSED, "CH"): 40, ("2026-10-19", "NZ"): 200}


def sealed(data: Path, lake: Path, **options: bool) -> Sealed:
    with closing(open_store(data)) as store:
        return seal(store, LakePlace(lake), TODAY, **options)


def files_of(lake: Path) -> list[Path]:
    return sorted(lake.rglob("*.parquet"))


def test_a_lake_counted_from_nothing_equals_the_store(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    done = sealed(data, lake)
    assert (len(done.files), done.reports) == (3, 4 * 540)
    for path in data.iterdir():
        path.unlink()  # the lake alone is enough
    data = keeping(tmp_path / "same", TWO)
    assert numbers_of(count_lake(LakePlace(lake)).cells) == stored(data)


def test_sealing_again_adds_nothing(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    sealed(data, lake)
    before = files_of(lake)
    assert sealed(data, lake).files == ()
    assert files_of(lake) == before


def test_open_periods_wait_until_they_are_closed(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", {(OPEN, "NZ"): 100}), tmp_path / "lake"
    done = sealed(data, lake)
    assert done.files == ()
    assert [why for _, why in done.waiting] == ["its period still accepts reports"]


def test_two_seals_of_an_open_cell_are_fifty_reports_apart(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", {(OPEN, "NZ"): 100}), tmp_path / "lake"
    assert sealed(data, lake, open_periods=True).reports == 400
    cell = CellKey.of("homepage", 1, OPEN, [("country", "NZ")])
    with closing(open_store(data)) as store:
        add(store, cell, 50, 10)  # 40 reports
    done = sealed(data, lake, open_periods=True)
    assert done.files == ()
    assert "only 40 reports came since its seal" in done.waiting[0][1]
    with closing(open_store(data)) as store:
        add(store, cell, 51, 3)
    assert sealed(data, lake, open_periods=True).reports == 452
    assert len(files_of(lake)) == 1  # the earlier one is gone
    assert numbers_of(count_lake(LakePlace(lake)).cells) == stored(data)


def test_a_cell_of_few_reports_waits_while_its_period_is_open(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", {(OPEN, "NZ"): 12}), tmp_path / "lake"
    done = sealed(data, lake, open_periods=True)
    assert [why for _, why in done.waiting] == ["it has fewer than 50 reports"]


def test_a_row_has_its_key_a_count_and_at_most_4096_reports(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", {(CLOSED, "NZ"): 5000}), tmp_path / "lake"
    sealed(data, lake)
    (file,) = files_of(lake)
    table = pq.read_table(file)
    assert tuple(table.schema.names) == COLUMNS
    rows = table.to_pylist()
    assert [(row["cohort"], row["count"]) for row in rows] == [
        pair for cohort in range(4) for pair in ((cohort, BLOB_REPORTS), (cohort, 904))
    ]
    assert all(len(row["reports"]) == row["count"] * WIDTH for row in rows)
    assert {row["dimensions"] for row in rows} == {"country=NZ"}


def test_neither_files_nor_names_tell_the_order_of_arrival(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", {(CLOSED, "NZ"): 2000}), tmp_path / "lake"
    sealed(data, lake)
    (file,) = files_of(lake)
    arrived = packed(0, 2000)  # cohort 0 of the first cell
    row = next(row for row in pq.read_table(file).to_pylist() if row["cohort"] == 0)
    reports = [row["reports"][at : at + WIDTH] for at in range(0, len(row["reports"]), WIDTH)]
    before = [arrived[at : at + WIDTH] for at in range(0, len(arrived), WIDTH)]
    assert sorted(reports) == sorted(before)
    # Of 2,000 reports in a random order, 1 is in its place on average; 20 are not, p < 1e-18.
    assert sum(one == other for one, other in zip(reports, before, strict=True)) < 20
    again = tmp_path / "again"
    sealed(data, again)
    assert [path.name for path in files_of(again)] != [file.name]
    words = {part for path in lake.rglob("*") for part in path.relative_to(lake).parts}
    assert len([word for word in words if len(word.partition(".")[0]) == 32]) == 2  # random names
    record = json.loads(next((lake / FOLDER).iterdir()).read_text("ascii"))
    assert "time" not in record["record"]


def test_retention_removes_what_is_too_old(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    sealed(data, lake)
    place = LakePlace(lake)
    kept = read_manifest(place).files.values()
    last = max(file.keep_until for file in kept)
    assert last == TODAY.replace(month=10, day=20) + timedelta(days=60)
    done = compact(place, last)  # the day of 2026-10-19 is over
    assert done.removed == 1
    assert {file.of[2] for file in read_manifest(place).files.values()} == {CLOSED}
    assert len(files_of(lake)) == 1  # two countries, merged
    assert compact(place, last + timedelta(days=1)).removed == 1
    assert files_of(lake) == []


def test_a_shorter_definition_removes_earlier(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    sealed(data, lake)
    keeping(data, {}, days=20)
    done = sealed(data, lake)
    assert len(done.removed) == 3
    assert files_of(lake) == []
    assert {why for _, why in done.waiting} == {"retention removes its reports today"}


def test_compacting_merges_small_files_and_changes_no_count(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    sealed(data, lake)
    place = LakePlace(lake)
    done = compact(place, TODAY)
    assert (done.merged, done.written, len(files_of(lake))) == (2, 1, 2)
    assert numbers_of(count_lake(place).cells) == stored(data)
    assert len(list((lake / FOLDER).iterdir())) == 1
    assert compact(place, TODAY).merged == 0
    assert verify(place).faults == ()


def test_a_cell_of_a_merged_file_can_be_sealed_again(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    sealed(data, lake)
    compact(LakePlace(lake), TODAY)
    with closing(open_store(data)) as store:  # an import of old reports
        add(store, CellKey.of("homepage", 1, CLOSED, [("country", "CH")]), 70, 30)
    sealed(data, lake)
    assert numbers_of(count_lake(LakePlace(lake)).cells) == stored(data)


def test_large_cells_are_cut_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing_module, "FILE_BYTES", 1000)
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    assert len(sealed(data, lake).files) == 5
    place = LakePlace(lake)
    assert numbers_of(count_lake(place).cells) == stored(data)
    assert verify(place).faults == ()


def test_two_processes_that_seal_at_once_lose_nothing_and_count_once(tmp_path: Path) -> None:
    data, lake = keeping(tmp_path / "data", TWO), tmp_path / "lake"
    place = LakePlace(lake)
    sealed(data, lake)
    first = set(files_of(lake))
    (record,) = (lake / FOLDER).iterdir()
    hidden = record.rename(tmp_path / record.name)  # the second has not seen the first
    other = keeping(tmp_path / "other", {**TWO, ("2026-10-18", "NZ"): 60})
    with closing(open_store(other)) as store:
        seal(store, place, TODAY)
    hidden.rename(record)
    found = count_lake(place)
    assert numbers_of(found.cells) == stored(other)
    assert [fault.code for fault in found.faults] == ["twice"] * 3
    assert compact(place, TODAY).removed == 3
    assert count_lake(place).faults == ()
    assert numbers_of(count_lake(place).cells) == stored(other)
    assert first


def damage(lake: Path, names: list[str], spare: str) -> dict[str, str]:
    """One truncated, bit-flipped, replaced, missing, not in the manifest, of another program."""
    truncated, flipped, replaced, missing = (lake / name for name in names)
    truncated.write_bytes(truncated.read_bytes()[:-100])
    data = bytearray(flipped.read_bytes())
    data[len(data) // 2] ^= 1
    flipped.write_bytes(data)
    size = replaced.stat().st_size
    pq.write_table(pa.table({"a": [1, 2]}), replaced)
    assert replaced.stat().st_size != size
    missing.unlink()
    stray = lake / "homepage" / "v1" / "2020-01-01" / "stray.parquet"
    shutil.copy(lake / spare, stray)
    pq.write_table(pa.table({"a": [1, 2]}), lake / "other.parquet")
    codes = ("damaged", "damaged", "foreign", "missing")
    found = dict(zip(names, codes, strict=True))
    return {**found, str(stray.relative_to(lake)): "unlisted", "other.parquet": "foreign"}


@pytest.mark.parametrize("files", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_each_fault_is_named_and_none_is_used(tmp_path: Path, files: int) -> None:
    place = LakePlace(tmp_path)
    made = many_files(place, files)
    expected = damage(tmp_path, [made[at].path for at in (1, 5, 7, 9)], made[2].path)
    found = verify(place)
    assert {fault.file: fault.code for fault in found.faults} == expected
    assert (found.files, found.reports) == (files - 4, (files - 4) * 20)
    counted = count_lake(place)
    assert {fault.file for fault in counted.faults} == {made[at].path for at in (1, 5, 7, 9)}
    assert counted.reports == found.reports
    gone = {made[at].of[2] for at in (1, 5, 7, 9)}
    assert gone.isdisjoint(cell.cell.period for cell in counted.cells)


def test_a_sealed_file_that_contradicts_the_manifest_is_not_used(tmp_path: Path) -> None:
    place = LakePlace(tmp_path)
    (file,) = many_files(place, 1)
    data = (tmp_path / file.path).read_bytes()
    wrong = tuple((cell, number + 1) for cell, number in file.cells)
    write_record(place, [replace(file, path="x.parquet", seal="y", cells=wrong)], [file.path])
    place.write("x.parquet", data)
    (fault,) = (fault for fault in verify(place).faults if fault.file == "x.parquet")
    assert "other numbers of reports than the manifest says" in fault.text


def test_a_damaged_record_is_named_and_its_files_are_not_used(tmp_path: Path) -> None:
    place = LakePlace(tmp_path)
    many_files(place, 2)
    many_files(place, 0)
    records = sorted((tmp_path / FOLDER).iterdir(), key=lambda path: path.stat().st_size)
    text = records[-1].read_text("ascii")
    records[-1].write_text(text.replace("2020-01-02", "2020-01-03"), "ascii")
    found = verify(place)
    assert found.files == 0
    assert sorted({fault.code for fault in found.faults}) == ["record", "unlisted"]
    assert compact(place, TODAY).removed == 0
    assert len(list((tmp_path / FOLDER).iterdir())) == 2  # nothing is folded over a damaged one


def test_a_compaction_that_stops_at_any_write_leaves_the_lake_whole(tmp_path: Path) -> None:
    data = keeping(tmp_path / "data", TWO)
    expected = stored(data)
    for stop in range(12):
        lake = tmp_path / f"lake{stop}"
        sealed(data, lake)
        place = Stopping(lake, stop)
        with suppress(InterruptedError):
            compact(place, TODAY)
        assert numbers_of(count_lake(LakePlace(lake)).cells) == expected, stop
        compact(LakePlace(lake), TODAY)
        assert numbers_of(count_lake(LakePlace(lake)).cells) == expected, stop


def test_a_seal_that_stops_at_any_write_is_finished_by_the_next(tmp_path: Path) -> None:
    data = keeping(tmp_path / "data", TWO)
    for stop in range(5):
        lake = tmp_path / f"lake{stop}"
        with closing(open_store(data)) as store, suppress(InterruptedError):
            seal(store, Stopping(lake, stop), TODAY)
        sealed(data, lake)
        assert numbers_of(count_lake(LakePlace(lake)).cells) == stored(data), stop


class Stopping(LakePlace):
    """A lake whose process is killed at its nth change."""

    def __init__(self, where: Path, changes: int) -> None:
        super().__init__(where)
        self._left = changes

    def _spend(self) -> None:
        if self._left == 0:
            raise InterruptedError
        self._left -= 1

    def write(self, name: str, data: bytes) -> None:
        self._spend()
        super().write(name, data)

    def delete(self, name: str) -> None:
        self._spend()
        super().delete(name)


def test_what_is_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="there is no lake here"):
        read_manifest(LakePlace(tmp_path))
    with pytest.raises(ParamsError, match="a lake is a folder, or a URL of"):
        LakePlace("ftp://example.org/lake")


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    many_files(LakePlace(tmp_path.as_uri()), 1)
    assert verify(LakePlace(tmp_path)).files == 1
    assert oct(files_of(tmp_path)[0].stat().st_mode & 0o777) == "0o600"


def test_rows_are_cut_at_4096() -> None:
    cell = CellKey("a", 1, CLOSED)
    rows = list(rows_of(cell, 0, bytes(WIDTH * 9000), PARAMS.k))
    assert [row.count for row in rows] == [4096, 4096, 808]
