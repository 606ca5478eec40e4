"""Reports to counts at k=128, 32 cohorts: the kernel as a share of what memory can be read.

The limit is one core summing 1 GiB of 64-bit words. Contestants take turns, and the best round of
each counts, so that a busy machine disturbs all alike. Shares and ratios carry over from machine to
machine, seconds do not.

    make bench                            all of it, fails if a promise is broken
    python benchmarks/count.py --quick    a tenth of the data, for a look
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

from rappor import Params, privacy
from rappor.aggregate import aggregate_files, count, kernel_numpy

PARAMS = Params(k=128, h=2, m=32, f=0.5, p=0.5, q=0.75)
ROW = PARAMS.k // 8
ROUNDS = 5
MIN_GROUPED, MIN_MIXED = 0.20, 0.08
MIN_OVER_LOOP, MIN_OVER_PEER = 500, 50
MIN_CSV = 1e6


@numba.njit(nogil=True)
def read_all(words: np.ndarray) -> int:
    """Sum all words: LLVM unrolls this into vector additions, so that memory is the limit."""
    total = np.uint64(0)
    for i in range(words.size):
        total += words[i]
    return total


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


def kernels(size: int) -> dict[str, float]:
    """Bytes a second: reading, and counting reports in every order."""
    rng = np.random.default_rng(1)
    packed = rng.integers(0, 256, (size // ROW, ROW), np.uint8)
    mixed = rng.integers(0, PARAMS.m, len(packed)).astype(np.uint8)
    grouped = np.sort(mixed)
    words = packed.reshape(-1).view(np.uint64)
    read_all(words[:64])
    for cohorts in (mixed[:64], 3):  # compiles
        count(packed[:64], cohorts, PARAMS)
    taken = best_of_rounds(
        {
            "read": lambda: read_all(words),
            "blob of one cohort": lambda: count(packed, 3, PARAMS),
            "grouped by cohort": lambda: count(packed, grouped, PARAMS),
            "mixed order": lambda: count(packed, mixed, PARAMS),
        }
    )
    return {name: packed.nbytes / seconds for name, seconds in taken.items()}


def bit_by_bit(rows: list[bytes], cohorts: list[int]) -> None:
    """What google/rappor's sum_bits.py does: a Python loop over the bits of each report."""
    ones = [[0] * PARAMS.k for _ in range(PARAMS.m)]
    for row, cohort in zip(rows, cohorts, strict=True):
        bits = int.from_bytes(row, "little")
        sums = ones[cohort]
        for bit in range(PARAMS.k):
            sums[bit] += bits >> bit & 1


def row_by_row(packed: np.ndarray, cohorts: list[int]) -> None:
    """A Python loop that adds each report's bits with numpy."""
    ones = np.zeros((PARAMS.m, PARAMS.k), np.int64)
    for row, cohort in zip(packed, cohorts, strict=True):
        ones[cohort] += np.unpackbits(row, bitorder="little")


def peer(bits: np.ndarray) -> Callable[[], object] | None:
    """multi-freq-ldpy's aggregator, where it is installed; it takes reports already unpacked."""
    try:
        from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI
    except ImportError:
        return None
    epsilon = privacy.epsilon_infinity(PARAMS), privacy.epsilon_one(PARAMS)
    reports = list(bits.astype(float))
    return lambda: L_SUE_Aggregator_MI(reports, *epsilon)


def others() -> dict[str, float]:
    """Reports a second by other ways; few reports are enough for slow ones."""
    rng = np.random.default_rng(2)
    sizes = {"numpy fallback": 1_000_000, "numpy, row by row": 50_000, "Python, bit by bit": 3_000}
    packed = rng.integers(0, 256, (1_000_000, ROW), np.uint8)
    cohorts = rng.integers(0, PARAMS.m, len(packed))
    few = [row.tobytes() for row in packed[:3_000]]
    listed = cohorts.tolist()
    contest: dict[str, Callable[[], object]] = {
        "numpy fallback": lambda: kernel_numpy.count_rows(packed, cohorts, -1, PARAMS.m),
        "numpy, row by row": lambda: row_by_row(packed[:50_000], listed[:50_000]),
        "Python, bit by bit": lambda: bit_by_bit(few, listed[:3_000]),
    }
    theirs = peer(np.unpackbits(packed[:50_000], axis=1))
    if theirs is not None:
        contest["multi-freq-ldpy"] = theirs
        sizes["multi-freq-ldpy"] = 50_000
    return {name: sizes[name] / each for name, each in best_of_rounds(contest).items()}


