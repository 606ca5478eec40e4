"""Load on one collector: durable batches compared with a no-op route of the same server.

The same on PostgreSQL, next to SQLite: a real server on the same disk, with fsync. wrk sends with
64 connections from the same machine, and batches of one report also with 256. Where wrk is not
installed (Debian, Ubuntu: apt-get install wrk) rates are not measured: the table says so of each of
their goals, and they do not count for the exit code.

A share of the no-op route's rate depends on the disk: with 64 connections a commit holds 64 batches
at most, and nothing is sent until it is synced. On a disk that syncs in 4 ms, as one that others
use may, that is 16,000 a second before anything else is done. The share of its processor time does
not depend on the disk, and less on what else the machine does.

Then the times that an operator notices: to start, to answer under overload or with a full disk, to
cut off slow senders, to stop. If a figure misses its goal, the exit code is 1.

    make bench                             all of it
    python benchmarks/ingest.py --quick    two seconds a route, for a look
"""

import argparse
import datetime
import gzip
import http.client
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import noop_server
from database import database_server, store_for_collectors

from rappor import Params
from rappor.collection import Collection
from rappor.collector.keys import new_key
from rappor.wire import BINARY, JSON, REPORTS_PATH, Batch, encode_batch

PARAMS = Params(k=128, h=2, m=32, f=0.5, p=0.5, q=0.75)
HOSTILE_CELLS = Params(k=4096, h=2, m=1024, f=0.5, p=0.5, q=0.75)
BENCH = Collection("bench", 1, PARAMS)
CONNECTIONS, MANY_CONNECTIONS = 64, 256
LARGE = 10_000
NOOP, SINGLES, LARGE_BATCHES = "no-op, 1 report", "durable, 1 report", f"durable, {LARGE:,} reports"
POSTGRES = "PostgreSQL: "
MANY = f", {MANY_CONNECTIONS} connections"
MIN_SHARE = 0.50  # of the no-op route's requests, for durable batches of one report
MIN_REPORTS = 10e6  # a second, in batches of 10,000
MIN_OF_SQLITE = 0.50  # of SQLite's rate in the same run, for PostgreSQL, single reports and batches

# Every request is the same bytes but for the token: 16 random bytes at a fixed place.
SCRIPT = """
local file = io.open(os.getenv("BATCH"), "rb")
local body = file:read("*all")
file:close()
local head, tail = body:sub(1, 4), body:sub(21)
local noise = io.open("/dev/urandom", "rb")
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/vnd.rappor.batch"
if os.getenv("KEY") ~= "" then
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
end
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


COLLECT = ("-m", "rappor", "collect")


def gateway(folder: Path) -> tuple[str, tuple[str, ...]]:
    """A gateway key, for batches of many reports, and the options of a collector that knows it."""
    keys = folder / "keys.json"
    key = new_key(keys, "bench", role="gateway")
    return key, ("--keys", str(keys), "--keys-optional")


@contextmanager
def collector(folder: Path, *program: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A collector process, or another program with the same options; and its port."""
    collections = folder / "collections"
    collections.mkdir(parents=True, exist_ok=True)
    (collections / "bench.toml").write_text(BENCH.to_toml(), "utf-8")
    command = [sys.executable, *(program or COLLECT)]
    command += ["--port", "0", "--data", str(folder / "data"), "--collections", str(collections)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            started = json.loads(line)
            if started["event"] == "listening":
                break
        else:
            sys.exit("the collector did not start")
        yield process, started["port"]
        process.terminate()
        if process.wait(20) != 0:
            sys.exit(f"the collector ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def wrk(
    url: str,
    key: str,
    route: str,
    batch: Path,
    script: Path,
    seconds: float,
    connections: int = CONNECTIONS,
) -> dict[str, float]:
    """Requests, requests a second, those that failed, and the 99th percentile of the latency."""
    command = [
        "wrk",
        "-t",
        "1",
        "-c",
        str(connections),
        "-d",
        f"{seconds:g}s",
        "-s",
        str(script),
        url,
    ]
    env = os.environ | {"BATCH": str(batch), "ROUTE": route, "KEY": key}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+)", done.stdout)
    if found is None:
        sys.exit(f"wrk said nothing to go by:\n{done.stdout}{done.stderr}")
    requests, microseconds, failed, p99 = map(int, found.groups())
    rate = 1e6 * requests / microseconds
    return {"requests": requests, "rate": rate, "failed": failed, "p99_ms": p99 / 1000}


