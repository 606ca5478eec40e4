"""Up to a million simulated reports through HTTP and the store, and from files: the same counts."""

import os
from pathlib import Path

import pytest

from rappor import Params, simulate
from rappor.aggregate import aggregate_files
from rappor.aggregate.stored_counts import sum_cells
from rappor.collection import Collection
from rappor.simulate.output_files import report_file
from rappor.store import open_store
from rappor.wire import Batch, encode_batch
from support.collecting import client_of, collector, day, gateway, write_collections

PARAMS = Params(k=128, h=2, m=32, f=0.5, p=0.5, q=0.75)
AT_ONCE = 10_000


@pytest.mark.parametrize("reports", [200_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_reports_count_the_same_over_http_and_from_files(tmp_path: Path, reports: int) -> None:
    collection = Collection("homepage", 1, PARAMS)
    write_collections(tmp_path, collection)
    made = simulate.reports(simulate.exponential(100), PARAMS, reports, seed=5)
    with report_file(tmp_path / "reports.parquet", PARAMS.k) as file:
        file.write(made)
    key, options = gateway(tmp_path)
    with collector(tmp_path, *options) as process, client_of(process, key) as client:
        for start in range(0, reports, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            sent = Batch(
                token=os.urandom(16),
                collection="homepage",
                version=1,
                period=day(),
                dimensions=(),
                k=PARAMS.k,
                cohorts=made.cohorts[part].astype("<u2").tobytes(),
                reports=made.packed[part].tobytes(),
            )
            for _ in range(1 + (start % (10 * AT_ONCE) == 0)):  # every tenth is sent twice
                assert client.send(encode_batch(sent)).status == 204
    with open_store(tmp_path / "data", read_only=True) as store:
        (stored,) = sum_cells(store.counts("homepage"), collection)
    read = aggregate_files(tmp_path / "reports.parquet", PARAMS, dialect="rappor-v1").counts
    assert stored.totals.tolist() == read.totals.tolist() == made.count().totals.tolist()
    assert (stored.ones == read.ones).all()
    assert stored.reports == reports
