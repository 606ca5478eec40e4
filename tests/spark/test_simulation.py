"""`rappor simulate --engine spark`: the law of the local simulation, in files of any number."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rappor import Counts, Params, decode
from rappor.aggregate import aggregate_files
from rappor.simulate import Scenario, read_truth, simulate, zipf
from rappor.simulate.spark import divide, simulate_on_spark
from support.spark_cluster import SparkCluster, run_rappor

PARAMS = Params.preset("windows")
POPULATION = zipf(50, power=1.2, absent=50)
MIN_P = 0.001  # the chance that a correct simulation fails a test


def differs(one: Counts, other: Counts) -> float:
    """The p-value of a χ² test that the shares of ones of two collections are the same.

    Bits of a cohort are independent given its values, and both have the same shares of values up
    to the chance of who holds what, which the variance of a single report's bit includes.
    """
    n, m = one.totals[:, None], other.totals[:, None]
    pooled = (one.ones + other.ones) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    squares = (one.ones / n - other.ones / m) ** 2 / variance
    return float(stats.chi2.sf(squares.sum(), squares.size))


def decodes_otherwise(one: Counts, other: Counts) -> float:
    """The p-value of a χ² test that the estimates of the strings that both detect are the same."""
    tables = [decode(counts, POPULATION.candidates).rows for counts in (one, other)]
    rows = [{row.string: row for row in table if row.detected} for table in tables]
    both = sorted(rows[0].keys() & rows[1].keys())
    assert len(both) >= 3
    squares = [
        (rows[0][name].estimate - rows[1][name].estimate) ** 2
        / (rows[0][name].std_error ** 2 + rows[1][name].std_error ** 2)
        for name in both
    ]
    return float(stats.chi2.sf(sum(squares), len(squares)))


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param("2e6", marks=pytest.mark.long),
        pytest.param("1e8", marks=pytest.mark.soak),
    ],
)
def test_a_simulation_on_a_cluster_has_the_law_of_the_local_one(
    cluster: SparkCluster, tmp_path: Path, reports: str
) -> None:
    population = ["--population", "zipf", "--strings", "50", "--power", "1.2", "--absent", "50"]
    engine = ["--engine", "spark", "--master", cluster.url]
    options = ["--reports", reports, "--preset", "windows", "--seed", "7", "--output"]
    done = run_rappor(cluster, "simulate", *population, *engine, *options, tmp_path / "there")
    assert done.returncode == 0, done.stderr
    made = tmp_path / "there"
    counts, number = Counts.from_npz(made / "counts.npz"), int(float(reports))
    assert counts.reports == number
    truth = read_truth(made / "truth.csv")
    assert sum(truth.values()) == number
    files = sorted((made / "reports").iterdir())
    assert np.array_equal(aggregate_files(files, PARAMS).counts.ones, counts.ones)
    here = simulate(POPULATION, PARAMS, number, seed=11)
    assert differs(counts, here.counts) > MIN_P
    held = [[made_truth[name] for name in POPULATION.strings] for made_truth in (truth, here.truth)]
    assert stats.chi2_contingency(held).pvalue > MIN_P
    wrong = simulate(POPULATION, replace(PARAMS, f=0.51), number, seed=12).counts
    assert differs(counts, wrong) < 1e-6  # the test has power
    assert decodes_otherwise(counts, here.counts) > MIN_P


@pytest.mark.long
def test_the_same_seed_makes_the_same_files_whoever_makes_them(
    session: Any, tmp_path: Path
) -> None:
    scenario = Scenario(
        POPULATION, PARAMS, 30_000, seed=3, values="changing", change=0.5, reports_per_client=3
    )
    one = simulate_on_spark(session, scenario, str(tmp_path / "a"), size=7_000)
    two = simulate_on_spark(session, scenario, str(tmp_path / "b"), size=7_000)
    assert one == two
    assert one.counts.reports_per_client == 3
    assert sum(one.truth.values()) == 30_000
    names = [part.file for part in divide(scenario, 7_000)]
    assert len(names) == 5
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
