"""Decoding speed: 8,616 candidates in 32 cohorts, and a million candidates in 64.

Seconds of one decode, the map of candidates apart, against a yardstick of the same run: how long
numpy takes to look up as many table entries as one pass over the candidates does. A pass is what
every method of decoding needs many of; ratios carry over from machine to machine.

    make bench                             both sizes, fails if a promise is broken
    python benchmarks/decode.py --quick    the smaller one only
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import rappor
from rappor import Params
from rappor.decoding.design import build_design

CASES = {
    "8,616 candidates": (Params.preset("chrome"), 14 * 10**6, 4000, 1.4, 8616, "google"),
    "1,000,000 candidates": (
        Params(128, 2, 64, 0.5, 0.5, 0.75), 10**8, 20_000, 1.2, 10**6, "rappor-v1",
    ),
}  # fmt: skip
MAX_SECONDS = {"8,616 candidates": (15.0, 1.0), "1,000,000 candidates": (15.0, 10.0)}
MAX_BYTES = 1e9


def measure(name: str) -> dict[str, float]:
    """Seconds for the map, for a decode and for one pass by numpy; the peak of memory."""
    params, reports, present, power, listed, dialect = CASES[name]
    strings = [f"site-{number}.example" for number in range(listed)]
    shares = np.arange(1, present + 1) ** -power
    population = dict(zip(strings[:present], shares.tolist(), strict=True))
    counts = rappor.simulate.counts(population, params, reports, seed=1, dialect=dialect)
    decode = rappor.decode  # imported before the clock starts
    started = time.perf_counter()
    design = build_design(strings, params, dialect)
    mapped = time.perf_counter()
    decoded = decode(counts, design)
    ended = time.perf_counter()
    table = np.random.default_rng(1).normal(size=params.k + 1)
    begun = time.perf_counter()
    for positions in design.index:
        table[positions].sum()
    return {
        "map_seconds": mapped - started,
        "decode_seconds": ended - mapped,
        "pass_seconds": time.perf_counter() - begun,
        "detected": len(decoded.detected),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smaller case only")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args, _ = parser.parse_known_args()
    found, broken = {}, []
    for name in list(CASES)[: 1 if args.quick else None]:
        figures = found[name] = measure(name)
        ratio = figures["decode_seconds"] / figures["pass_seconds"]
        print(
            f"{name:>22}: map {figures['map_seconds']:.2f} s, decode "
            f"{figures['decode_seconds']:.2f} s ({ratio:.0f} passes), "
            f"{figures['detected']} detected, peak {figures['peak_bytes'] / 1e9:.2f} GB"
        )
        max_map, max_decode = MAX_SECONDS[name]
        if figures["map_seconds"] > max_map or figures["decode_seconds"] > max_decode:
            broken.append(f"{name}: more than {max_map:g} s for the map or {max_decode:g} s")
        if figures["peak_bytes"] > MAX_BYTES:
            broken.append(f"{name}: more than {MAX_BYTES / 1e9:g} GB")
    if args.output:
        args.output.write_text(json.dumps(found, indent=2) + "\n")
    for line in broken:
        print(f"FALLS SHORT: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
