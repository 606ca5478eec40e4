"""google/rappor's own association files, next to maximum likelihood and to google/rappor's result.

`tests/vectors/reference/association`: 50,000 reports of a domain and a boolean, and what
google/rappor's decode-assoc made of them (assoc-results.csv).
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

import rappor
from rappor import Association
from rappor.aggregate.association_files import count_association_reports, read_variables
from rappor.aggregate.pair_counts import PairCounts
from rappor.decoding.design import build_design
from rappor.decoding.field_design import field_design
from rappor.decoding.mapfile import read_map
from support.joint_tables import (
    WholeReports,
    maximum_likelihood,
    unrestricted_likelihood,
    whole_reports,
)

FILES = Path(__file__).parents[2] / "vectors" / "reference" / "association"
pytestmark = pytest.mark.slow

DOMAINS = ["google.com", "yahoo.com", "bing.com", 'q"q']


@pytest.fixture(scope="module")
def counts() -> PairCounts:
    first, second = read_variables(FILES / "rappor-vars.csv")
    counted = count_association_reports(FILES / "reports.csv.gz", (first, second))
    assert counted.malformed == 0
    return counted.counts


@pytest.fixture(scope="module")
def found(counts: PairCounts) -> Association:
    return rappor.associate(counts, (FILES / "cand.txt", None))


@pytest.fixture(scope="module")
def whole(counts: PairCounts, found: Association) -> WholeReports:
    """The whole reports, read here without the package."""
    with gzip.open(FILES / "reports.csv.gz", "rt", encoding="ascii") as file:
        rows = list(csv.reader(file))[1:]
    cohorts = np.array([int(row[1]) for row in rows])
    domains, flags = (
        np.array([list(map(int, reversed(row[column]))) for row in rows], np.uint8)
        for column in (2, 3)
    )
    fields = (
        field_design("domain", counts.first, DOMAINS, None),
        field_design("https", counts.second, None, None),
    )
    assert (fields[0].labels, fields[1].labels) == found.labels
    return whole_reports(cohorts, (domains, flags), fields)


def test_the_map_places_domains_as_the_dialect_does(counts: PairCounts) -> None:
    """One candidate has a quotation mark in its name, which CSV doubles."""
    design = read_map(FILES / "domain_map.csv", counts.first.params)
    ours = build_design(DOMAINS, counts.first.params, "google")
    assert design.strings.strings == ours.strings.strings
    assert np.array_equal(design.index, ours.index)


def test_every_cell_is_within_an_error_of_the_likeliest_table(
    found: Association, whole: WholeReports
) -> None:
    """Four domains and "other"; shares that are not kept from falling below 0, as ours are not."""
    z = (found.share - unrestricted_likelihood(whole)) / found.std_error
    assert z.shape == (5, 2)
    assert np.abs(z).max() < 1
    assert found.reports == 50_000


def test_every_cell_is_within_two_errors_of_converged_em(
    found: Association, whole: WholeReports
) -> None:
    """EM keeps shares from falling below 0; so does `projected`.

    Without that, listed cells are as near. Those of "other" are 2.6 and 2.3 errors away: the
    reports are likeliest with a share of -13 % for other × true, which EM puts at 0.
    """
    likeliest = maximum_likelihood(whole)
    assert np.abs((found.projected() - likeliest) / found.std_error).max() < 2
    z = (found.share - likeliest) / found.std_error
    assert np.abs(z[:4]).max() < 2
    assert likeliest[4, 0] < 1e-6
    assert unrestricted_likelihood(whole)[4, 0] < -0.1


def test_googles_own_result_lies_within_the_errors_that_it_lacks(found: Association) -> None:
    """Its EM stopped early; no cell is further off than noise takes it."""
    with (FILES / "assoc-results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    flags = {"TRUE": "true", "FALSE": "false"}
    theirs = {
        (row["domain"].replace("Other", "other"), flags[row["flag..HTTPS"]]): float(
            row["proportion"]
        )
        for row in rows
    }
    cells = {(cell.first, cell.second): cell for cell in found.rows}
    assert theirs.keys() == cells.keys()
    assert all(
        abs(share - cells[pair].share) < 4 * cells[pair].std_error for pair, share in theirs.items()
    )
