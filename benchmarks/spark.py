"""Counting a lake on Spark, compared with the local engine on the same files in the same run.

A standalone master and two workers with one core each run on this machine, as real processes. Both
engines verify and count the same Parquet files of 4,096-report blobs (k=128, 32 cohorts). They take
turns, and the best round of each counts. Start-up (Java, the session, the workers' interpreters and
compilers) is shown apart: it does not grow with the number of reports.

    make bench                            100 million reports, fails if a promise is broken
    python benchmarks/spark.py --quick    10 million, for a look
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rappor import Params
from rappor.aggregate import spark
from rappor.aggregate.lake import LakePlace
from rappor.aggregate.lake.inputs import LakeInput, count_here, count_on_spark, lake_input
from rappor.aggregate.lake.manifest import write_record
from rappor.aggregate.lake.rows import rows_of
from rappor.aggregate.lake.sealing import write_seal
from rappor.collection import Collection
from rappor.store import CellKey
from support.spark_cluster import spark_cluster

PARAMS = Params(k=128, h=2, m=32, f=0.5, p=0.5, q=0.75)
WIDTH = PARAMS.k // 8
REPORTS, FILES = 100_000_000, 100
ROUNDS = 3
MAX_OVER_LOCAL = 8.0
LOCAL, ON_SPARK, FRAME = "local engine", "Spark, verified files", "Spark, DataFrame"


def make_lake(folder: Path, reports: int) -> Path:
    """A lake of random bytes: counting takes as long as with simulated reports."""
    place, generator = LakePlace(folder), np.random.default_rng(1)
    definition = Collection("bench", 1, PARAMS, keep_reports_days=3650)
    made = []
    for number in range(FILES):
        cell = CellKey("bench", 1, f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}")
        each = reports // FILES // PARAMS.m
        rows = (
            row
            for cohort in range(PARAMS.m)
            for row in rows_of(cell, cohort, generator.bytes(each * WIDTH), PARAMS.k)
        )
        made += write_seal(place, rows, definition, PARAMS.digest)
    write_record(place, made)
    return folder


def processor_seconds() -> float:
    """Of this process and of the children that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def best_of_rounds(contestants: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each contestant: the best of rounds in which they take turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(ROUNDS):
        for name, call in contestants.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
        print(f"\r  round {number + 1} of {ROUNDS}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return best


def measure(folder: Path, reports: int) -> dict[str, Any]:
    """Seconds of both engines, and of the start."""
    lake = make_lake(folder / "lake", reports)
    chosen: LakeInput = lake_input(str(lake), None, None)
    reports = sum(file.reports for file in chosen.files)
    here = count_here(chosen, lambda _: None).counts  # compiles
    started = processor_seconds()
    count_here(chosen, lambda _: None)
    core_seconds = processor_seconds() - started
    with spark_cluster(folder / "cluster") as cluster:
        os.environ.update(cluster.environment())
        quiet = "--conf spark.ui.showConsoleProgress=false pyspark-shell"
        os.environ["PYSPARK_SUBMIT_ARGS"] = quiet
        start = time.perf_counter()
        session = spark.session(cluster.url)
        session.sparkContext.setLogLevel("ERROR")
        pattern = f"{lake}/bench"
        frame = session.read.option("recursiveFileLookup", True).parquet(pattern)
        there = count_on_spark(chosen, session).counts  # starts and warms the workers
        start_up = time.perf_counter() - start
        assert there == here
        assert (spark.count(frame, PARAMS).ones == here.ones).all()
        seconds = best_of_rounds(
            {
                LOCAL: lambda: count_here(chosen, lambda _: None),
                ON_SPARK: lambda: count_on_spark(chosen, session),
                FRAME: lambda: spark.count(frame, PARAMS),
            }
        )
        session.stop()
    return {
        "reports": reports,
        "bytes": sum(file.size for file in chosen.files),
        "start_up_seconds": start_up,
        "local_core_seconds": core_seconds,
        "seconds": seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the reports")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of Spark
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), REPORTS // (10 if args.quick else 1))
    ratios = {name: each / result["seconds"][LOCAL] for name, each in result["seconds"].items()}
    result["over_local"] = ratios
    promises = {}
    if not args.quick:  # with few reports, what Spark costs per job is most of its time
        promises[f"Spark: at most {MAX_OVER_LOCAL:g} x the local engine"] = (
            ratios[ON_SPARK] <= MAX_OVER_LOCAL
        )
    result |= {"cores": os.cpu_count(), "promises": promises}
    text = json.dumps(result, indent=2)
    if args.output:
        args.output.write_text(text + "\n")
    print(text if args.json else describe(result))
    return 0 if all(promises.values()) else 1


def describe(result: dict) -> str:
    reports = result["reports"]
    lines = [f"Counting {reports:,} reports of a lake, k=128, 32 cohorts, two workers", ""]
    for name, seconds in result["seconds"].items():
        rate, ratio = reports / seconds / 1e6, result["over_local"][name]
        lines.append(f"  {name:<24} {seconds:8.2f} s   {rate:8.1f} M reports/s   {ratio:5.1f} x")
    lines.append(f"  {'start-up of Spark':<24} {result['start_up_seconds']:8.2f} s")
    per_million = result["local_core_seconds"] / reports * 1e6
    lines.append(f"  {'local, core-seconds':<24} {per_million:8.4f} per million reports")
    lines.append(f"  {'files':<24} {result['bytes'] / reports:8.2f} bytes a report")
    lines.append("")
    for name, kept in result["promises"].items():
        lines.append(f"  {'kept  ' if kept else 'BROKEN'}  {name}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
