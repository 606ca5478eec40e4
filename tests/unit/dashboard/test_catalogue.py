"""What pages are told about the store: right, fresh, and quick to come by."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.snapshot import Standing
from rappor.errors import ParamsError, StoreError
from rappor.store import open_store
from support.collecting import today
from support.dashboard import COUNTRIES, STRINGS, WEEKS, Sample, sample_folder, truth, week
from support.dashboard_context import always_fresh


@pytest.fixture(autouse=True)
def on_a_busy_machine_too() -> Iterator[None]:
    with always_fresh():
        yield


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample_folder(tmp_path_factory.mktemp("catalogue"))


@pytest.fixture
def catalogue(sample: Sample) -> Catalogue:
    return Catalogue(sample.data, sample.definitions)


def test_collections_are_listed_by_name_with_their_standing(catalogue: Catalogue) -> None:
    found = {entry.name: entry.standing for entry in catalogue.collections()}
    assert list(found) == sorted(found)
    assert found["homepage"] is Standing.ACTIVE
    assert found["old-survey"] is Standing.EXPIRED


def test_periods_values_and_reports_are_those_of_the_store(
    sample: Sample, catalogue: Catalogue
) -> None:
    store = open_store(sample.data, read_only=True)
    cells = [each for each in store.cells() if each.cell.collection == "homepage"]
    store.close()
    periods = catalogue.periods("homepage", 1)
    assert [each.period for each in periods] == [week(back) for back in reversed(range(WEEKS))]
    assert sum(each.reports for each in periods) == sum(each.reports for each in cells)
    assert catalogue.values("homepage", 1, "country") == list(COUNTRIES)
    last = [each for each in cells if each.cell.period == week(0)]
    assert catalogue.reports("homepage", 1, [week(0)]) == sum(each.reports for each in last)
    nz = [each.reports for each in last if ("country", "NZ") in each.cell.pairs]
    assert catalogue.reports("homepage", 1, [week(0)], (("country", "NZ"),)) == sum(nz)
    assert catalogue.reports("homepage", 1, [week(0)], (("country", "XX"),)) == 0


def test_counts_are_summed_over_what_is_asked_for(catalogue: Catalogue) -> None:
    (both,) = catalogue.counts("homepage", 1, [week(0)])
    (one,) = catalogue.counts("homepage", 1, [week(0)], (("country", "NZ"),))
    (two,) = catalogue.counts("homepage", 1, [week(0), week(1)])
    assert both.reports == catalogue.reports("homepage", 1, [week(0)])
    assert one.reports == catalogue.reports("homepage", 1, [week(0)], (("country", "NZ"),))
    assert (both.reports_per_client, two.reports_per_client) == (1, 2)
    assert catalogue.counts("search-engine", 1) == []


def test_what_is_not_there_is_said(catalogue: Catalogue) -> None:
    with pytest.raises(ParamsError, match="there is no collection 'nothing'"):
        catalogue.get("nothing")
    with pytest.raises(ParamsError, match="homepage has no version 7, only 1"):
        catalogue.get("homepage", 7)
    assert catalogue.versions("start-time") == [2]


def test_new_reports_show_at_once_where_the_store_is_small(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    catalogue = Catalogue(sample.data)
    before = catalogue.reports("extensions", 1)
    each = sample.collections["extensions-1"]
    sample.add(each, week(0), truth(0), 70, seed=9)
    sample.store()
    assert catalogue.reports("extensions", 1) == before + 70


def test_a_folder_without_a_store_has_drafts_only(tmp_path: Path) -> None:
    sample = Sample(tmp_path)
    sample.data.mkdir()
    catalogue = Catalogue(sample.data, sample.definitions)
    assert catalogue.collections() == []
    sample.define(Collection("homepage", 1, STRINGS))
    sample.define(Collection("reviewed", 1, STRINGS, reviews=("https://example.org/1",)))
    (sample.definitions / "bad.toml").write_text("name = 3", encoding="utf-8")
    found = {entry.name: entry.standing for entry in catalogue.collections()}
    assert found == {"homepage": Standing.DRAFT, "reviewed": Standing.REVIEW}
    assert [each.file for each in catalogue.unreadable()] == ["bad.toml"]
    assert catalogue.audit_log() == []


def test_the_newest_version_is_the_one_that_is_listed(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    sample.define(Collection("homepage", 2, STRINGS, expires=today() - timedelta(days=1)))
    catalogue = Catalogue(sample.data, sample.definitions)
    entry = catalogue.entry("homepage")
    assert (entry.collection.version, entry.standing) == (2, Standing.EXPIRED)
    assert len(entry.periods) == WEEKS  # those of version 1 belong to it too
    assert catalogue.periods("homepage", 2) == []


def test_a_damaged_store_is_an_error_every_time_and_ends_with_its_cause(tmp_path: Path) -> None:
    sample = sample_folder(tmp_path)
    file = sample.data / "store.sqlite"
    good = file.read_bytes()
    file.write_bytes(good[:100] + b"\xff" * 4000 + good[4100:])
    catalogue = Catalogue(sample.data)
    for _ in range(2):
        with pytest.raises(StoreError, match="damaged"):
            catalogue.collections()
    file.write_bytes(good)
    for extra in sample.data.glob("store.sqlite-*"):
        extra.unlink()
    assert len(catalogue.collections()) == 6