def processor_seconds(pid: int) -> float:
    """Of a process, of those that it has started, and of those of them that have ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for child in children)


def measure(seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    """The best round of each, taken in turns so that a busy machine disturbs all alike.

    A share is that of best rounds: a share of one round is large if its no-op was disturbed. It is
    a share of the no-op route with as many connections.
    """
    best: dict[str, dict[str, float]] = {}
    today = datetime.datetime.now(datetime.UTC).date()
    with tempfile.TemporaryDirectory() as name, database_server() as server:
        folder = Path(name)
        script, one, many = folder / "post.lua", folder / "one.bin", folder / "many.bin"
        script.write_text(SCRIPT, "ascii")
        one.write_bytes(batch_of(1, today))
        many.write_bytes(batch_of(LARGE, today))
        noop = noop_server.NOOP_PATH
        key, options = gateway(folder)
        program = (noop_server.__file__, *options)
        with (
            collector(folder, *program) as (here, port),
            collector(folder, *program, "--store", store_for_collectors(server, BENCH)) as (
                there,
                other,
            ),
        ):
            sqlite, postgres = (here.pid, port), (there.pid, other)
            contest = {
                NOOP: (sqlite, noop, one, CONNECTIONS),
                SINGLES: (sqlite, REPORTS_PATH, one, CONNECTIONS),
                LARGE_BATCHES: (sqlite, REPORTS_PATH, many, CONNECTIONS),
                POSTGRES + SINGLES: (postgres, REPORTS_PATH, one, CONNECTIONS),
                POSTGRES + LARGE_BATCHES: (postgres, REPORTS_PATH, many, CONNECTIONS),
                NOOP + MANY: (sqlite, noop, one, MANY_CONNECTIONS),
                SINGLES + MANY: (sqlite, REPORTS_PATH, one, MANY_CONNECTIONS),
                POSTGRES + SINGLES + MANY: (postgres, REPORTS_PATH, one, MANY_CONNECTIONS),
            }
            for _ in range(rounds):
                for what, ((pid, at), route, batch, connections) in contest.items():
                    before = processor_seconds(pid)
                    address = f"http://127.0.0.1:{at}"
                    found = wrk(address, key, route, batch, script, seconds, connections)
                    print(f"\r  {what}: {found['rate']:,.0f}/s     ", end="", file=sys.stderr)
                    used = processor_seconds(pid) - before
                    found["microseconds"] = 1e6 * used / found["requests"]
                    if what not in best or found["rate"] > best[what]["rate"]:
                        best[what] = found
    for what, found in best.items():
        base = best[NOOP + MANY if what.endswith(MANY) else NOOP]
        found["share"] = found["rate"] / base["rate"]
        found["processor_share"] = base["microseconds"] / found["microseconds"]
    print(file=sys.stderr)
    return best


# A collector whose disk takes four batches each 50 ms, and none while a file says that it is full.
SLOW_DISK = """
import argparse, sys, time
from pathlib import Path
from rappor.collector import process
from rappor.collector.settings import CollectorSettings
from rappor.errors import StoreFull
from rappor.store import open_store

class Slow:
    def __init__(self, where):
        self.store, self.full = open_store(where), Path(where) / "full"
    def __getattr__(self, name):
        return getattr(self.store, name)
    def add(self, tokens, fold, day):
        if self.full.exists():
            raise StoreFull("no room")
        time.sleep(0.05)
        return self.store.add(tokens, fold, day)

parser = argparse.ArgumentParser()
for name in ("port", "data", "collections"):
    parser.add_argument(f"--{name}")
