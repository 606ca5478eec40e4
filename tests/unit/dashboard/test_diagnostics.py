"""The data of the Diagnostics page: the tables of decoding, in blocks if they are large."""

import numpy as np
import pytest

from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.diagnostics import heat_map, serialization
from rappor.dashboard.jobs import tasks
from rappor.decoding.decode import decode
from rappor.decoding.diagnosis import bit_table, diagnose
from rappor.mechanism import bloom_positions
from rappor.simulate import counts as simulated
from rappor.store import CellKey
from support.dashboard import Sample

PARAMS = Params(64, 2, 8, 0.5, 0.25, 0.75)
NAMES = [f"v{i:02}" for i in range(30)]
POPULATION = dict(zip(NAMES, (0.8 ** np.arange(12)).tolist(), strict=False))
PERIOD = "2026-W40"


@pytest.fixture(scope="module")
def made():
    return simulated(POPULATION, PARAMS, 60_000, seed=3)


@pytest.fixture(scope="module")
def result(tmp_path_factory, made):
    sample = Sample(tmp_path_factory.mktemp("diagnosis"))
    sample.define(Collection("homepage", 1, PARAMS, period="week"))
    sample.cells.append((CellKey.of("homepage", 1, PERIOD, ()), made))
    sample.store()
    arguments = {
        "data": str(sample.data),
        "collection": "homepage",
        "version": 1,
        "periods": [PERIOD],
        "dimensions": [],
        "list": 1,
        "strings": NAMES,
        "correction": "fdr",
        "alpha": 0.05,
        "method": "auto",
    }
    return tasks.diagnose(arguments, lambda text, share=None: None)


def test_what_is_kept_is_what_decoding_says(result, made):
    looked = serialization.unpack(*result)
    decoded = decode(made, NAMES)
    table = bit_table(decoded, [made])
    assert looked.checks == decoded.checks
    assert np.array_equal(looked.counts, made.ones)
    assert np.array_equal(looked.fitted, table.fitted)
    assert np.array_equal(looked.residuals, table.residuals)
    assert looked.meta["totals"] == made.totals.tolist()
    assert looked.meta["diagnosis"] == diagnose(decoded).to_dict()
    assert looked.reports == 60_000


def test_checks_that_an_older_version_kept_are_read(result):
    """Their code was called name."""
    old = [{"name": check["code"], **check} for check in result.meta["checks"]]
    for check in old:
        del check["code"]
    looked = serialization.unpack({**result.meta, "checks": old}, result.table)
    assert looked.checks == serialization.unpack(*result).checks


def test_cells_of_the_page_are_rounded_and_none_is_left_out(result):
    looked = serialization.unpack(*result)
    document = heat_map.cells_document(
        {"counts": looked.counts.astype(float), "residuals": looked.residuals, "fitted": None}
    )
    assert (document["rows"], document["columns"], document["block"]) == (8, 64, [1, 1])
    assert document["counts"] == looked.counts.ravel().tolist()
    assert np.allclose(document["residuals"], looked.residuals.ravel(), atol=0.0051)
    assert document["fitted"] is None


@pytest.mark.parametrize("shape", [(8, 64), (128, 128), (129, 128), (1024, 4096), (1, 4096)])
def test_no_picture_has_more_cells_than_can_be_told_apart(shape):
    block = heat_map.block_of(*shape)
    cells = -(-shape[0] // block.cohorts) * -(-shape[1] // block.bits)
    assert cells <= heat_map.MAX_CELLS
    assert (block == (1, 1)) == (shape[0] * shape[1] <= heat_map.MAX_CELLS)


def test_block_means_are_means_and_leave_out_what_is_not_known():
    table = np.arange(35.0).reshape(5, 7)
    table[0, 0] = np.nan
    table[4] = np.nan
    means = heat_map.block_means(table, heat_map.Block(2, 3))
    assert means.shape == (3, 3)
    assert means[0, 0] == np.nanmean(table[:2, :3])
    assert means[0, 2] == table[:2, 6].mean()
    assert np.isnan(means[2]).all()


def test_cohorts_without_reports_are_null():
    table = np.full((2, 2), np.nan)
    table[0] = [1.234, -9.876]
    document = heat_map.cells_document({"residuals": table, "counts": np.zeros((2, 2))})
    assert document["residuals"] == [1.23, -9.88, None, None]


def test_the_table_lists_the_cells_furthest_from_the_fit(result):
    looked = serialization.unpack(*result)
    cells = heat_map.extreme_cells(looked.counts, looked.fitted, looked.residuals)
    assert len(cells) == heat_map.EXTREME
    sizes = [abs(cell.residual) for cell in cells]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == np.abs(looked.residuals).max()
    first = cells[0]
    assert first.reports == looked.counts[first.cohort, first.bit]
    alone = heat_map.extreme_cells(looked.counts, None, None)
    assert alone[0].reports == looked.counts.max()


def test_a_string_lights_the_bits_that_clients_set():
    collection = Collection("homepage", 1, PARAMS)
    expected = [
        (cohort, bit)
        for cohort in range(8)
        for bit in sorted(set(bloom_positions("v00", cohort, PARAMS)))
    ]
    assert serialization.lit_cells("v00", collection) == expected
    category = Collection(
        "c", 1, Params(2, 1, 1, 0.5, 0.25, 0.75), "category", categories=("a", "b")
    )
    assert serialization.lit_cells("a", category) == []
