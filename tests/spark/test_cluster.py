"""Counting on a Spark cluster of real processes: the counts of one machine, whatever dies."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rappor import Counts, Params
from rappor.aggregate import aggregate_files, spark
from rappor.aggregate.lake import LakePlace
from rappor.aggregate.lake.inputs import count_here, count_part, lake_input
from rappor.aggregate.lake.manifest import write_record
from rappor.aggregate.lake.rows import rows_of
from rappor.aggregate.lake.sealing import write_seal
from rappor.aggregate.pieces import cut
from rappor.aggregate.report_files import CountedPart
from rappor.aggregate.write_reports import write_csv, write_parquet
from rappor.cli import spark_submit
from rappor.collection import Collection
from rappor.store import CellKey
from support.spark_cluster import SparkCluster, run_driver, run_rappor
from support.waiting import wait_for

PARAMS = Params.preset("windows")
WIDTH = PARAMS.k // 8


def big_lake(folder: Path, reports: int, files: int) -> Path:
    """A lake of random reports: bytes of chance are as good as simulated ones here."""
    place, generator = LakePlace(folder), np.random.default_rng(reports)
    definition = Collection("homepage", 1, PARAMS, keep_reports_days=3650)
    made = []
    for number in range(files):
        cell = CellKey("homepage", 1, f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}")
        each = reports // files // PARAMS.m
        rows = (
            row
            for cohort in range(PARAMS.m)
            for row in rows_of(cell, cohort, generator.bytes(each * WIDTH), PARAMS.k)
        )
        made += write_seal(place, rows, definition, PARAMS.digest)
    write_record(place, made)
    return folder


@pytest.mark.parametrize(
    ("reports", "files"),
    [
        pytest.param(10_000_000, 25, marks=pytest.mark.long),
        pytest.param(100_000_000, 100, marks=pytest.mark.soak),
    ],
)
def test_a_cluster_counts_a_lake_as_one_machine_does(
    cluster: SparkCluster, tmp_path: Path, reports: int, files: int
) -> None:
    lake = big_lake(tmp_path / "lake", reports, files)
    output = tmp_path / "counts.npz"
    engine = ["--engine", "spark", "--master", cluster.url]
    done = run_rappor(cluster, "aggregate", lake, *engine, "--output", output)
    assert done.returncode == 0, done.stderr
    here = count_here(lake_input(str(lake), None, None), lambda _: None)
    assert here.counts.reports == reports
    assert Counts.from_npz(output) == here.counts


@pytest.mark.long
def test_a_worker_killed_in_the_middle_changes_no_count(
    cluster: SparkCluster, session: Any, tmp_path: Path
) -> None:
    lake = str(big_lake(tmp_path / "lake", 400_000, 20))
    chosen = lake_input(lake, None, None)
    gate, params = str(tmp_path / "gate"), PARAMS

    def work(file: Any) -> CountedPart:
        import time
        from pathlib import Path

        Path(f"{gate}-{os.getpid()}").touch()
        while not Path(gate).exists():
            time.sleep(0.01)
        return count_part(lake, file, params)

    found: list[Any] = []
    job = threading.Thread(
        target=lambda: found.append(spark.map_sum(session, chosen.files, work, params))
    )
    job.start()
    try:
        wait_for(lambda: len(list(tmp_path.glob("gate-*"))) >= 2, "tasks on both workers")
        cluster.kill_worker(0)
    finally:
        Path(gate).touch()
    job.join(900)
    ((totals, ones, _),) = found
    here = count_here(chosen, lambda _: None).counts
    assert np.array_equal(totals, here.totals)
    assert np.array_equal(ones, here.ones)
    cluster.add_worker(2)


@pytest.mark.long
def test_files_of_every_format_count_as_on_one_machine(session: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    kept = [(cohort, generator.bytes(20_000 * WIDTH)) for cohort in range(PARAMS.m)]
    csv, parquet = tmp_path / "r.csv", tmp_path / "r.parquet"
    write_csv(csv, kept, PARAMS.k)
    write_parquet(parquet, kept, PARAMS.k)
    with csv.open("a") as file:
        file.write("x,9999,01\n\ny,1,2\nz,-1,0\n")
    jsonl = tmp_path / "r.jsonl"
    bits = f"{int.from_bytes(kept[0][1][:WIDTH], 'little'):0{PARAMS.k}b}"
    jsonl.write_text(f'{{"cohort": 3, "bits": "{bits}"}}\n' * 500 + "no json\n")
    names = [csv, parquet, jsonl]
    here = aggregate_files(names, PARAMS)
    there = spark.aggregate_pieces(session, cut(names, size=2**20), PARAMS)
    assert there == here
    assert here.malformed == 4


@pytest.mark.long
def test_a_dataframe_of_blobs_and_one_of_reports_are_counted(session: Any, tmp_path: Path) -> None:
    lake = big_lake(tmp_path / "lake", 80_000, 2)
    here = count_here(lake_input(str(lake), None, None), lambda _: None).counts
    frame = session.read.option("recursiveFileLookup", True).parquet(f"{lake}/homepage")
    found = spark.count(frame, PARAMS)
    assert np.array_equal(found.ones, here.ones)
    kept = [(1, np.random.default_rng(4).bytes(3000 * WIDTH))]
    write_parquet(tmp_path / "r.parquet", kept, PARAMS.k)
    single = spark.count(session.read.parquet(str(tmp_path / "r.parquet")), PARAMS)
    assert single == aggregate_files([tmp_path / "r.parquet"], PARAMS).counts


@pytest.mark.long
def test_faults_of_a_lake_are_named_by_executors(cluster: SparkCluster, tmp_path: Path) -> None:
    lake = big_lake(tmp_path / "lake", 80_000, 4)
    file = sorted(lake.rglob("*.parquet"))[0]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    engine = ["--engine", "spark", "--master", cluster.url]
    done = run_rappor(cluster, "aggregate", lake, *engine, "--output", tmp_path / "counts.npz")
    assert done.returncode == 3, done.stderr
    assert f"damaged: {file.relative_to(lake)}: its checksum" in done.stderr
    assert not (tmp_path / "counts.npz").exists()


@pytest.mark.long
def test_spark_submit_counts_as_the_command_does(cluster: SparkCluster, tmp_path: Path) -> None:
    lake = big_lake(tmp_path / "lake", 80_000, 4)
    output = tmp_path / "counts.npz"
    submit = [cluster.spark_submit, "--master", cluster.url, spark_submit.__file__]
    done = run_driver(cluster, submit, "aggregate", lake, "--engine", "spark", "--output", output)
    assert done.returncode == 0, done.stderr
    here = count_here(lake_input(str(lake), None, None), lambda _: None)
    assert Counts.from_npz(output) == here.counts
    printed = run_driver(cluster, [sys.executable, "-m", "rappor.cli.spark_submit"])
    assert printed.stdout.strip() == spark_submit.__file__