def csv_rate(size: int) -> float:
    """Rows a second of client,cohort,rappor."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, (100_000, PARAMS.k), np.uint8) + ord("0")
    cohorts = rng.integers(0, PARAMS.m, len(bits)).tolist()
    lines = (b"c%d,%d,%s\n" % (i, cohorts[i], row.tobytes()) for i, row in enumerate(bits))
    block = b"".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.csv"
        with path.open("wb") as file:
            file.write(b"client,cohort,rappor\n")
            for _ in range(-(-size // len(block))):
                file.write(block)
        best = 0.0
        for _ in range(2):  # the first one may compile
            start = time.perf_counter()
            rows = aggregate_files(path, PARAMS).rows
            best = max(best, rows / (time.perf_counter() - start))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    args = parser.parse_args()
    scale = 10 if args.quick else 1
    speeds = kernels(2**30 // scale)
    rates = others()
    rows = csv_rate(10**9 // scale)
    read = speeds.pop("read")
    shares = {name: speed / read for name, speed in speeds.items()}
    mixed = speeds["mixed order"] / ROW
    ratios = {name: mixed / rate for name, rate in rates.items()}
    promises = {
        f"grouped: at least {MIN_GROUPED:.0%} of reading": min(
            shares["blob of one cohort"], shares["grouped by cohort"]
        )
        >= MIN_GROUPED,
        f"mixed: at least {MIN_MIXED:.0%} of reading": shares["mixed order"] >= MIN_MIXED,
        f"at least {MIN_OVER_LOOP} x a Python loop over rows": ratios["Python, bit by bit"]
        >= MIN_OVER_LOOP,
        f"CSV: at least {MIN_CSV:,.0f} rows a second": rows >= MIN_CSV,
    }
    if "multi-freq-ldpy" in ratios:
        promise = f"at least {MIN_OVER_PEER} x multi-freq-ldpy"
        promises[promise] = ratios["multi-freq-ldpy"] >= MIN_OVER_PEER
    result = {
        "read_bytes_per_second": read,
        "share_of_reading": shares,
        "reports_per_second": {name: speed / ROW for name, speed in speeds.items()} | rates,
        "mixed_over_others": ratios,
        "csv_rows_per_second": rows,
        "cores": os.cpu_count(),
        "promises": promises,
    }
    text = json.dumps(result, indent=2)
    if args.output:
        args.output.write_text(text + "\n")
    print(text if args.json else describe(result))
    return 0 if all(promises.values()) else 1


def describe(result: dict) -> str:
    rates = result["reports_per_second"]
    lines = ["Counting reports, k=128, 32 cohorts, one core", ""]
    lines.append(f"  {'reading memory':<24} {result['read_bytes_per_second'] / 1e9:8.1f} GB/s")
    for name, share in result["share_of_reading"].items():
        lines.append(f"  {name:<24} {rates[name] / 1e6:8.1f} M/s   {share:6.1%} of reading")
    lines += ["", "Mixed order compared with other ways", ""]
    for name, ratio in result["mixed_over_others"].items():
        lines.append(f"  {name:<24} {rates[name] / 1e6:8.3f} M/s   rappor is {ratio:,.0f} x faster")
    if "multi-freq-ldpy" not in rates:
        lines.append("  multi-freq-ldpy is not installed here: left out (`make bench` has it)")
    lines += ["", f"CSV, {result['cores']} cores", ""]
    lines.append(
        f"  {'client,cohort,rappor':<24} {result['csv_rows_per_second'] / 1e6:8.1f} M rows/s"
    )
    lines.append("")
    for name, kept in result["promises"].items():
        lines.append(f"  {'kept  ' if kept else 'BROKEN'}  {name}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
