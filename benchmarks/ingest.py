"""Load on one collector: durable batches beside the same server's no-op route, in one run.

wrk sends with 64 connections from the same machine. A share or a rate below its goal is said, and
makes the exit code 1. Where wrk is not installed (Debian, Ubuntu: apt-get install wrk) there is
nothing to measure with, which is said in one line.

    make bench                             all of it
    python benchmarks/ingest.py --quick    two seconds a route, for a look
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rappor import Params
from rappor.collection import Collection
from rappor.wire import Batch, encode_batch

PARAMS = Params(k=128, h=2, m=32, f=0.5, p=0.5, q=0.75)
CONNECTIONS = 64
LARGE = 10_000
LEAST_SHARE = 0.45  # of the no-op route's requests, for durable batches of one report
LEAST_REPORTS = 5e6  # a second, in batches of 10,000

# Every request is the same bytes but for the token: 16 random bytes at a fixed place.
SCRIPT = """
local file = io.open(os.getenv("BATCH"), "rb")
local body = file:read("*all")
file:close()
local head, tail = body:sub(1, 4), body:sub(21)
local noise = io.open("/dev/urandom", "rb")
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/vnd.rappor.batch"
local path = os.getenv("ROUTE")
request = function()
  return wrk.format(nil, path, nil, head .. noise:read(16) .. tail)
end
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("RESULT %d %d %d %d\\n", summary.requests, summary.duration, failed,
    latency:percentile(99)))
end
"""


def batch_of(reports: int, today: datetime.date) -> bytes:
    """A batch whose reports are random bits."""
    cohorts = b"".join((i % PARAMS.m).to_bytes(2, "little") for i in range(reports))
    bits = os.urandom(reports * PARAMS.k // 8)
    return encode_batch(
        Batch(os.urandom(16), "bench", 1, today.isoformat(), (), PARAMS.k, cohorts, bits)
    )


@contextmanager
def collector(folder: Path) -> Iterator[str]:
    """A collector process; its address."""
    collections = folder / "collections"
    collections.mkdir()
    (collections / "bench.toml").write_text(Collection("bench", 1, PARAMS).to_toml(), "utf-8")
    command = [sys.executable, "-m", "rappor", "collect", "--bench", "--port", "0"]
    command += ["--data", str(folder / "data"), "--collections", str(collections)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            started = json.loads(line)
            if started["event"] == "listening":
                break
        else:
            sys.exit("the collector did not start")
        yield f"http://127.0.0.1:{started['port']}"
        process.terminate()
        if process.wait(20) != 0:
            sys.exit(f"the collector ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def wrk(url: str, route: str, batch: Path, script: Path, seconds: float) -> dict[str, float]:
    """Requests a second, requests that failed, and the 99th percentile of the latency in ms."""
    command = [
        "wrk",
        "-t",
        "1",
        "-c",
        str(CONNECTIONS),
        "-d",
        f"{seconds:g}s",
        "-s",
        str(script),
        url,
    ]
    env = os.environ | {"BATCH": str(batch), "ROUTE": route}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+)", done.stdout)
    if found is None:
        sys.exit(f"wrk said nothing to go by:\n{done.stdout}{done.stderr}")
    requests, microseconds, failed, p99 = map(int, found.groups())
    return {"rate": 1e6 * requests / microseconds, "failed": failed, "p99_ms": p99 / 1000}


def measure(seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """The best round of each, taken in turns so that a busy machine disturbs all alike."""
    best: dict[str, dict[str, float]] = {}
    today = datetime.datetime.now(datetime.UTC).date()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script, one, many = folder / "post.lua", folder / "one.bin", folder / "many.bin"
        script.write_text(SCRIPT, "ascii")
        one.write_bytes(batch_of(1, today))
        many.write_bytes(batch_of(LARGE, today))
        contest = {
            "no-op, 1 report": ("/v1/noop", one),
            "durable, 1 report": ("/v1/reports", one),
            f"durable, {LARGE:,} reports": ("/v1/reports", many),
        }
        with collector(folder) as url:
            for _ in range(rounds):
                for what, (route, batch) in contest.items():
                    found = wrk(url, route, batch, script, seconds)
                    print(f"\r  {what}: {found['rate']:,.0f}/s     ", end="", file=sys.stderr)
                    if what not in best or found["rate"] > best[what]["rate"]:
                        best[what] = found
    print(file=sys.stderr)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="two seconds a route, one round")
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        print("ingest: skipped, wrk is not installed (Debian, Ubuntu: apt-get install wrk)")
        return 0
    found = measure(2, 1) if args.quick else measure(8, 3)
    noop, one, many = found.values()
    share, reports = one["rate"] / noop["rate"], many["rate"] * LARGE
    failed = int(one["failed"] + many["failed"])
    promises = {
        "share of no-op": (share, LEAST_SHARE, share >= LEAST_SHARE),
        "reports a second": (reports, LEAST_REPORTS, reports >= LEAST_REPORTS),
        "failed requests": (failed, 0, failed == 0),
    }
    document = {
        "routes": found,
        "goals": {
            name: dict(zip(("found", "goal", "kept"), each, strict=True))
            for name, each in promises.items()
        },
    }
    text = json.dumps(document, indent=2)
    if args.output:
        args.output.write_text(text + "\n", "utf-8")
    if args.json:
        print(text)
    else:
        print(f"Ingest, {CONNECTIONS} connections, one collector process\n")
        for what, each in found.items():
            print(f"  {what:<26} {each['rate']:>10,.0f} requests/s   p99 {each['p99_ms']:.1f} ms")
        print()
        for name, (value, goal, kept) in promises.items():
            verdict = "kept" if kept else "BROKEN"
            print(f"  {name:<18} {value:>14,.2f}   goal {goal:>12,.2f}   {verdict}")
    return 0 if all(kept for *_, kept in promises.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