args = parser.parse_args()
made = CollectorSettings(data=args.data, collections=args.collections, port=0, group_batches=4)
sys.exit(process.run(made, opened=Slow))
"""
SENDERS = 96
# JSON that is small in transit and large inside.
HOSTILE = {
    "numbers": '{"a":[' + "1," * 500_000 + "1]}",
    "keys": "{" + ",".join(f'"{number:x}":1' for number in range(90_000)) + "}",
}


class Client:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, body: bytes, **headers: str) -> tuple[int, float]:
        """The status of the answer, and the seconds until it was there."""
        named = {"content-type": BINARY} | {k.replace("_", "-"): v for k, v in headers.items()}
        started = time.perf_counter()
        self.connection.request("POST", REPORTS_PATH, body, named)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - started


def seconds_to_start(folder: Path) -> float:
    """Of a processor, until it listens."""
    used = []
    for _ in range(3):
        with collector(folder) as (process, _):
            stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            used.append((int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"))
    return min(used)


def seconds_of_hostile_bodies(folder: Path) -> dict[str, float]:
    """Until each kind is refused."""
    with collector(folder) as (_, port):
        client = Client(port)
        return {
            f"hostile body: {name}": min(
                client.send(body, content_type=JSON, content_encoding="gzip")[1] for _ in range(5)
            )
            for name, body in ((n, gzip.compress(text.encode())) for n, text in HOSTILE.items())
        }


def seconds_on_a_slow_disk(folder: Path, seconds: float) -> dict[str, float]:
    """The 99th percentile of accepted batches under overload, recovery, a full disk's answer."""
    today = datetime.datetime.now(datetime.UTC).date()
    waited: list[float] = []
    with collector(folder, "-c", SLOW_DISK) as (_, port):
        until = time.perf_counter() + seconds

        def send() -> None:
            client = Client(port)
            while time.perf_counter() < until:
                status, took = client.send(batch_of(1, today))
                if status == 204:
                    waited.append(took)

        senders = [threading.Thread(target=send) for _ in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        client, started = Client(port), time.perf_counter()
        while client.send(batch_of(1, today))[0] != 204:
            time.sleep(0.02)
        recovered = time.perf_counter() - started
        (folder / "data" / "full").touch()
        _, full = client.send(batch_of(1, today))
    return {
        "p99 under overload": sorted(waited)[int(0.99 * len(waited))],
        "recovery from overload": recovered,
        "answer of a full disk": full,
    }


def seconds_until_cut_off(folder: Path) -> dict[str, float]:
    """Of senders that stop in the middle; and until it has stopped although one never ends."""
    post = b"POST /v1/reports HTTP/1.1\r\nHost: a\r\n"
    found = {}
    with collector(folder) as (process, port):
        slow = {
            "slow headers cut off": post,
            "slow body cut off": post + b"Content-Length: 9\r\n\r\n",
        }
        started = time.perf_counter()
        raw = {name: socket.create_connection(("127.0.0.1", port), 60) for name in slow}
        for name, connection in raw.items():
            connection.sendall(slow[name])
        for name, connection in raw.items():  # in the order in which they end
            connection.recv(65536)
            found[name] = time.perf_counter() - started
            connection.close()
        with socket.create_connection(("127.0.0.1", port), 60) as connection:
            connection.sendall(post + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            connection.recv(65536)
            started = time.perf_counter()
            process.terminate()
            process.wait(60)
            found["stop with an open request"] = time.perf_counter() - started
    return found


def hostile_batch(today: datetime.date, number: int) -> bytes:
    """A body of 3 kB that has a collector write 33 MB: a report in each cohort of a large cell."""
    one = Batch(
        os.urandom(16), f"large{number % 20}", 1, today.isoformat(), (), HOSTILE_CELLS.k, bytes(2),
        bytes(HOSTILE_CELLS.k // 8),
    )  # fmt: skip
    head = bytearray(encode_batch(one)[: -2 - HOSTILE_CELLS.k // 8])
    head[24:28] = HOSTILE_CELLS.m.to_bytes(4, "little")
    cohorts = b"".join(cohort.to_bytes(2, "little") for cohort in range(HOSTILE_CELLS.m))
    return gzip.compress(head + cohorts + bytes(HOSTILE_CELLS.m * HOSTILE_CELLS.k // 8))


def seconds_with_hostile_cells(folder: Path, seconds: float) -> dict[str, float]:
    """The slowest answer to an honest client, stored or sent away, while 32 senders have 20
    collections of lint's largest size rewritten; and the memory that it took."""
    today = datetime.datetime.now(datetime.UTC).date()
    waited: list[float] = []
    (folder / "collections").mkdir(parents=True)
    for number in range(20):
        large = Collection(f"large{number}", 1, HOSTILE_CELLS)
        (folder / "collections" / f"{number}.toml").write_text(large.to_toml(), "utf-8")
    key, options = gateway(folder)
    bodies = itertools.cycle([hostile_batch(today, number) for number in range(400)])
    with collector(folder, *COLLECT, *options) as (process, port):
        until = time.perf_counter() + seconds

        def send() -> None:
            client = Client(port)
            headers = {"authorization": f"Bearer {key}", "content_encoding": "gzip"}
            while time.perf_counter() < until:
                client.send(next(bodies), **headers)

        senders = [threading.Thread(target=send) for _ in range(32)]
        for sender in senders:
            sender.start()
        client = Client(port)
        while time.perf_counter() < until:
            waited.append(client.send(batch_of(1, today))[1])
            time.sleep(0.02)
        for sender in senders:
            sender.join()
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return {"answer with hostile cells": max(waited), PEAK: peak / 2**20}


PEAK = "memory with hostile cells, MiB"
MAX_SECONDS = {
    "processor time to start": 0.5,
    "hostile body: numbers": 0.02,
    "hostile body: keys": 0.02,
    "p99 under overload": 1.0,
    "recovery from overload": 10.0,
    "answer of a full disk": 1.0,
    "slow headers cut off": 8.0,
    "slow body cut off": 13.0,
    "stop with an open request": 10.0,
    "answer with hostile cells": 1.0,
    PEAK: 512.0,
}


def times(seconds: float) -> dict[str, float]:
    """Everything that has a goal in MAX_SECONDS."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "processor time to start": seconds_to_start(folder / "start"),
            **seconds_of_hostile_bodies(folder / "hostile"),
            **seconds_on_a_slow_disk(folder / "slow", seconds),
            **seconds_until_cut_off(folder / "cut"),
            **seconds_with_hostile_cells(folder / "cells", seconds),
        }


RATES = {  # the goals that wrk measures
    "share of no-op": MIN_SHARE,
    "reports a second": MIN_REPORTS,
    "PostgreSQL of SQLite, 1 report": MIN_OF_SQLITE,
    f"PostgreSQL of SQLite, {LARGE:,} reports": MIN_OF_SQLITE,
    "failed requests": 0,
}


def promises_of(found: dict[str, dict[str, float]]) -> dict[str, tuple[float, float, bool]]:
    """What was found for each goal of RATES, the goal, and whether it is kept."""
    shares = [
        found[POSTGRES + what]["rate"] / found[what]["rate"] for what in (SINGLES, LARGE_BATCHES)
    ]
    failed = sum(each["failed"] for each in found.values())
    rates = (found[SINGLES]["share"], found[LARGE_BATCHES]["rate"] * LARGE, *shares)
    kept = [rate >= goal for rate, goal in zip(rates, RATES.values(), strict=False)]
    return {
        name: (rate, goal, met)
        for (name, goal), rate, met in zip(
            RATES.items(), (*rates, failed), (*kept, failed == 0), strict=True
        )
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="also write the JSON to a file")
    parser.add_argument("--quick", action="store_true", help="two seconds a route, one round")
    args = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    promises: dict[str, tuple[float, float, bool]] = {}
    missing: dict[str, str] = {}
    if shutil.which("wrk") is None:
        missing = dict.fromkeys(RATES, "wrk is not installed (Debian, Ubuntu: apt-get install wrk)")
    else:
        found = measure(2, 1) if args.quick else measure(8, 3)
        promises = promises_of(found)
    for name, value in times(2 if args.quick else 10).items():
        goal = MAX_SECONDS[name]
        promises[name if name == PEAK else f"{name}, s"] = (value, goal, value <= goal)
    document = {
        "routes": found,
        "goals": {
            name: dict(zip(("found", "goal", "kept"), each, strict=True))
            for name, each in promises.items()
        },
        "not_measured": missing,
    }
    text = json.dumps(document, indent=2)
    if args.output:
        args.output.write_text(text + "\n", "utf-8")
    if args.json:
        print(text)
    else:
        print(f"Ingest, {CONNECTIONS} connections, one collector process\n")
        for what, each in found.items():
            rate, share = f"{each['rate']:>10,.0f} requests/s", f"{each['share']:>6.1%} of no-op"
            used = f"{each['microseconds']:>6.1f} µs of a core ({each['processor_share']:.0%})"
            print(f"  {what:<46} {rate}   {share}   {used}   p99 {each['p99_ms']:.1f} ms")
        print()
        for name, (value, goal, kept) in promises.items():
            verdict = "kept" if kept else "BROKEN"
            print(f"  {name:<38} {value:>14,.3f}   goal {goal:>12,.2f}   {verdict}")
        for name, why in missing.items():
            print(f"  {name:<38} {'':>14}   goal {RATES[name]:>12,.2f}   NOT MEASURED: {why}")
    if missing and (args.json or args.output):
        print(f"ingest: {len(missing)} goals were not measured", file=sys.stderr)
    return 0 if all(kept for *_, kept in promises.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
