"""One report at k=128, h=2: rappor.Encoder compared with pure-ldp and multi-freq-ldpy, in one run.

Every call gets a value it has not seen, B' is not cached between calls, and the contestants take
turns in short rounds; the best round of each counts, so that a busy machine disturbs all alike.
Figures are ratios: only those carry over from machine to machine.

    make bench                       all of it, fails if a promise is broken
    make bench BENCH_ARGS=--json     the same as JSON
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rappor import Encoder, Params, privacy
from rappor.mechanism.prr import permanent_response

PAPER = Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)
OTHERS = {
    "chrome (f=.75)": Params(128, 2, 32, 0.75, 0.5, 0.75),
    "any floats": Params(128, 2, 16, 0.3, 0.1234567, 0.8734234),
    "h=1, f=.2001": Params(128, 1, 16, 0.2001, 0.2239, 0.5307),
    "tiny f, q near 1": Params(128, 2, 16, 1e-9, 0.1, 0.999999999),
}
LIMIT_US = 25.0
ROUNDS, CALLS = 60, 500


def best_of_rounds(
    contestants: dict[str, Callable[[object], object]],
    values: Callable[[str, int], Iterable[object]],
) -> dict[str, float]:
    """Microseconds per call of each contestant: the best of many short rounds, taken in turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for number in range(ROUNDS):
        for name, call in contestants.items():
            batch = list(values(name, number))
            start = time.perf_counter()
            for value in batch:
                call(value)
            best[name] = min(best[name], (time.perf_counter() - start) / len(batch) * 1e6)
        print(f"\r  round {number + 1} of {ROUNDS}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return best


def fresh_strings(name: str, number: int) -> Iterable[object]:
    """Strings that no earlier call of the contestant has seen."""
    return (f"{name}/{number}/{call}" for call in range(CALLS))


def encoder(params: Params) -> Encoder:
    """A client's encoder; the secret is drawn afresh."""
    return Encoder(params, secret=os.urandom(32), collection="homepage")


def peers() -> dict[str, Callable[[object], object]]:
    """The two packages on PyPI that make RAPPOR-like reports."""
    from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client
    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    hashes = RAPPORServer(f=PAPER.f, m=PAPER.k, k=PAPER.h, d=1000, num_of_cohorts=PAPER.m)
    client = RAPPORClient(
        f=PAPER.f,
        m=PAPER.k,
        hash_funcs=hashes.get_hash_funcs(),
        num_of_cohorts=PAPER.m,
        index_mapper=lambda value: value,
    )
    epsilon = privacy.epsilon_infinity(PAPER), privacy.epsilon_one(PAPER)
    L_SUE_Client(0, PAPER.k, *epsilon)  # compiles
    return {
        "pure-ldp RAPPORClient": client.privatise,
        "multi-freq-ldpy L_SUE": lambda value: L_SUE_Client(value, PAPER.k, *epsilon),
    }


def peer_values(name: str, number: int) -> Iterable[object]:
    """L_SUE takes a number below k; the others take strings."""
    if "L_SUE" in name:
        return (call % PAPER.k for call in range(CALLS))
    return fresh_strings(name, number)


def split(params: Params) -> dict[str, Callable[[object], object]]:
    """The parts of one report."""
    whole = encoder(params)
    permanent = permanent_response(params, os.urandom(64))
    return {
        "hash (value to B)": whole._signal,
        "PRR (B to B')": lambda value: permanent(3, value.encode()),
        "IRR (B' to S)": lambda value: whole._instantaneous(3),
        "all": whole.encode,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    args = parser.parse_args()
    contest = {"rappor Encoder": encoder(PAPER).encode, **peers()}
    side_by_side = best_of_rounds(contest, peer_values)
    parts = best_of_rounds(split(PAPER), fresh_strings)
    others = best_of_rounds({n: encoder(p).encode for n, p in OTHERS.items()}, fresh_strings)
    ours = side_by_side["rappor Encoder"]
    ratios = {name: each / ours for name, each in side_by_side.items() if name != "rappor Encoder"}
    promises = {
        "faster than both peers at (1/2, 1/2, 3/4)": min(ratios.values()) > 1,
        f"at most {LIMIT_US:g} us at any p, q, f": max(others.values()) <= LIMIT_US,
    }
    result = {
        "microseconds": side_by_side,
        "peer_over_rappor": ratios,
        "split": parts,
        "other_params": others,
        "promises": promises,
    }
    text = json.dumps(result, indent=2)
    if args.output:
        args.output.write_text(text + "\n")
    print(text if args.json else describe(result))
    return 0 if all(promises.values()) else 1


def describe(result: dict) -> str:
    ours = result["microseconds"]["rappor Encoder"]
    lines = ["One report, k=128, h=2, f=1/2, p=1/2, q=3/4; a new value at each call", ""]
    for name, each in result["microseconds"].items():
        lines.append(f"  {name:<24} {each:7.2f} us   {each / ours:5.2f} x rappor")
    lines += ["", "Where the time goes", ""]
    for name, each in result["split"].items():
        lines.append(
            f"  {name:<24} {each:7.2f} us   {each / result['split']['all']:5.0%} of a report"
        )
    lines += ["", "Other parameters", ""]
    for name, each in result["other_params"].items():
        lines.append(f"  {name:<24} {each:7.2f} us   {each / ours:5.2f} x the paper's")
    lines.append("")
    for name, kept in result["promises"].items():
        lines.append(f"  {'kept  ' if kept else 'BROKEN'}  {name}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
