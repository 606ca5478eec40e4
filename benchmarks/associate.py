"""Associations: counting pairs of bits, and solving for the joint table.

Seconds of processor time next to their goals, and the peak of memory.

    make bench                              fails if a promise is broken
    python benchmarks/associate.py --quick  smaller sizes, no goals
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does

import numpy as np

import rappor
from rappor import Params
from rappor.aggregate import count_pairs
from rappor.aggregate.association_files import count_association_reports, read_variables
from rappor.simulate import pair_reports

# Seconds: google/rappor's EM takes 7.9 (C++) and 146 (R) on a file like the first.
GOALS = {
    "association file, 50,000 reports": 0.5,
    "count 1,000,000 reports, 128 x 128 x 16": 2.0,
    "fit 100 x 100": 3.0,
}
MAX_BYTES = 1e9


def association_file(reports: int) -> float:
    """Seconds to count and fit a file like google/rappor's: 4 strings and a boolean, k = 8."""
    params = Params(8, 1, 128, 0.5, 0.25, 0.75), Params(1, 1, 128, 0.5, 0.25, 0.75)
    joint = {(f"v{n}", flag): n + 1.0 for n in range(4) for flag in ("true", "false")}
    drawn = pair_reports(joint, params, reports, seed=1, kinds=("string", "boolean"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        params[0].to_csv(folder / "p.csv")
        (folder / "vars.csv").write_text(
            "metric, var, var_type, params\nm,x,string,p\nm,y,boolean,p\n"
        )
        lines = ["client,cohort,x,y"]
        for number, cohort in enumerate(drawn.cohorts.tolist()):
            bits = f"{int(drawn.packed[0][number, 0]):08b}"
            lines.append(f"c{number},{cohort},{bits},{int(drawn.packed[1][number, 0])}")
        (folder / "reports.csv").write_text("\n".join(lines) + "\n")
        rappor.associate(drawn.count(), ([f"v{n}" for n in range(4)], None))  # imports done
        started = time.process_time()
        first, second = read_variables(folder / "vars.csv")
        counted = count_association_reports(folder / "reports.csv", (first, second))
        rappor.associate(counted.counts, ([f"v{n}" for n in range(4)], None))
        return time.process_time() - started


def counting(reports: int) -> float:
    """Seconds to count pairs of 128 × 128 bits in 16 cohorts."""
    params = Params(128, 2, 16, 0.5, 0.5, 0.75)
    generator = np.random.default_rng(1)
    packed = [generator.integers(0, 256, (reports, 16), dtype=np.uint8) for _ in range(2)]
    cohorts = generator.integers(0, 16, reports)
    count_pairs(packed[0][:100], packed[1][:100], cohorts[:100], (params, params))
    started = time.process_time()
    count_pairs(packed[0], packed[1], cohorts, (params, params))
    return time.process_time() - started


def fitting(values: int) -> float:
    """Seconds to solve for a table of values × values."""
    params = Params(128, 2, 16, 0.5, 0.5, 0.75)
    joint = {
        (f"x{one}", f"y{two}"): 1 / (1 + one + two)
        for one in range(values)
        for two in range(values)
    }
    counts = pair_reports(joint, (params, params), 100_000, seed=1).count()
    lists = [f"x{n}" for n in range(values)], [f"y{n}" for n in range(values)]
    started = time.process_time()
    rappor.associate(counts, lists)
    return time.process_time() - started


def main() -> int:
    """Measure, print, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    part = 10 if args.quick else 1
    seconds = dict(
        zip(
            GOALS,
            (association_file(50_000 // part), counting(10**6 // part), fitting(100 // part)),
            strict=True,
        )
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if args.json:
        print(json.dumps({"seconds": seconds, "peak_bytes": peak}))
    else:
        print("associations, seconds of processor time (goal)")
        for name, took in seconds.items():
            print(f"  {name:<42} {took:6.2f} ({GOALS[name]})")
        print(
            f"  peak of memory                             {peak / 1e9:6.2f} GB ({MAX_BYTES / 1e9})"
        )
    missed = any(took > GOALS[name] for name, took in seconds.items()) or peak > MAX_BYTES
    return int(missed and not args.quick)


if __name__ == "__main__":
    sys.exit(main())
