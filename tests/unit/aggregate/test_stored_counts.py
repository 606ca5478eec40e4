"""Counts from the store add up as the theory says; files go in exactly as they would be counted."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rappor
from rappor.aggregate import aggregate_files
from rappor.aggregate.imported_reports import ImportedReports
from rappor.aggregate.stored_counts import counts_of, split, sum_cells
from rappor.aggregate.write_reports import write_csv, write_parquet
from rappor.collection import Phase
from rappor.errors import DecodeError
from rappor.store import StoredCounts, open_store
from support import store_samples as samples
from support.store_samples import DAY, PARAMS, PERIOD, WIDTH, always, cell, collection, token


def stored(period: str = PERIOD, country: str = "NZ", seed: int = 1, **changed: object) -> object:
    rng = np.random.default_rng(seed)
    totals = rng.integers(50, 99, PARAMS.m)
    ones = rng.integers(0, 50, (PARAMS.m, PARAMS.k))
    about = {"cell": cell(period, country), "params_digest": PARAMS.digest}
    return StoredCounts(totals=totals, ones=ones, **(about | changed))  # type: ignore[arg-type]


def test_a_cell_becomes_counts_with_all_that_its_definition_says() -> None:
    given = stored()
    counts = counts_of(given, collection(reports_per_period=3))  # type: ignore[arg-type]
    assert counts == rappor.Counts(
        PARAMS,
        given.totals,  # type: ignore[attr-defined]
        given.ones,  # type: ignore[attr-defined]
        dialect="rappor-v1",
        collection="homepage",
        version=1,
        reports_per_client=3,
    )


def test_cells_of_one_period_add_and_periods_add_the_reports_of_a_client() -> None:
    cells = [stored(PERIOD, "NZ", 1), stored(PERIOD, "CH", 2), stored("2026-11-15", "NZ", 3)]
    (one_day,) = sum_cells(cells[:2], collection(reports_per_period=2))  # type: ignore[arg-type]
    (both,) = sum_cells(cells, collection(reports_per_period=2))  # type: ignore[arg-type]
    assert one_day.reports_per_client == 2
    assert both.reports_per_client == 4
    assert (both.ones == sum(each.ones for each in cells)).all()  # type: ignore[attr-defined]
    assert (both.totals == sum(each.totals for each in cells)).all()  # type: ignore[attr-defined]


def test_a_client_that_reports_once_ever_has_one_report_in_any_number_of_periods() -> None:
    once = samples.Params(k=20, h=1, m=4, f=0.0, p=0.25, q=0.75)
    asked = replace(collection(max_epsilon=20.0), params=once, one_time=True)
    cells = [stored(day, params_digest=once.digest) for day in (PERIOD, "2026-11-15")]
    (counts,) = sum_cells(cells, asked)  # type: ignore[arg-type]
    assert counts.reports_per_client == 1


def test_each_p_and_q_of_a_schedule_stays_by_itself_and_they_decode_together() -> None:
    asked = collection(schedule=(Phase(PERIOD, 0.25, 0.75),))
    later = replace(PARAMS, p=0.25)
    cells = [stored("2026-11-15"), stored(PERIOD, params_digest=later.digest)]
    found = sum_cells(cells, asked)  # type: ignore[arg-type]
    assert [each.params for each in found] == [PARAMS, later]
    assert rappor.decode(found, ["a", "b"]).reports == sum(each.reports for each in found)


def test_cells_of_another_definition_are_refused() -> None:
    with pytest.raises(DecodeError, match="not a cell of homepage v2"):
        counts_of(stored(), collection(version=2))  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="other parameters"):
        counts_of(stored(params_digest="0" * 64), collection())  # type: ignore[arg-type]


def test_cells_are_split_by_a_dimension_or_by_period() -> None:
    cells = [stored(PERIOD, "NZ"), stored(PERIOD, "CH"), stored("2026-11-15", "NZ")]
    by_country = split(cells, "country")  # type: ignore[arg-type]
    assert {name: len(each) for name, each in by_country.items()} == {"CH": 1, "NZ": 2}
    assert list(split(cells, "period")) == ["2026-11-15", PERIOD]  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="can be split by country, os, period; not by planet"):
        split(cells, "planet")  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("keep", [0, 7])
def test_a_file_through_the_store_is_the_file_counted(
    tmp_path: Path, ending: str, keep: int
) -> None:
    rng = random.Random(1)
    path = tmp_path / f"reports{ending}"
    sent = [(cohort, rng.randbytes(2) + bytes([rng.getrandbits(4)])) for cohort in (0, 2) * 50]
    assert (write_csv if ending == ".csv" else write_parquet)(path, sent, PARAMS.k) == 100
    asked = collection(keep_reports_days=keep)
    store = open_store(tmp_path / "data")
    store.save_definition(asked.to_toml(), actor="ann")
    file = ImportedReports(path, asked, cell())
    assert store.add_file(file.digest(), file.folds(), actor="ann", detail="reports")
    (counts,) = sum_cells(store.counts("homepage"), asked)
    direct = aggregate_files(path, PARAMS).counts
    assert (counts.ones == direct.ones).all()
    assert (counts.totals == direct.totals).all()
    kept = {cohort: data for _, cohort, data in store.reports("homepage")}
    if keep:
        for cohort in (0, 2):
            data = kept[cohort]
            found = sorted(data[at : at + WIDTH] for at in range(0, len(data), WIDTH))
            assert found == sorted(report for number, report in sent if number == cohort)
    else:
        assert kept == {}
    again = tmp_path / f"again{ending}"
    written = (write_csv if ending == ".csv" else write_parquet)(again, kept.items(), PARAMS.k)
    assert written == (100 if keep else 0)
    store.close()


def test_malformed_lines_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text(f"client,cohort,rappor\n1,0,{'01' * 10}\n2,9,{'01' * 10}\n3,1,x\n")
    file = ImportedReports(path, collection(), cell())
    assert sum(fold.total for fold in file.folds()) == 1
    assert file.malformed == 2
    assert [each.line for each in file.examples] == [3, 4]


def test_the_digest_is_of_the_bytes_and_the_collection(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("a")
    first = ImportedReports(path, collection(), cell()).digest()
    assert ImportedReports(path, collection(), cell("2026-11-15")).digest() == first
    assert ImportedReports(path, collection(version=2), cell(version=2)).digest() != first
    path.write_text("b")
    assert ImportedReports(path, collection(), cell()).digest() != first


@pytest.mark.slow
def test_a_million_reports_give_the_same_counts_however_they_are_cut(tmp_path: Path) -> None:
    """Folding is exact: 100 batches through `add` equal one count of all."""
    params = samples.Params(k=20, h=2, m=4, f=0.5, p=0.5, q=0.75)
    rng = np.random.default_rng(5)
    packed = rng.integers(0, 256, (1_000_000, 3), np.uint8)
    packed[:, 2] &= 0x0F
    cohorts = rng.integers(0, 4, 1_000_000)
    store = open_store(tmp_path)
    store.save_definition(collection().to_toml(), actor="ann")
    for number, rows in enumerate(np.array_split(np.arange(1_000_000), 100)):
        part = rappor.aggregate.count(packed[rows], cohorts[rows], params)
        folds = [
            samples.Fold(cell(), j, params.digest, int(part.totals[j]), part.ones[j])
            for j in range(4)
        ]
        store.add([token(number)], always(folds), DAY)
    (found,) = store.counts("homepage")
    whole = rappor.aggregate.count(packed, cohorts, params)
    assert (found.ones == whole.ones).all()
    assert (found.totals == whole.totals).all()
    store.close()


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_reports_that_cannot_be_written_leave_the_old_file_whole(
    tmp_path: Path, write: Callable[..., int]
) -> None:
    path = tmp_path / "reports"
    path.write_text("old")

    def reports() -> Iterator[tuple[int, bytes]]:
        yield 0, bytes(WIDTH * 10)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="space"):
        write(path, reports(), PARAMS.k)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
